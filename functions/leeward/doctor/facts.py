"""Facts of a deployment. A part that could not be read is `Unavailable`, one that does not exist None.

Decides nothing about what is in order."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from leeward.disruption.record import DisruptionRecord
from leeward.doctor.reading import Read
from leeward.model.concurrency import Concurrency
from leeward.model.facts import FactKind, NamedHooks
from leeward.model.group import Group, LifecycleHook
from leeward.model.node import Node
from leeward.model.termination import TerminationRecord
from leeward.model.zonal_shift import ZoneRecord
from leeward.policy.document import ClusterPolicies
from leeward.upgrade.record import UpgradeRecord

Rule = tuple[str, str, str]  # (API group, resource, verb), in the words of RBAC


@dataclass(frozen=True, slots=True, kw_only=True)
class CallerIdentity:
    """Identity of the credentials, and their Region."""

    account: str
    region: str
    arn: str
    partition: str = "aws"


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """Lambda function. `state`, `update` as Lambda has them; `concurrency`: reserved, or None; `vpc` empty outside."""

    state: str = "Active"
    update: str = "Successful"
    modified: datetime | None = None
    concurrency: int | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    vpc: str = ""
    subnets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterNetwork:
    """Path from functions in a VPC to AWS's APIs. `endpoints`: names of the VPC's endpoints that are available, without
    `com.amazonaws.REGION.`; `routed`: each of their subnets has a route out, past an internet gateway, which does not
    serve a function.
    """

    vpc: str
    endpoints: frozenset[str]
    routed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Counts of one function's calls within the last hour."""

    errors: int = 0
    throttles: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedExecution:
    """Execution that failed or timed out. `error`, `cause` empty where they were not read."""

    name: str
    status: str
    at: datetime
    error: str = ""
    cause: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventSource:
    """Event source mapping; `result` is Lambda's report of the last try."""

    id: str
    source: str
    state: str
    result: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """SQS queue. `dead_letters` is the ARN that failed messages go to, empty for none; `policy` as SQS has it."""

    arn: str
    url: str
    messages: int = 0
    dead_letters: str = ""
    policy: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageAge:
    """Age in seconds of a queue's oldest message, None without a recent measurement. `unread`: as SQS reports it, which
    leaves out a message that was received three times; `failing`: of those that fn interruption could not handle.
    """

    unread: float | None = None
    failing: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordTable:
    """DynamoDB table. `indexes`: name -> status; `stream`: its changes can be read."""

    status: str
    stream: bool
    indexes: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentAlarm:
    """CloudWatch alarm. `notifies`: it has an action, and actions are switched on; `topics`: ARNs among its actions."""

    state: str
    reason: str = ""
    description: str = ""
    notifies: bool = True
    topics: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicKey:
    """Encryption of an SNS topic. `id`: its KMS key, as the topic names it, empty without one; `policy`: the key's."""

    id: str = ""
    aws_managed: bool = False
    policy: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class EksCluster:
    """EKS cluster. `public`: its API server can be reached from outside its VPC; `authentication` is the mode."""

    status: str
    version: str = ""
    public: bool = True
    authentication: str = "API"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterRole:
    """ClusterRole with its rules listed one by one; rules that name objects allow too little to count."""

    rules: frozenset[Rule]


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """ClusterRoleBinding: its role, and its groups."""

    role: str
    groups: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Upgrade:
    """Upgrade record of a group. `runs`: an execution works on it."""

    record: UpgradeRecord
    runs: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Disruption:
    """Disruption run of a cluster. `runs`: an execution works on it."""

    record: DisruptionRecord
    runs: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """One cluster of the deployment's settings. `roles`: ClusterRole -> ARN of the IAM role with which functions sign
    in for it; a role that the settings do not name is absent. `account`, `region`: of one elsewhere; `external_id`:
    with which functions assume `member_role` there, the stem of their roles.
    """

    name: str
    roles: Mapping[str, str]
    account: str = ""
    region: str = ""
    member_role: str = ""
    external_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class InspectedCluster:
    """One cluster. `served` None: what the deployment serves is not known. `groups`: every one of its account and
    Region. `entries`: Kubernetes groups of the access entry of each role, by the names of `entries.py`; `aws_auth` is
    read where one is missing. `roles`, `bindings` by name. `members`: instances of its nodes. `foreign`: node -> the
    other deployment that is terminating it, by its taint. `tainted`: nodes with a taint of Cluster Autoscaler or
    Karpenter. `synced`: when fn sync recorded each kind of facts; `zones`: evacuations. By group: `hooks`,
    `named_hooks` by policies until lately, `refreshes`, `upgrades`. `template_tags` by id of a launch template; one
    without tags is absent.
    """

    name: str
    served: Served | None
    described: Read[EksCluster | None]
    entries: Mapping[str, Read[tuple[str, ...] | None]]
    aws_auth: Read[str | None]
    version: Read[str]
    roles: Mapping[str, Read[ClusterRole | None]]
    bindings: Mapping[str, Read[Binding | None]]
    groups: Read[tuple[Group, ...]]
    members: Read[frozenset[str]]
    foreign: Mapping[str, str]
    tainted: tuple[Node, ...]
    policies: Read[ClusterPolicies]
    hooks: Mapping[str, Read[tuple[LifecycleHook, ...]]]
    refreshes: Mapping[str, Read[tuple[str, ...]]]
    upgrades: Mapping[str, Read[Upgrade | None]]
    disruption: Read[Disruption | None]
    synced: Read[Mapping[FactKind, datetime]]
    named_hooks: Read[Mapping[str, NamedHooks]]
    zones: Read[ZoneRecord]
    template_tags: Read[Mapping[str, Mapping[str, str]]]
    queue_arns: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """All facts. `requested_cluster`: the only cluster to read; None: all. `serves`: names of the clusters that the
    deployment serves; None: unknown. `failures` and `machines` by state machine, `sources` and `functions` by function.
    `ages` by queue. `elsewhere`: clusters of other accounts and Regions, in which each function says whether it can act
    (`accounts`: function -> cluster -> why it cannot, empty if it can); `clusters` has one of them only where the
    caller has credentials there. `alarm_topics`: topic that alarms notify -> its key; `raw_subscriptions`: topic of
    `senders.topics` -> its subscriptions that deliver raw messages to our queue.
    """

    now: datetime
    identity: CallerIdentity
    requested_cluster: str | None
    serves: tuple[str, ...] | None
    concurrency: Read[Concurrency]
    functions: Mapping[str, Read[Function | None]]
    network: Read[ClusterNetwork | None]
    counts: Read[Mapping[str, Counts]]
    machines: Mapping[str, Read[str | None]]
    failures: Mapping[str, Read[tuple[FailedExecution, ...]]]
    sources: Mapping[str, Read[tuple[EventSource, ...]]]
    queues: Mapping[str, Read[Queue | None]]
    ages: Mapping[str, Read[MessageAge]]
    table: Read[RecordTable | None]
    rules: Read[Mapping[str, bool]]
    targets: Mapping[str, Read[tuple[str, ...]]]
    alarms: Read[Mapping[str, DeploymentAlarm]]
    records: Read[tuple[TerminationRecord, ...]]
    running: Read[frozenset[str]]
    clusters: tuple[InspectedCluster, ...]
    elsewhere: tuple[Served, ...] = ()
    accounts: Mapping[str, Read[Mapping[str, str]]] = field(default_factory=dict)
    alarm_topics: Mapping[str, Read[TopicKey | None]] = field(default_factory=dict)
    raw_subscriptions: Mapping[str, Read[tuple[str, ...]]] = field(default_factory=dict)

    @property
    def nothing_deployed(self) -> bool:
        """True if none of the functions exists."""
        return all(found is None for found in self.functions.values())
