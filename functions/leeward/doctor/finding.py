"""Finding about one part of a deployment: what was found, its state, and the fix."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from leeward.doctor.reading import ErrorCause, UnreadFact


class State(StrEnum):
    """State of a finding. `failed`: nodes are lost undrained, or a feature of Leeward does not work. `warning`: an
    operator should know. `unknown`: it could not be read.
    """

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"
    UNKNOWN = "unknown"


class Part(StrEnum):
    """Groups of checks that are shown together."""

    ACCOUNT = "account"
    DEPLOYMENT = "deployment"
    EVENTS = "events and schedules"
    QUEUES = "queues"
    ALARMS = "alarms"
    RUNS = "runs"
    CLUSTERS = "clusters"
    POLICIES = "policies"
    GROUPS = "groups"


class Check(StrEnum):
    """Closed set of checks; each belongs to one part (`PART_OF`)."""

    CREDENTIALS = "credentials"
    CONCURRENCY = "concurrency"
    DEPLOYMENT = "deployment"
    FUNCTION = "function"
    FUNCTION_ERRORS = "function-errors"
    VPC_ENDPOINT = "vpc-endpoint"
    STATE_MACHINE = "state-machine"
    TABLE = "table"
    RULE = "rule"
    SCHEDULE = "schedule"
    EVENT_SOURCE = "event-source"
    QUEUE = "queue"
    QUEUE_POLICY = "queue-policy"
    QUEUE_AGE = "queue-age"
    DEAD_LETTERS = "dead-letters"
    SENDER_TOPIC = "sender-topic"
    ALARM = "alarm"
    ALARM_ACTIONS = "alarm-actions"
    ALARM_TOPIC = "alarm-topic"
    EXECUTIONS = "executions"
    RECORD = "record"
    UPGRADE = "upgrade"
    DISRUPTION = "disruption"
    CLUSTER = "cluster"
    ACCESS_ENTRY = "access-entry"
    API_SERVER = "api-server"
    CLUSTER_ROLE = "cluster-role"
    BINDING = "binding"
    REPLICA_SURGE = "replica-surge"
    SYNC = "sync"
    REACH = "reach"
    OTHER_DEPLOYMENT = "other-deployment"
    FOREIGN_TAINT = "foreign-taint"
    MEMBER_ROLE = "member-role"
    POLICIES = "policies"
    SELECTION = "selection"
    SWITCHES = "switches"
    TAGS = "tags"
    TEMPLATE_TAGS = "template-tags"
    HOOK = "hook"
    PROCESSES = "processes"
    INSTANCE_REFRESH = "instance-refresh"
    LIFECYCLE = "lifecycle"
    LAUNCHES = "launches"
    CAPACITY_UNITS = "capacity-units"


_PARTS: Mapping[Part, tuple[Check, ...]] = {
    Part.ACCOUNT: (Check.CREDENTIALS, Check.CONCURRENCY),
    Part.DEPLOYMENT: (
        Check.DEPLOYMENT,
        Check.FUNCTION,
        Check.FUNCTION_ERRORS,
        Check.VPC_ENDPOINT,
        Check.STATE_MACHINE,
        Check.TABLE,
    ),
    Part.EVENTS: (Check.RULE, Check.SCHEDULE, Check.EVENT_SOURCE),
    Part.QUEUES: (Check.QUEUE, Check.QUEUE_POLICY, Check.QUEUE_AGE, Check.DEAD_LETTERS, Check.SENDER_TOPIC),
    Part.ALARMS: (Check.ALARM, Check.ALARM_ACTIONS, Check.ALARM_TOPIC),
    Part.RUNS: (Check.EXECUTIONS, Check.RECORD, Check.UPGRADE, Check.DISRUPTION),
    Part.CLUSTERS: (
        Check.CLUSTER,
        Check.ACCESS_ENTRY,
        Check.API_SERVER,
        Check.CLUSTER_ROLE,
        Check.BINDING,
        Check.REPLICA_SURGE,
        Check.SYNC,
        Check.REACH,
        Check.OTHER_DEPLOYMENT,
        Check.FOREIGN_TAINT,
        Check.MEMBER_ROLE,
    ),
    Part.POLICIES: (Check.POLICIES, Check.SELECTION, Check.SWITCHES),
    Part.GROUPS: (
        Check.TAGS,
        Check.TEMPLATE_TAGS,
        Check.HOOK,
        Check.PROCESSES,
        Check.INSTANCE_REFRESH,
        Check.LIFECYCLE,
        Check.LAUNCHES,
        Check.CAPACITY_UNITS,
    ),
}
PART_OF: Mapping[Check, Part] = {check: part for part, checks in _PARTS.items() for check in checks}
AGAIN = "run leeward doctor again; where it stays so, make the call yourself and read what it says"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Result of one check. `fix` None where there is nothing to do."""

    check: Check
    object: str
    state: State
    found: str
    fix: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the object of `docs/schema/doctor.json`."""
        return {
            "check": self.check.value,
            "object": self.object,
            "state": self.state.value,
            "found": self.found,
            "fix": self.fix,
        }


@dataclass(frozen=True, slots=True)
class About:
    """Object of a check, and the four findings that it can give."""

    check: Check
    object: str

    def ok(self, found: str) -> Finding:
        """Report that it is in order."""
        return Finding(check=self.check, object=self.object, state=State.OK, found=found)

    def warning(self, found: str, fix: str) -> Finding:
        """Report what an operator should know."""
        return Finding(check=self.check, object=self.object, state=State.WARNING, found=found, fix=fix)

    def failed(self, found: str, fix: str) -> Finding:
        """Report that it is not in order."""
        return Finding(check=self.check, object=self.object, state=State.FAILED, found=found, fix=fix)

    def unknown(self, missing: UnreadFact) -> Finding:
        """Report that it could not be read."""
        fix = f"allow yourself {missing.permission}" if missing.cause is ErrorCause.DENIED else AGAIN
        return Finding(check=self.check, object=self.object, state=State.UNKNOWN, found=missing.reason, fix=fix)
