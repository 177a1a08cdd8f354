"""Settings of a deployment: the context key `leeward` (or the file that `-c settings=FILE` names), checked.

This module only reads and checks; the other files use the result. Every mistake is one sentence that names the source,
the path in it, the value found and the value expected. Unknown keys are mistakes: a misspelled switch must not be lost.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from infra.accounts import TOPIC, Member, members_of, role_of, topic_of
from infra.names import Names
from infra.reading import Reader
from leeward.adapters.folder.policy_files import canonical_parameters, load_plain
from leeward.errors import InvalidInputError
from leeward.policy.document import Webhook
from leeward.policy.parse import parse_documents

LARGEST_STANDARD_PARAMETER = 4096  # bytes; larger documents need SSM's advanced tier and costs a little every month
MOST_CLUSTERS = 8  # each needs statements in the functions' roles, of which IAM takes 10,240 characters a role
LONGEST_NAMES = 400  # characters that their names may have together, for the same reason

_DEPLOYMENT = re.compile(r"[a-z][a-z0-9-]{0,14}")
_CLUSTER = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]{0,99}")
_ACCOUNT = re.compile(r"\d{12}")
_REGION = re.compile(r"[a-z]{2}(-[a-z]+)+-\d")
_SUBNET = re.compile(r"subnet-([0-9a-f]{8}|[0-9a-f]{17})")
_SECURITY_GROUP = re.compile(r"sg-([0-9a-f]{8}|[0-9a-f]{17})")
_ROLE = re.compile(r"arn:aws[a-z-]*:iam::\d{12}:role/[\w+=,.@/-]+")  # one role, no pattern
_LIST_NODE_ROLES = "aws eks describe-nodegroup --query nodegroup.nodeRole, or the role of a group's instance profile"
_KEY = re.compile(r"arn:aws[a-z-]*:kms:([a-z0-9-]+):\d{12}:key/(mrk-[0-9a-f]{32}|[0-9a-f-]{36})")
_PARAMETER = re.compile(r"/[\w./-]+\*?")
RUNBOOKS = "docs/runbooks.md"  # of this project; an operator's own copy is set with `runbooks`
_PAGE = re.compile(r"https?://[^\s#]{1,200}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Vpc:
    """VPC of the functions that call Kubernetes, when the clusters' API is private."""

    subnets: tuple[str, ...]
    security_groups: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyParameter:
    """Policy document as SSM stores it: `name` is NN-NAME, `value` canonical JSON of at most 8 KB."""

    name: str
    value: str

    @property
    def size(self) -> int:
        """Size in bytes, as SSM counts it."""
        return len(self.value.encode())


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """EKS cluster that Leeward serves. Of a cluster in another account or Region: `role_arn`, `external_id`, how the
    functions act there, and `alarm_topic`, which the alarm there notifies.
    """

    name: str
    documents: tuple[PolicyParameter, ...]
    account: str | None = None
    region: str | None = None
    vpc: Vpc | None = None
    role_arn: str | None = None
    external_id: str | None = None
    alarm_topic: str | None = None

    @property
    def webhook(self) -> Webhook | None:
        """Webhook that is notified of its terminations, from its ClusterSettings."""
        return _webhook(self.name, self.documents)


@cache  # a deployment asks for each permission of each function; parsing was three quarters of its synthesis
def _webhook(cluster: str, parameters: tuple[PolicyParameter, ...]) -> Webhook | None:
    documents = [(parameter.name, json.loads(parameter.value)) for parameter in parameters]
    return parse_documents(documents, cluster=cluster).settings.webhook


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Values that differ from deployment to deployment.

    `account` and `region` None: the stack is not tied to either. A concurrency of None reserves nothing. `members`: the
    other accounts and Regions in which it serves clusters.
    """

    clusters: tuple[Cluster, ...]
    node_roles: tuple[str, ...]
    account: str | None = None
    region: str | None = None
    vpc: Vpc | None = None
    sender_roles: tuple[str, ...] = ()
    sender_topics: tuple[str, ...] = ()
    image_parameters: tuple[str, ...] = ()
    alarm_topic: str | None = None
    runbooks: str = RUNBOOKS
    kms_key: str | None = None
    access_entries: bool = True
    interruption_concurrency: int | None = 10
    drain_concurrency: int | None = 40
    log_level: str = "INFO"
    log_sampling: int | None = None  # percent of the calls, None for none
    deployment: str = ""
    members: tuple[Member, ...] = ()

    @property
    def at_home(self) -> tuple[Cluster, ...]:
        """Clusters in the deployment's own account and Region."""
        return tuple(cluster for cluster in self.clusters if cluster.role_arn is None)

    @property
    def names(self) -> Names:
        """The physical names of this deployment."""
        return Names(self.deployment)


def read_settings(context: Callable[[str], Any], root: Path, environment: Mapping[str, str]) -> Settings:
    """Read settings from the app's context, policies from files under `root` or beside the settings file.

    Raises InvalidInputError.
    """
    raw, source, folder = _raw(context, root)
    top = Reader(source, "leeward", raw)
    top.only(
        *("clusters", "senders", "nodeRoles", "alarmTopic", "accessEntries", "concurrency", "logLevel"),
        *("logSampling", "runbooks"),
        *("imageParameters", "deployment", "kmsKey"),
    )
    clusters = tuple(_cluster(item, folder) for item in top.items("clusters", at_least=1, at_most=MOST_CLUSTERS))
    _distinct(top, clusters)
    senders = top.mapping("senders")
    senders.only("roles", "topics")
    concurrency = top.mapping("concurrency")
    concurrency.only("interruption", "drain")
    home = account, region = _home(top, [one for one in clusters if one.role_arn is None], environment)
    _secrets_in(region, top, clusters)
    node_roles = _node_roles(top)
    return Settings(
        clusters=clusters,
        account=account,
        region=region,
        vpc=_shared(top, clusters, "vpc"),
        sender_roles=senders.texts("roles", _ROLE, "the ARN of an IAM role"),
        sender_topics=senders.texts("topics", TOPIC, "the ARN of an SNS topic"),
        node_roles=node_roles,
        image_parameters=top.texts("imageParameters", _PARAMETER, "the name of an SSM parameter, which may end with *"),
        kms_key=_kms_key(top, region),
        alarm_topic=top.text("alarmTopic", TOPIC, "the ARN of an SNS topic"),
        runbooks=top.text("runbooks", _PAGE, "the address of a page, such as https://wiki.example.com/leeward")
        or RUNBOOKS,
        access_entries=top.switch("accessEntries", default=True),
        interruption_concurrency=concurrency.count("interruption", default=10, at_least=2),
        drain_concurrency=concurrency.count("drain", default=40, at_least=1),
        log_level=top.choice("logLevel", ("DEBUG", "INFO", "WARNING", "ERROR"), default="INFO"),
        log_sampling=top.count("logSampling", default=0, at_least=1, at_most=100),
        deployment=top.text("deployment", _DEPLOYMENT, "at most 15 small letters, digits and -, a letter first") or "",
        members=members_of(top, clusters, home, node_roles),
    )


def _node_roles(top: Reader) -> tuple[str, ...]:
    """Return the roles that a launch may pass to EC2. They are never guessed: a function that may pass any role can
    start an instance with the most powerful one of the account.
    """
    if not top.has("nodeRoles"):
        top.refuse("nodeRoles", "nothing", f"the ARNs of the roles that your nodes run as: {_LIST_NODE_ROLES}")
    return top.texts("nodeRoles", _ROLE, "the ARN of one IAM role, without *", at_least=1)


def _kms_key(top: Reader, region: str | None) -> str | None:
    """Return the ARN of the customer's key; Lambda and CloudWatch Logs take no alias and no key of another Region."""
    arn = top.text("kmsKey", _KEY, "the ARN of a KMS key, no alias")
    found = _KEY.fullmatch(arn or "")
    if found and region and found[1] != region:
        top.refuse("kmsKey", found[1], f"a key in {region}, the deployment's Region")
    return arn


def _secrets_in(region: str | None, top: Reader, clusters: Sequence[Cluster]) -> None:
    """Refuse a webhook's secret in another Region: CloudFormation reads secrets of its own only."""
    for index, cluster in enumerate(clusters):
        arn = cluster.webhook.secret_arn if cluster.webhook else None
        if region and arn and arn.split(":")[3] != region:
            top.refuse(f"clusters[{index}].policies", f"webhook.secretArn in {arn.split(':')[3]}", f"one in {region}")


def _home(top: Reader, clusters: Sequence[Cluster], environment: Mapping[str, str]) -> tuple[str | None, str | None]:
    """Return (account, region) as the clusters name them, else those of the credentials in use. Without credentials the
    CDK still names a default region; the stack then stays free of both.
    """
    account, region = environment.get("CDK_DEFAULT_ACCOUNT"), environment.get("CDK_DEFAULT_REGION")
    ours = (account, region) if account and region else (None, None)
    return _shared(top, clusters, "account") or ours[0], _shared(top, clusters, "region") or ours[1]


def _raw(context: Callable[[str], Any], root: Path) -> tuple[Any, str, Path]:
    """Return the input, its name for messages, and the folder to which its policies are relative."""
    if (named := context("settings")) is not None:
        file = root / str(named)
        return _from_file(file, str(named)), str(named), file.parent
    given = context("leeward")
    if isinstance(given, str):  # -c leeward='{…}' arrives as text
        try:
            return json.loads(given), "context", root
        except ValueError as error:
            raise InvalidInputError(f"context: leeward: found {given!r}, expected JSON ({error})") from error
    if given is None:
        raise InvalidInputError('context: leeward: found nothing, expected {"clusters": [{"name", "policies"}]}')
    return given, "context", root


def _from_file(file: Path, named: str) -> Any:
    try:
        text = file.read_text(encoding="utf-8")
        documents = [json.loads(text)] if file.suffix == ".json" else load_plain(text)
        if len(documents) > 1:
            raise ValueError(f"{len(documents)} documents, expected one")
        return documents[0] if documents else None
    except OSError as error:
        raise InvalidInputError(f"{named}: cannot be read: {error.strerror}") from error
    except (ValueError, yaml.YAMLError) as error:
        raise InvalidInputError(f"{named}: found no valid JSON or YAML: {' '.join(str(error).split())}") from error


def _cluster(reader: Reader, folder: Path) -> Cluster:
    reader.only("name", "policies", "region", "account", "vpc", "roleArn", "externalId", "alarmTopic")
    account = reader.text("account", _ACCOUNT, "twelve digits, as text")
    region = reader.text("region", _REGION, "a region such as eu-west-1")
    role_arn, external_id = role_of(reader, account, region)
    name = reader.needed_text("name", _CLUSTER, "an EKS cluster's name")
    return Cluster(
        name=name,
        documents=_documents(reader, name, folder),
        account=account,
        region=region,
        vpc=_vpc(reader.mapping("vpc")) if reader.has("vpc") else None,
        role_arn=role_arn,
        external_id=external_id,
        alarm_topic=topic_of(reader, account, region),
    )


def _vpc(reader: Reader) -> Vpc:
    reader.only("subnetIds", "securityGroupIds")
    return Vpc(
        subnets=reader.texts("subnetIds", _SUBNET, "a subnet id", at_least=1),
        security_groups=reader.texts("securityGroupIds", _SECURITY_GROUP, "a security group id", at_least=1),
    )


def _documents(reader: Reader, cluster: str, folder: Path) -> tuple[PolicyParameter, ...]:
    """Return the files of the patterns in their order, those of one pattern by name; none where the key is absent:
    `leeward policy apply` writes the cluster's policies then. Raises InvalidPolicyError, also over 8 KB.
    """
    if not reader.has("policies"):
        return ()
    patterns = reader.texts("policies", None, "a path or pattern of policy files", at_least=1)
    parameters = canonical_parameters(patterns, cluster, folder)
    if not parameters:
        reader.refuse("policies", " ".join(patterns), "at least one policy document in them")
    return tuple(PolicyParameter(name=name, value=value) for name, value in parameters)


def _distinct(top: Reader, clusters: tuple[Cluster, ...]) -> None:
    names = [cluster.name for cluster in clusters]
    if sum(map(len, names)) > LONGEST_NAMES:
        top.refuse("clusters", f"names of {sum(map(len, names))} characters", f"at most {LONGEST_NAMES} together")
    for index, name in enumerate(names):
        if name in names[:index]:
            top.refuse(f"clusters[{index}].name", name, "each cluster once, and no name twice: records go by it")


def _shared(top: Reader, clusters: Sequence[Cluster], key: str) -> Any:
    """Return the account, region or VPC that the clusters share: a deployment has its rules, queue and functions in one
    of each.
    """
    values = {getattr(cluster, key) for cluster in clusters}
    if key != "vpc":
        values.discard(None)
    if len(values) > 1:
        shown = " and ".join(sorted(_shown(value) for value in values))
        otherwise = "" if key == "vpc" else ", or roleArn and externalId beside that of another"
        top.refuse(f"clusters[].{key}", shown, f"the same {key} for all clusters of one deployment{otherwise}")
    return next(iter(values), None)


def _shown(value: Vpc | str | None) -> str:
    return "/".join(value.subnets) if isinstance(value, Vpc) else str(value or "none")
