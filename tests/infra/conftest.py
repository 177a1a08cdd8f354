"""One synth of the default context and one of everything that can be set, each once for all tests."""

import json
from pathlib import Path

import pytest

import infra  # noqa: F401 - names the Node.js that the CDK runs on, before anything of the CDK is imported
from tests.infra.template import Template

ROOT = Path(__file__).resolve().parents[2]
TOPIC = "arn:aws:sns:us-east-1:111122223333:hooks"
SENDER = "arn:aws:iam::111122223333:role/auto-scaling-notifies"
NODES = "arn:aws:iam::111122223333:role/nodes"
LONG_NAME = "a-cluster-with-a-name-so-long-that-no-role-name-could-hold-all-of-it"
EVERYTHING = {
    "clusters": [
        {
            "name": name,
            "policies": ["policies/default.yaml"],
            "account": "111122223333",
            "region": "us-east-1",
            "vpc": {"subnetIds": ["subnet-0a1b2c3d", "subnet-0a1b2c3e"], "securityGroupIds": ["sg-0a1b2c3d"]},
        }
        for name in ("blue", LONG_NAME)
    ],
    "senders": {"roles": [SENDER], "topics": [TOPIC]},
    "nodeRoles": [NODES],
    "imageParameters": ["/golden/images/*"],
    "alarmTopic": "arn:aws:sns:us-east-1:111122223333:operators",
    "runbooks": "https://wiki.example.com/leeward",
    "accessEntries": False,
    "concurrency": {"interruption": 0, "drain": 0},
    "logSampling": 5,
}

WITH_A_WEBHOOK = EVERYTHING | {
    "clusters": [
        EVERYTHING["clusters"][0] | {"policies": ["policies/default.yaml", "tests/infra/webhook.yaml"]},
        *EVERYTHING["clusters"][1:],
    ]
}


def assemble(outdir, **changes):
    """Synthesize this tree with `changes` to cdk.json's context into a folder."""
    from infra.program import build_app

    context = json.loads((ROOT / "cdk.json").read_text())["context"]
    build_app(ROOT, {}, context={**context, **changes}, outdir=str(outdir)).synth()


def synthesize(outdir, stack="Leeward", **changes):
    """The template of this tree with `changes` to cdk.json's context; `stack`: the name of the deployment's stack."""
    assemble(outdir, **changes)
    return Template(raw=json.loads((outdir / f"{stack}.template.json").read_text()), assembly=outdir)


@pytest.fixture(scope="session")
def template(tmp_path_factory):
    """As a stranger's `cdk synth` makes it."""
    return synthesize(tmp_path_factory.mktemp("default"))


@pytest.fixture(scope="session")
def everything(tmp_path_factory):
    """Two clusters in a VPC, senders, topic, a webhook; no access entries, nothing reserved."""
    return synthesize(tmp_path_factory.mktemp("everything"), leeward=WITH_A_WEBHOOK)
