"""Clusters of other accounts and Regions: what the settings of one must say, and what they share.

A cluster with `roleArn` is elsewhere: the functions assume roles of that name there, one each, with `externalId`. The
member stack of the account and Region makes them (`member.py`)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from infra.reading import Reader
    from infra.settings import Cluster

LONGEST_STEM = 45  # characters: IAM takes 64 for a role's name, which ends in the name of the function
ROLE_STEM = re.compile(rf"arn:aws[a-z-]*:iam::\d{{12}}:role/[\w+=,.@-]{{1,{LONGEST_STEM}}}")
TOPIC = re.compile(r"arn:aws[a-z-]*:sns:[a-z0-9-]+:\d{12}:[A-Za-z0-9_-]{1,256}(\.fifo)?")
EXTERNAL_ID = re.compile(r"[\w+=,.@:/-]{8,64}")  # STS takes 2 to 1,224; short ones are guessed, long ones fill Lambda's


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """Account and Region other than the deployment's own, with its clusters. `role_arn`: the stem of the roles' ARNs.
    `node_roles`: those of the setting that are in the account; `alarm_topic`: what its alarm notifies.
    """

    account: str
    region: str
    role_arn: str
    external_id: str
    clusters: tuple[Cluster, ...]
    node_roles: tuple[str, ...] = field(default=())
    alarm_topic: str | None = None

    @property
    def role_name(self) -> str:
        """Stem of the names of its roles."""
        return self.role_arn.rpartition("/")[2]


def role_of(reader: Reader, account: str | None, region: str | None) -> tuple[str | None, str | None]:
    """Return (roleArn, externalId) of a cluster, both or none. Raises InvalidInputError."""
    expected = f"the ARN of a role without a path, whose name has at most {LONGEST_STEM} characters"
    role = reader.text("roleArn", ROLE_STEM, expected)
    shared = reader.text("externalId", EXTERNAL_ID, "8 to 64 letters, digits and _+=,.@:/-")
    if role is None:
        if shared is not None:
            reader.refuse("externalId", shared, "roleArn beside it: the role that is assumed with it")
        return None, None
    if shared is None:
        reader.refuse("externalId", "nothing", "the external id that the role's trust policy asks for")
    if account is None or region is None:
        reader.refuse("roleArn", role, "account and region beside it: those of the cluster")
    if role.split(":")[4] != account:
        reader.refuse("roleArn", f"account {role.split(':')[4]}", f"a role in the cluster's account {account}")
    return role, shared


def topic_of(reader: Reader, account: str | None, region: str | None) -> str | None:
    """Return the topic that the member stack's alarm notifies: an alarm reaches topics of its own account and Region.
    Raises InvalidInputError.
    """
    topic = reader.text("alarmTopic", TOPIC, "the ARN of an SNS topic")
    if topic is None:
        return None
    if not reader.has("roleArn"):
        reader.refuse("alarmTopic", topic, "roleArn beside it; alarms at home notify alarmTopic beside clusters")
    if topic.split(":")[3:5] != [region, account]:
        reader.refuse("alarmTopic", topic, f"a topic in the cluster's account {account} and Region {region}")
    return topic


def members_of(
    top: Reader, clusters: Sequence[Cluster], home: tuple[str | None, str | None], node_roles: Sequence[str]
) -> tuple[Member, ...]:
    """Return the other accounts and Regions in the clusters' order. `home`: the deployment's own. Raises
    InvalidInputError.
    """
    there: dict[tuple[str, str], list[Cluster]] = {}
    for index, cluster in enumerate(clusters):
        if cluster.role_arn is None:
            continue
        at = str(cluster.account), str(cluster.region)
        path = f"clusters[{index}].roleArn"
        if None in home:
            expected = "a deployment whose own account and Region are known: deploy with credentials, or set "
            top.refuse(path, cluster.role_arn, f"{expected}CDK_DEFAULT_ACCOUNT and CDK_DEFAULT_REGION")
        if at == home:
            top.refuse(path, cluster.role_arn, "none: the cluster is in the deployment's own account and Region")
        first = there.setdefault(at, [cluster])[0]
        if (first.role_arn, first.external_id) != (cluster.role_arn, cluster.external_id):
            shared = f"roleArn and externalId of cluster {first.name}, which is in the same account and Region"
            top.refuse(path, cluster.role_arn, shared)
        if first.alarm_topic != cluster.alarm_topic:
            shared = (
                f"{first.alarm_topic or 'none'} as of cluster {first.name}, which is in the same account and Region"
            )
            top.refuse(f"clusters[{index}].alarmTopic", cluster.alarm_topic or "nothing", shared)
        if cluster is not first:
            there[at].append(cluster)
    return tuple(_member(top, at, served, node_roles) for at, served in there.items())


def _member(top: Reader, at: tuple[str, str], clusters: Sequence[Cluster], node_roles: Sequence[str]) -> Member:
    account, region = at
    roles = tuple(role for role in node_roles if role.split(":")[4] == account)
    if not roles:
        names = ", ".join(cluster.name for cluster in clusters)
        top.refuse("nodeRoles", f"no role of account {account}", f"the roles that the nodes of {names} run as")
    first = clusters[0]
    return Member(
        account=account,
        region=region,
        role_arn=str(first.role_arn),
        external_id=str(first.external_id),
        clusters=tuple(clusters),
        node_roles=roles,
        alarm_topic=first.alarm_topic,
    )


def roles_at_home(node_roles: Sequence[str], account: str | None, members: Sequence[Member]) -> tuple[str, ...]:
    """Return the node roles that launches at home may pass: all but those of other accounts."""
    others = {member.account for member in members} - {account}
    return tuple(role for role in node_roles if role.split(":")[4] not in others)


def environment_of(cluster: Cluster) -> Mapping[str, str]:
    """Return the keys of the functions' setting CLUSTERS for a cluster elsewhere."""
    return {"memberRole": str(cluster.role_arn), "externalId": str(cluster.external_id)}
