"""A deployment with clusters in two other accounts, synthesized: its own template and those of the members."""

import json
from dataclasses import dataclass
from pathlib import Path

from tests.infra.template import Template

HUB, EAST, WEST = "111122223333", "222233334444", "333344445555"
REGIONS = {HUB: "us-east-1", EAST: "us-east-1", WEST: "eu-west-1"}
EXTERNAL_IDS = {EAST: "leeward-east-7319", WEST: "leeward-west-2204"}


def nodes_of(account):
    """ARN of the role that the account's nodes run as."""
    return f"arn:aws:iam::{account}:role/nodes"


def stem_of(account):
    """The setting roleArn of its clusters."""
    return f"arn:aws:iam::{account}:role/leeward-member"


def topic_of(account, region=None):
    """ARN of the topic of the account's operators."""
    return f"arn:aws:sns:{region or REGIONS[account]}:{account}:operators"


def a_cluster(name, account, /, **changes):
    """A cluster of the settings; elsewhere than at the hub with role and external id."""
    given = {"name": name, "policies": ["policies/default.yaml"], "account": account, "region": REGIONS[account]}
    if account != HUB:
        given |= {"roleArn": stem_of(account), "externalId": EXTERNAL_IDS[account]}
    if account == WEST:
        given |= {"alarmTopic": topic_of(WEST)}
    return {**given, **changes}


SETTINGS = {
    "clusters": [a_cluster("blue", HUB), a_cluster("east", EAST), a_cluster("west", WEST)],
    "nodeRoles": [nodes_of(account) for account in REGIONS],
}


@dataclass(frozen=True)
class Deployed:
    """`members`: account -> template."""

    hub: Template
    members: dict[str, Template]


def read_member(outdir, account):
    """The template of one member."""
    name = f"Leeward-member-{account}-{REGIONS[account]}.template.json"
    return Template(raw=json.loads(Path(outdir, name).read_text()), assembly=outdir)
