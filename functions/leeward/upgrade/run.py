"""Run document and lease of an upgrade.

The run document travels between the steps of node-group-upgrade: small, versioned, the same for every step.

The lease: the record, held by one execution of one of two state machines; `workflow.lease` decides how the record is
written. node-group-upgrade replaces the nodes of self-managed groups; managed-node-group-upgrade supervises EKS, which
rolls managed node groups. Both use the same lease, so the record may name an execution of either. An execution of the
wrong state machine passes the lease on to one of the other."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Self

from leeward.budgets import healthy_pods
from leeward.budgets.healthy_pods import HealthSample
from leeward.errors import GroupBusyError, InvalidInputError
from leeward.ports.executions import NamedExecutions
from leeward.ports.records import Disruptions, Upgrades
from leeward.upgrade.record import NotedHold, UpgradeRecord
from leeward.workflow.executions import execution_name, start_first_free
from leeward.workflow.lease import LeaseLostError, write_version
from leeward.workflow.steps import check_started, found_in

VERSION = 1
STARTED: Mapping[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("group", "cluster", "action", "ami", "kubernetesVersion", "by"), str),
    "launchTemplateVersion": (str, int),
    **{"groups": list, "then": list, "override": list, "force": bool},
    **{"attempt": int, "after": str, "automatic": str, "v": int},  # of starts by Leeward itself
}  # keys of an execution's input
REFUSED_UPDATE = "NodegroupUpdateFailure"  # error of an upgrade whose update EKS has refused or failed
MOST_PAUSES = 1500  # of one execution: about ten events each, of the 25,000 that its history may have
LONGEST_WHY = 500
MAX_NAMES_TRIED = 100  # for the next execution


class UpgradeNext(StrEnum):
    """Next transition of the state machine; its Choice states compare with these words."""

    HAND_OVER = "hand-over"  # another execution holds the lease
    RECORDED = "recorded"  # the request is recorded, the running execution reads it
    CHECK = "check"
    MANAGED = "managed"  # EKS rolls the group, Leeward supervises
    BLOCKED = "blocked"
    PREPARE = "prepare"
    POINT = "point"
    LAUNCH = "launch"
    WAIT = "wait"
    READY = "ready"
    CORDONED = "cordoned"
    PAUSED = "paused"
    ALARM = "alarm"
    WINDOW = "window"
    BAKE = "bake"
    ABORT = "abort"
    ROLLBACK = "rollback"
    SCALE_DOWN = "scale-down"
    RESTORE = "restore"
    CREATION_FAILURE = "creation-failure"
    EVICTION_FAILURE = "eviction-failure"
    UPDATE_FAILURE = "update-failure"
    UPGRADED = "upgraded"
    ABORTED = "aborted"
    ROLLED_BACK = "rolled-back"
    CONTINUED = "continued"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradeRun:
    """State of one execution between two steps."""

    group: str
    execution: str
    next: UpgradeNext
    cluster: str = ""
    attempt: int = 0
    pause: int = 0  # seconds
    pauses: int = 0  # so many so far, which bound the history of the execution
    why: str = ""
    healthy: tuple[HealthSample, ...] = ()  # budgets that this step has read; not passed on
    hold: NotedHold | None = None  # what holds the upgrade; not passed on

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """Parse the document. Raises InvalidInputError naming what is wrong: operators start executions manually."""
        group, groups = raw.get("group"), raw.get("groups")
        if group is None and isinstance(groups, list) and groups:
            group = groups[0]
        if not isinstance(group, str) or not group:
            raise InvalidInputError(f"group: found {found_in(group)}, expected the name of an Auto Scaling group")
        check_started(raw, STARTED)
        return cls(
            group=group,
            execution=str(raw.get("execution") or ""),
            next=UpgradeNext(raw.get("next") or UpgradeNext.CHECK),
            cluster=str(raw.get("cluster") or ""),
            attempt=int(raw.get("attempt") or 0),
            pause=int(raw.get("pause") or 0),
            pauses=int(raw.get("pauses") or 0),
            why=str(raw.get("why") or ""),
        )

    def handed_over(self, why: str) -> Self:
        """Return the document of an execution that ends because another one has the lease."""
        return replace(self, next=UpgradeNext.HAND_OVER, why=why)

    @property
    def about(self) -> str:
        """Name of what is upgraded, in the words of a failed execution's cause."""
        return f"group {self.group}" + (f", cluster {self.cluster}" if self.cluster else "")

    def to_json(self) -> dict[str, Any]:
        """Return the document that the state machine carries."""
        return {
            "v": VERSION,
            "group": self.group,
            "cluster": self.cluster,
            "about": self.about,
            "execution": self.execution,
            "attempt": self.attempt,
            "next": self.next.value,
            "pause": self.pause,
            "pauses": self.pauses,
            "full": self.pauses >= MOST_PAUSES,
            "why": self.why[:LONGEST_WHY],
            **({"healthy": healthy_pods.to_json(self.healthy)} if self.healthy else {}),
        }


def is_running(name: str, upgrade_executions: NamedExecutions, managed_upgrade_executions: NamedExecutions) -> bool:
    """Return whether an execution of this name runs in either state machine; False for an empty name."""
    machines = (upgrade_executions, managed_upgrade_executions)
    return bool(name) and any(executions.running(name) for executions in machines)


def start_next(
    group: str,
    nodegroup: str | None,
    attempt: int,
    document: Mapping[str, Any],
    upgrade_executions: NamedExecutions,
    managed_upgrade_executions: NamedExecutions,
) -> str:
    """Start the execution of the attempt after this one, and return its name; a name that is taken is skipped.

    `nodegroup`: name of the managed node group, whose state machine is the other one; None: self-managed. `document`:
    input of the execution. Idempotent while the execution runs. Raises RecordChangedError.
    """
    executions = upgrade_executions if nodegroup is None else managed_upgrade_executions
    names = (execution_name(group, attempt + number) for number in range(1, MAX_NAMES_TRIED + 1))
    return start_first_free(executions, names, document)


def is_held(
    record: UpgradeRecord, upgrade_executions: NamedExecutions, managed_upgrade_executions: NamedExecutions
) -> bool:
    """Return whether the upgrade has not ended and the execution that its record names runs."""
    return record.ended is None and is_running(record.execution, upgrade_executions, managed_upgrade_executions)


def written(record: UpgradeRecord, upgrades: Upgrades) -> UpgradeRecord:
    """Write the record and return it with its new version. Raises RecordChangedError; the step is then run again."""
    return write_version(record, upgrades.write, f"upgrade of {record.group}")


def read(run: UpgradeRun, upgrades: Upgrades) -> UpgradeRecord:
    """Return the record of the run's upgrade. Raises LeaseLostError if another execution holds it now."""
    record = upgrades.read(run.group)
    if record is None or record.execution != run.execution:
        raise LeaseLostError(f"upgrade of {run.group}: execution {record.execution if record else '?'} has it now")
    return record


def wait_for_disruption(record: UpgradeRecord, disruptions: Disruptions) -> None:
    """Raise GroupBusyError while a disruption run holds the group; the state machine retries for an hour."""
    disruption = disruptions.read(record.cluster)
    if disruption is not None and disruption.open and record.group in disruption.groups:
        nodes = ", ".join(disruption.to_terminate)
        raise GroupBusyError(
            f"disruption run {disruption.number} ({disruption.method.value}) holds {record.group}: {nodes}"
        )
