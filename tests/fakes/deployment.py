"""A deployment in memory as `leeward doctor` sees it: whole from the start, a test takes parts of it away."""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from leeward import __version__
from leeward.doctor import expected
from leeward.doctor.checks.functions import VERSION
from leeward.doctor.facts import (
    Binding,
    CallerIdentity,
    ClusterNetwork,
    ClusterRole,
    Counts,
    DeploymentAlarm,
    EksCluster,
    EventSource,
    FailedExecution,
    Function,
    MessageAge,
    Queue,
    RecordTable,
    TopicKey,
)
from leeward.model.concurrency import Concurrency
from leeward.model.group import Group
from tests.fakes.calls import Calls

ACCOUNT, REGION = "111122223333", "us-east-1"
WHO = CallerIdentity(account=ACCOUNT, region=REGION, arn=f"arn:aws:iam::{ACCOUNT}:user/pat")


def arn(service: str, resource: str) -> str:
    return f"arn:aws:{service}:{REGION}:{ACCOUNT}:{resource}"


def role_of(cluster: str, access: str = "act") -> str:
    return f"arn:aws:iam::{ACCOUNT}:role/leeward-{cluster}-{access}"


def a_queue(name: str, *, messages: int = 0) -> Queue:
    """Those that are read with their policy and their dead-letter queue."""
    url = f"https://sqs.{REGION}.amazonaws.com/{ACCOUNT}/{name}"
    if name not in expected.READ_QUEUES:
        return Queue(arn=arn("sqs", name), url=url, messages=messages)
    rules = [arn("events", f"rule/{rule}") for rule, target in expected.QUEUE_RULES.items() if target == f":{name}"]
    statement = {
        "Effect": "Allow",
        "Principal": {"Service": "events.amazonaws.com"},
        "Action": "sqs:SendMessage",
        "Condition": {"ArnEquals": {"aws:SourceArn": rules}},
    }
    return Queue(
        arn=arn("sqs", name),
        url=url,
        messages=messages,
        dead_letters=arn("sqs", expected.DEAD_LETTERS),
        policy={"Statement": [statement]},
    )


class FakeRbac(Calls):
    """The ClusterRoles of this version, bound."""

    def __init__(self) -> None:
        super().__init__()
        self.roles: dict[str, ClusterRole] = {name: ClusterRole(rules=rules) for name, rules in expected.NEEDED.items()}
        self.bound: dict[str, Binding] = {
            name: Binding(role=name, groups=expected.KUBERNETES_GROUPS[name]) for name in expected.NEEDED
        }
        self.map_roles: str | None = None

    def version(self) -> str:
        """Some server's."""
        self._call("version")
        return "v1.33.1"

    def cluster_role(self, name: str) -> ClusterRole | None:
        """One of `roles`."""
        self._call("cluster_role")
        return self.roles.get(name)

    def binding(self, name: str) -> Binding | None:
        """One of `bound`."""
        self._call("binding")
        return self.bound.get(name)

    def aws_auth(self) -> str | None:
        """`map_roles`."""
        self._call("aws_auth")
        return self.map_roles


class FakeDeployment(Calls):
    """Every part is an attribute; `serving` are its clusters, `listed` all groups of the account."""

    def __init__(self, *serving: str, listed: Iterable[Group] = ()) -> None:
        super().__init__()
        accesses = ("taint", "act")
        clusters = [
            {"name": name, **{f"{access}Role": role_of(name, access) for access in accesses}} for name in serving
        ]
        queue = arn("sqs", expected.QUEUE)
        reported = {"CLUSTERS": json.dumps(clusters), "QUEUE_ARN": queue, "HOOK_TOPICS": "[]", VERSION: __version__}
        self.who = WHO
        self.endpoints = set(expected.ENDPOINTS)
        self.routed = False
        self.executions = Concurrency(limit=1000, unreserved=900)
        self.functions = {name: Function(environment=reported) for name in expected.FUNCTIONS}
        self.counted: dict[str, Counts] = {}
        self.acting: dict[str, str] = dict.fromkeys(serving, "")
        self.refused: dict[str, dict[str, str]] = {}
        self.machines = dict.fromkeys(expected.MACHINES, "ACTIVE")
        self.ended: dict[str, list[FailedExecution]] = {}
        self.read_by = {
            "leeward-interruption": [
                EventSource(id="e-1", source=arn("sqs", expected.QUEUE), state="Enabled"),
                EventSource(id="e-3", source=arn("sqs", expected.STATE_CHANGES), state="Enabled"),
            ],
            "leeward-notifications": [
                EventSource(id="e-2", source=arn("dynamodb", "table/leeward/stream/2026"), state="Enabled")
            ],
        }
        self.queues = {name: a_queue(name) for name in expected.QUEUES}
        self.ages: dict[str, MessageAge] = {}
        self.tables = {expected.TABLE: RecordTable(status="ACTIVE", stream=True, indexes={expected.INDEX: "ACTIVE"})}
        aimed = {**expected.RULES, **expected.SCHEDULES}
        self.enabled = dict.fromkeys(aimed, True)
        self.aims = {name: [f"arn:aws:any:{REGION}:{ACCOUNT}{target}"] for name, target in aimed.items()}
        self.ringing = {name: DeploymentAlarm(state="OK") for name in expected.ALARMS}
        self.keys: dict[str, TopicKey | None] = {}
        self.raw: dict[str, list[str]] = {}
        self.listed = list(listed)
        self.template_tags: dict[str, dict[str, str]] = {}
        self.known = {name: EksCluster(status="ACTIVE", version="1.33") for name in serving}
        self.entries = {
            (name, role_of(name, access)): (f"leeward:{access}",) for name in serving for access in accesses
        }
        self.inside = {name: FakeRbac() for name in serving}

    def concurrency(self) -> Concurrency:
        """`executions`."""
        self._call("concurrency")
        return self.executions

    def network(self, vpc: str, subnets: Iterable[str]) -> ClusterNetwork:
        """Endpoints of `endpoints`, a route out where `routed`."""
        self._call("network")
        return ClusterNetwork(vpc=vpc, endpoints=frozenset(self.endpoints), routed=self.routed)

    def identity(self) -> CallerIdentity:
        """`who`."""
        self._call("identity")
        return self.who

    def function(self, name: str) -> Function | None:
        """One of `functions`."""
        self._call("function")
        return self.functions.get(name)

    def accounts(self, function: str) -> Mapping[str, str]:
        """`acting`, or what `refused` says of one function."""
        self._call("accounts")
        return {**self.acting, **self.refused.get(function, {})}

    def counts(self, functions: Iterable[str], since: datetime, now: datetime) -> Mapping[str, Counts]:
        """`counted`; nothing of the others, as CloudWatch has no datum of what did not happen."""
        self._call("counts")
        return {name: self.counted[name] for name in functions if name in self.counted}

    def message_age(self, queue: str, now: datetime) -> MessageAge:
        """One of `ages`; an idle queue has no measurement."""
        self._call("message_age")
        return self.ages.get(queue, MessageAge())

    def topic_key(self, topic: str) -> TopicKey | None:
        """One of `keys`; a topic that is not named there has none."""
        self._call("topic_key")
        return self.keys.get(topic, TopicKey())

    def raw_subscriptions(self, topic: str, queue: str) -> Sequence[str]:
        """Of `raw`, where the queue is ours."""
        self._call("raw_subscriptions")
        return self.raw.get(topic, []) if queue == arn("sqs", expected.QUEUE) else []

    def machine(self, name: str) -> str | None:
        """One of `machines`."""
        self._call("machine")
        return self.machines.get(name)

    def failures(self, machine: str, since: datetime) -> Sequence[FailedExecution]:
        """Those of `ended` since then."""
        self._call("failures")
        return [one for one in self.ended.get(machine, ()) if one.at >= since]

    def sources(self, function: str) -> Sequence[EventSource]:
        """Of `read_by`."""
        self._call("sources")
        return self.read_by.get(function, [])

    def queue(self, name: str) -> Queue | None:
        """One of `queues`."""
        self._call("queue")
        return self.queues.get(name)

    def table(self, name: str) -> RecordTable | None:
        """One of `tables`."""
        self._call("table")
        return self.tables.get(name)

    def rules(self, prefix: str) -> Mapping[str, bool]:
        """`enabled`."""
        self._call("rules")
        return {name: on for name, on in self.enabled.items() if name.startswith(prefix)}

    def targets(self, rule: str) -> Sequence[str]:
        """Of `aims`."""
        self._call("targets")
        return self.aims.get(rule, [])

    def alarms(self, prefix: str) -> Mapping[str, DeploymentAlarm]:
        """`ringing`."""
        self._call("alarms")
        return {name: alarm for name, alarm in self.ringing.items() if name.startswith(prefix)}

    def groups(self) -> Sequence[Group]:
        """`listed`."""
        self._call("groups")
        return self.listed

    def tags(self, ids: Iterable[str]) -> Mapping[str, Mapping[str, str]]:
        """Those of `template_tags` that are asked for."""
        self._call("tags")
        wanted = set(ids)
        return {name: tags for name, tags in self.template_tags.items() if name in wanted and tags}

    def cluster(self, name: str) -> EksCluster | None:
        """One of `known`."""
        self._call("cluster")
        return self.known.get(name)

    def entry(self, cluster: str, role: str) -> Sequence[str] | None:
        """One of `entries`."""
        self._call("entry")
        return self.entries.get((cluster, role))

    def rbac(self, cluster: str) -> FakeRbac:
        """One of `inside`."""
        return self.inside.setdefault(cluster, FakeRbac())
