"""Every kind of deployment, synthesized once for a run: what has to hold for each template is tested on all of them."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest

from tests.infra.accounts import SETTINGS as MEMBERS
from tests.infra.cloudformation import resolved
from tests.infra.conftest import EVERYTHING, NODES, ROOT, assemble
from tests.infra.package import settings as package
from tests.infra.template import Template

KEY = "arn:aws:kms:{region}:111122223333:key/0a1b2c3d-1111-2222-3333-444455556666"
SECRET = "arn:aws:secretsmanager:us-east-1:111122223333:secret:leeward-webhook-AbCdEf"
VPC = EVERYTHING["clusters"][0]["vpc"]
WEBHOOKS = {
    "blue": {"url": "https://hooks.example.com/T1"},
    "green": {"url": "https://hooks.example.com/T2", "format": "slack", "secretArn": SECRET},
    "red": {"url": "https://events.example.com/v2", "format": "pagerduty", "secretArn": SECRET},
}


def _clusters(*names: str, region: str = "us-east-1", **more: Any) -> list[dict[str, Any]]:
    home = {"policies": ["policies/default.yaml"], "account": "111122223333", "region": region}
    return [{"name": name, **home, **more} for name in names]


def _all(region: str) -> dict[str, Any]:
    clusters = [{**cluster, "region": region} for cluster in EVERYTHING["clusters"]]
    return {**EVERYTHING, "clusters": clusters, "kmsKey": KEY.format(region=region)}


SETTINGS: Mapping[str, dict[str, Any]] = {
    "vpc": {"clusters": _clusters("blue", vpc=VPC), "nodeRoles": [NODES]},
    "key": {"clusters": _clusters("blue"), "nodeRoles": [NODES], "kmsKey": KEY.format(region="us-east-1")},
    "members": {**MEMBERS, "kmsKey": KEY.format(region="us-east-1")},
    "named": {"clusters": _clusters("blue"), "nodeRoles": [NODES], "deployment": "trial"},
    "no entries": {"clusters": _clusters("blue"), "nodeRoles": [NODES], "accessEntries": False},
    "everything": EVERYTHING,
    "all and a key": _all("us-east-1"),
    "China": _all("cn-north-1"),
    "GovCloud": _all("us-gov-west-1"),
}
"""Deployment -> its settings. Besides these: the context of cdk.json, webhooks, and the packaged template."""

DEFAULT, WEBHOOK, PACKAGE = "default", "webhook", "package"
VARIANTS = (DEFAULT, *SETTINGS, WEBHOOK, *(f"{PACKAGE}: {case}" for case in package.SAME))
SHORT = frozenset({DEFAULT, "all and a key", f"{PACKAGE}: {[*package.SAME][-1]}"})
"""Between them these hold each kind of role; the others are for the long forms."""


def each(names: Iterable[str], short: frozenset[str] = SHORT) -> list[Any]:
    """The names as parameters of a test, those that are not `short` for the long forms."""
    return [pytest.param(name, marks=() if name in short else pytest.mark.long) for name in names]


REGIONS = {"China": "cn-north-1", "GovCloud": "us-gov-west-1"}


@dataclass(frozen=True)
class Variant:
    """`region`: of the deployment's stack."""

    templates: Mapping[str, Template]
    region: str = "us-east-1"


@cache
def variant(name: str) -> Variant:
    """The templates of a deployment by the names of their stacks: those of members too."""
    if name.startswith(PACKAGE):
        _, parameters = package.SAME[name.removeprefix(f"{PACKAGE}: ")]
        return Variant(templates={name: Template(raw=resolved(packaged(), parameters), assembly=Path())})
    folder = Path(mkdtemp())
    if name == DEFAULT:
        assemble(folder)
    else:
        assemble(folder, leeward=_webhooks(folder) if name == WEBHOOK else SETTINGS[name])
    templates = {
        path.name.removesuffix(".template.json"): Template(raw=json.loads(path.read_text()), assembly=folder)
        for path in sorted(folder.glob("*.template.json"))
    }
    return Variant(templates=templates, region=REGIONS.get(name, "us-east-1"))


@cache
def packaged() -> dict[str, Any]:
    """The template of `make package`, parameters and conditions unresolved."""
    from infra.asset import build_asset
    from infra.package.synthesis import synthesizer
    from infra.package.template import packaged_template

    return packaged_template(synthesizer(ROOT, build_asset(ROOT)), asset=package.ASSET)


def _webhooks(folder: Path) -> dict[str, Any]:
    clusters = _clusters(*WEBHOOKS)
    for cluster in clusters:
        name = cluster["name"]
        path = folder / f"{name}.yaml"
        head = f"apiVersion: leeward.dev/v1\nkind: ClusterSettings\nmetadata: {{name: {name}}}\n"
        path.write_text(f"{head}spec: {json.dumps({'webhook': WEBHOOKS[name]})}\n")
        cluster["policies"] = [*cluster["policies"], str(path)]
    return {"clusters": clusters, "nodeRoles": [NODES]}
