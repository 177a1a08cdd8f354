"""Parameters of the packaged template, their conditions and rules, and the markers that stand for them in a synthesis.

A marker is a valid value of its setting that nothing else in the template contains.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from infra.settings import MOST_CLUSTERS, RUNBOOKS

SLOTS = tuple(f"Cluster{number}" for number in range(1, MOST_CLUSTERS + 1))
LONGEST_CLUSTER = (
    33  # characters: `leeward-REGION-NAME-taint` is a role's name, which has 64, and no template can cut it
)

NODE_ROLES = "arn:aws:iam::111122223333:role/NodeRoleArns"
ALARM_TOPIC = "arn:aws:sns:us-east-1:111122223333:AlarmTopicArn"
KMS_KEY = "arn:aws:kms:us-east-1:111122223333:key/aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa"
SENDER_ROLES = "arn:aws:iam::111122223333:role/SenderRoleArns"
SENDER_TOPICS = "arn:aws:sns:us-east-1:111122223333:SenderTopicArns"
IMAGES = "/ImageParameterArns"
SUBNETS = "subnet-0aaaaaaaaaaaaaaaa"
SECURITY_GROUPS = "sg-0aaaaaaaaaaaaaaaa"
LOG_LEVEL = "LogLevel-marker"
RUNBOOKS_PAGE = "https://runbooks.example.com/RunbooksUrl"

SCALARS: Mapping[str, str] = {
    ALARM_TOPIC: "AlarmTopicArn",
    KMS_KEY: "KmsKeyArn",
    LOG_LEVEL: "LogLevel",
    RUNBOOKS_PAGE: "RunbooksUrl",
}
"""Marker -> parameter that takes its place."""

LISTS: Mapping[str, str] = {
    NODE_ROLES: "NodeRoleArns",
    SENDER_ROLES: "SenderRoleArns",
    SENDER_TOPICS: "SenderTopicArns",
    IMAGES: "ImageParameterArns",
    SUBNETS: "SubnetIds",
    SECURITY_GROUPS: "SecurityGroupIds",
}
"""Marker of one item -> parameter with the list that takes its place."""

WITH_TOPIC, WITH_KEY, IN_VPC = "NotifiesOfAlarms", "EncryptsWithOwnKey", "RunsInVpc"
WITH_ENTRIES, RESERVES = "MakesAccessEntries", "ReservesConcurrency"
WITH_ROLES, WITH_TOPICS, WITH_IMAGES = "AdmitsRoles", "AdmitsTopics", "ReadsImageParameters"

_CLUSTER = f"[0-9A-Za-z][0-9A-Za-z_-]{{0,{LONGEST_CLUSTER - 1}}}"
_ROLE = r"arn:aws[a-z-]*:iam::\d{12}:role/[\w+=,.@/-]+"
_TOPIC = r"arn:aws[a-z-]*:sns:[a-z0-9-]+:\d{12}:.+"
_KEY = r"arn:aws[a-z-]*:kms:[a-z0-9-]+:\d{12}:key/(mrk-[0-9a-f]{32}|[0-9a-f-]{36})"
_PARAMETER = r"arn:aws[a-z-]*:ssm:[a-z0-9-]*:\d{12}:parameter/[\w./-]+\*?"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """Parameter of the template. `default` None: a value is needed; else an empty one is allowed."""

    name: str
    description: str
    pattern: str | None = None
    default: str | None = ""
    many: bool = False
    allowed: tuple[str, ...] = ()

    def definition(self) -> dict[str, Any]:
        """Return the entry of the section `Parameters`."""
        given: dict[str, Any] = {
            "Type": "CommaDelimitedList" if self.many else "String",
            "Description": self.description,
        }
        if self.default is not None:
            given["Default"] = self.default
        if self.pattern is not None:
            given["AllowedPattern"] = f"^({self.pattern}){'' if self.default is None else '?'}$"
        if self.allowed:
            given["AllowedValues"] = list(self.allowed)
        return given


def _switch(name: str, description: str) -> Parameter:
    return Parameter(name=name, description=description, default="true", allowed=("true", "false"))


def _list(name: str, pattern: str, description: str) -> Parameter:
    return Parameter(name=name, description=description, pattern=pattern, many=True)


_CLUSTERS = tuple(
    Parameter(
        name=slot,
        pattern=_CLUSTER,
        description=(
            f"Name of an EKS cluster, at most {LONGEST_CLUSTER} characters. A cluster keeps its parameter: empty the "
            "parameter of one that leaves, and move no other"
        ),
    )
    for slot in SLOTS
)
GROUPS: Mapping[str, tuple[Parameter, ...]] = {
    "Clusters": _CLUSTERS,
    "Nodes": (
        Parameter(
            name="NodeRoleArns",
            pattern=_ROLE,
            default=None,
            many=True,
            description="ARNs of the roles that your nodes run as; a launch can pass no other role to EC2",
        ),
        _list("ImageParameterArns", _PARAMETER, "ARNs of your SSM parameters by which launch templates name an image"),
    ),
    "Lambda asset": (
        Parameter(
            name="AssetBucket",
            pattern=r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]",
            default=None,
            description="S3 bucket in this Region that holds the Lambda asset",
        ),
        Parameter(
            name="AssetPrefix",
            pattern=r"[\w./-]*/",
            default="leeward/",
            description="Folder of the asset in the bucket, empty or ending with /; the file's name is the template's",
        ),
    ),
    "Private API servers": (
        _list("SubnetIds", "subnet-([0-9a-f]{8}|[0-9a-f]{17})", "Subnets of the functions that call Kubernetes"),
        _list("SecurityGroupIds", "sg-([0-9a-f]{8}|[0-9a-f]{17})", "Security groups of these functions"),
    ),
    "Operation": (
        Parameter(
            name="AlarmTopicArn", pattern=_TOPIC, description="SNS topic that receives the alarms and their ends"
        ),
        Parameter(
            name="RunbooksUrl",
            pattern=r"docs/runbooks\.md|https?://[^\s#]{1,200}",
            default=RUNBOOKS,
            description="Page with the runbooks, to whose sections the alarms' descriptions link",
        ),
        Parameter(
            name="LogLevel",
            default="INFO",
            allowed=("DEBUG", "INFO", "WARNING", "ERROR"),
            description="Of the functions' logs",
        ),
        _switch(
            "ReserveConcurrency",
            "true reserves 12 concurrent executions for interruptions and 40 for drains; false in an account whose "
            "quota is too small for that",
        ),
    ),
    "Access": (
        _switch("AccessEntries", "false where the clusters' access is arranged elsewhere (aws-auth)"),
        Parameter(
            name="KmsKeyArn",
            pattern=_KEY,
            description="KMS key of yours in this Region for logs, table, queues and environment",
        ),
        _list("SenderRoleArns", _ROLE, "Roles that may put messages into the interruption queue"),
        _list("SenderTopicArns", _TOPIC, "SNS topics that may put lifecycle notifications into the interruption queue"),
    ),
}
"""Group, as the console shows it -> its parameters."""

PARAMETERS = tuple(parameter for group in GROUPS.values() for parameter in group)


def has(slot: str) -> str:
    """Return the condition that a cluster's parameter is set."""
    return f"Has{slot}"


def follows(slot: str) -> str:
    """Return the condition that a parameter before this cluster's is set. The first one has none."""
    return f"Follows{slot}"


def with_entries(slot: str) -> str:
    """Return the condition that the cluster is set and gets access entries."""
    return f"{WITH_ENTRIES}For{slot}"


def conditions() -> dict[str, Any]:
    """Return the section `Conditions`."""
    optional = {WITH_TOPIC: "AlarmTopicArn", WITH_KEY: "KmsKeyArn", **{has(slot): slot for slot in SLOTS}}
    lists = {
        IN_VPC: "SubnetIds",
        WITH_ROLES: "SenderRoleArns",
        WITH_TOPICS: "SenderTopicArns",
        WITH_IMAGES: "ImageParameterArns",
    }
    return {
        **{name: _filled({"Ref": parameter}) for name, parameter in optional.items()},
        **{name: _filled({"Fn::Join": ["", {"Ref": parameter}]}) for name, parameter in lists.items()},
        WITH_ENTRIES: {"Fn::Equals": [{"Ref": "AccessEntries"}, "true"]},
        RESERVES: {"Fn::Equals": [{"Ref": "ReserveConcurrency"}, "true"]},
        **dict(_preceding()),
        **{with_entries(slot): {"Fn::And": [{"Condition": has(slot)}, {"Condition": WITH_ENTRIES}]} for slot in SLOTS},
    }


def rules() -> dict[str, Any]:
    """Return the section `Rules`: assertions that CloudFormation makes before it changes anything."""
    empty = [{"Fn::Equals": [{"Ref": slot}, ""]} for slot in SLOTS]
    return {
        "SomeCluster": {
            "Assertions": [
                {"Assert": {"Fn::Not": [{"Fn::And": empty}]}, "AssertDescription": "Set one of Cluster1 to Cluster8"}
            ]
        }
    }


def interface() -> dict[str, Any]:
    """Return the groups and their order for the console."""
    return {
        "ParameterGroups": [
            {"Label": {"default": label}, "Parameters": [parameter.name for parameter in group]}
            for label, group in GROUPS.items()
        ]
    }


def _filled(value: Any) -> dict[str, Any]:
    return {"Fn::Not": [{"Fn::Equals": [value, ""]}]}


def _preceding() -> list[tuple[str, Any]]:
    """Return the conditions by which a list in a text knows that a comma precedes an item."""
    found: list[tuple[str, Any]] = []
    for number, slot in enumerate(SLOTS[1:], start=1):
        before = [{"Condition": has(earlier)} for earlier in SLOTS[:number]]
        found.append((follows(slot), {"Fn::Or": before} if number > 1 else _filled({"Ref": SLOTS[0]})))
    return found
