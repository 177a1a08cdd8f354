"""`cdk synth` as a stranger runs it, and the rules over what it makes."""

import json
import os
import re
import subprocess
import sys

import pytest

from infra.permissions import PERMISSIONS
from infra.risks import RISKS
from infra.service_permissions import (
    DISRUPTION_MACHINE,
    EVERY_FUNCTION,
    IN_A_VPC,
    LEAVES_A_VPC,
    STATE_MACHINE,
    UPGRADE_MACHINE,
)
from tests.infra.conftest import ROOT, synthesize

CDK = ROOT / "node_modules" / "aws-cdk" / "bin" / "cdk"


def app(**context):
    """The program alone, as the CDK command line starts it."""
    given = json.loads((ROOT / "cdk.json").read_text())["context"] | context
    environment = {"PATH": os.environ["PATH"], "CDK_CONTEXT_JSON": json.dumps(given), "HOME": os.environ["HOME"]}
    return subprocess.run(
        [sys.executable, "app.py"], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )


def test_cdk_synth_without_any_context_of_ones_own(tmp_path):
    """Without a network: every proxy leads nowhere. `make setup` has brought the functions' packages along."""
    nowhere = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), "http://127.0.0.1:9")
    environment = {**os.environ, **nowhere, "AWS_EC2_METADATA_DISABLED": "true", "CDK_VALIDATION": "true"}
    done = subprocess.run(
        [os.environ["JSII_NODE"], str(CDK), "synth", "--quiet", "--output", str(tmp_path)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "Leeward.template.json").exists()


@pytest.mark.parametrize(
    ("context", "said"),
    [
        ({"leeward": '{"clusters": []}'}, "context: leeward.clusters: found [], expected a list of at least 1"),
        ({"leeward": '{"clusters": [{"name": "x", "policies": ["nope.yaml"]}]}'}, "nope.yaml: found no such file"),
        ({"settings": "nope.json"}, "nope.json: cannot be read: No such file or directory"),
    ],
)
def test_a_mistake_is_one_message_and_exit_1_without_a_traceback(context, said):
    done = app(**context)
    assert done.returncode == 1
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1


def test_the_stack_is_tied_to_no_account_and_needs_no_lookup(template, everything):
    for stack, where in (
        (template, "aws://unknown-account/unknown-region"),
        (everything, "aws://111122223333/us-east-1"),
    ):
        manifest = json.loads((stack.assembly / "manifest.json").read_text())
        assert manifest["artifacts"]["Leeward"]["environment"] == where
        assert "missing" not in manifest


def test_cdk_nag_accepts_the_stack_only_with_its_reasons(tmp_path, monkeypatch):
    monkeypatch.setattr("infra.findings.accept_wildcards", lambda *_: None)
    with pytest.raises(RuntimeError, match=r"AwsSolutions-IAM5\[Resource::\*\]"):
        synthesize(tmp_path)


def test_each_acknowledged_finding_has_a_reason_of_some_words(template):
    metadata = json.loads((template.assembly / "Leeward.metadata.json").read_text())
    reasons = {}
    for entries in metadata.values():
        for entry in entries:
            if entry["type"] == "aws:cdk:acknowledged-rules":
                reasons |= entry["data"]
    assert reasons
    assert min(len(reason.split()) for reason in reasons.values()) >= 4


def acknowledged(template):
    """(construct, finding, reason) of each acknowledgement of a wildcard."""
    metadata = json.loads((template.assembly / "Leeward.metadata.json").read_text())
    for construct, entries in metadata.items():
        for entry in entries:
            if entry["type"] == "aws:cdk:acknowledged-rules":
                yield from ((construct, rule, why) for rule, why in entry["data"].items() if "IAM5[" in rule)


def test_no_acknowledgement_mixes_a_change_with_reads(everything):
    for construct, rule, reason in acknowledged(everything):
        actions = re.findall(r"(?:^|; )[a-z0-9-]+:([A-Z]\w+): ", reason)
        assert actions, (construct, rule)
        kinds = {action.startswith(("Describe", "Get", "List")) for action in actions}
        assert len(kinds) == 1, (construct, rule, actions)


def test_the_acknowledgement_of_a_change_names_the_worst_that_it_allows(everything):
    changes = 0
    for construct, rule, reason in acknowledged(everything):
        actions = re.findall(r"(?:^|; )([a-z0-9-]+:(?!Describe|Get|List)[A-Z]\w+): ", reason)
        assert reason.count("(at worst, ") == len(actions), (construct, rule)
        changes += len(actions)
    assert changes > 50


def test_every_risk_is_of_a_change_that_a_role_allows_and_says_it_in_some_words():
    tables = (
        *PERMISSIONS.values(),
        EVERY_FUNCTION,
        IN_A_VPC,
        LEAVES_A_VPC,
        STATE_MACHINE,
        UPGRADE_MACHINE,
        DISRUPTION_MACHINE,
    )
    assert set(RISKS) <= {permission.action for table in tables for permission in table if not permission.reads}
    assert min(len(risk.split()) for risk in RISKS.values()) >= 5
