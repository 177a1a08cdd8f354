"""Status of an upgrade: phase, gate, counts, what blocks it and when it should end.

Decides from the upgrade's record, where there is one, and from the cluster's state; without a record (offline, or
run by another controller) from the cluster's state alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from leeward.blockers.blocker import Blocker
from leeward.model.counts import count_of
from leeward.model.termination import TerminationRecord
from leeward.model.times import format_instant
from leeward.upgrade.control import Hold, Move, Permission
from leeward.upgrade.failures import blocking_drains, leaving
from leeward.upgrade.gate import Gate, gate_of
from leeward.upgrade.members import Age, Member
from leeward.upgrade.preflight.model import Preflight
from leeward.upgrade.preflight.plan import seconds_left
from leeward.upgrade.record import ControlRequest, UpgradeRecord
from leeward.upgrade.surge.orders import zones_in_reach


class UpgradePhase(StrEnum):
    """Phase of an upgrade, a closed set (docs/schema/upgrade-status.json)."""

    NOT_STARTED = "not-started"
    STARTING = "starting"
    SCALING_UP = "scaling-up"
    CORDONING = "cordoning"
    UPGRADING = "upgrading"
    SCALING_DOWN = "scaling-down"
    PAUSED = "paused"
    HELD = "held"
    WAITING = "waiting"
    BAKING = "baking"
    ABORTING = "aborting"
    ABORTED = "aborted"
    ROLLING_BACK = "rolling-back"
    STOPPED = "stopped"
    FAILED = "failed"
    DONE = "done"


_OF_HOLD = {
    Hold.PAUSED: UpgradePhase.PAUSED,
    Hold.ALARM: UpgradePhase.HELD,
    Hold.WINDOW: UpgradePhase.WAITING,
    Hold.CANARY: UpgradePhase.BAKING,
}
MOST_NAMED = 5  # nodes in a sentence
_ENDED_OR_STILL = {
    UpgradePhase.NOT_STARTED,
    UpgradePhase.STARTING,
    UpgradePhase.STOPPED,
    UpgradePhase.FAILED,
    UpgradePhase.ABORTED,
    UpgradePhase.DONE,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradeStatus:
    """Status of an upgrade. Counts are of nodes."""

    phase: UpgradePhase
    gate: Gate
    old: int  # still there, draining and failed ones too
    new: int  # on the target
    draining: int
    failed: int
    blockers: tuple[Blocker, ...]
    eta: datetime | None
    execution: str | None = None  # which runs, empty where none does, None where it cannot be known
    held: str = ""  # why nothing new starts, empty if it may
    leaving: tuple[str, ...] = ()  # names of old nodes that drain

    @property
    def step(self) -> str:
        """Work of the upgrade now, in a sentence with names of nodes; empty where it does nothing."""
        match self.phase:
            case UpgradePhase.SCALING_UP if self.gate.missing:
                return f"new nodes start: {self.gate.missing[0].message}"
            case UpgradePhase.CORDONING:
                return "old nodes are cordoned"
            case UpgradePhase.UPGRADING | UpgradePhase.ROLLING_BACK | UpgradePhase.ABORTING if self.leaving:
                more = len(self.leaving) - MOST_NAMED
                named = f"{', '.join(self.leaving[:MOST_NAMED])}{f' and {more} more' if more > 0 else ''}"
                return f"{len(self.leaving)} of {count_of(self.old, 'old node')} on the way out: {named}"
            case UpgradePhase.UPGRADING:
                return f"{count_of(self.old, 'old node')} left, none of them drains now"
            case UpgradePhase.SCALING_DOWN:
                return "old nodes are gone, the group returns to its size"
        return ""

    @property
    def blocked(self) -> str:
        """Nodes that wait, each with its blockers, in a sentence; empty where none waits."""
        nodes: dict[str, list[str]] = {}
        for one in self.blockers:
            nodes.setdefault(one.node, []).append(one.object)
        waits = [f"{node} waits for {', '.join(dict.fromkeys(objects))}" for node, objects in nodes.items()]
        more = f" and {len(waits) - MOST_NAMED} more" if len(waits) > MOST_NAMED else ""
        return "; ".join(waits[:MOST_NAMED]) + more

    def to_json(self) -> dict[str, Any]:
        """Return the document that `docs/schema/upgrade-status.json` describes. `execution` only
        where it is known.
        """
        known = {} if self.execution is None else {"execution": self.execution or None}
        return {
            "phase": self.phase.value,
            "gate": {"pass": self.gate.open, "missing": [one.message for one in self.gate.missing]},
            "nodes": {"old": self.old, "new": self.new, "draining": self.draining, "failed": self.failed},
            "blockers": [blocker.to_json() for blocker in self.blockers],
            "step": self.step or None,
            "eta": format_instant(self.eta) if self.eta is not None else None,
            **known,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """State of executions in a deployment, beside the record."""

    execution: str = ""  # which is open, empty where none is
    new: bool = False  # it has not recorded yet that it holds the group
    # of the old nodes under way, by instance
    terminations: Mapping[str, TerminationRecord] = field(default_factory=dict)


def status_of(
    preflight: Preflight,
    record: UpgradeRecord | None = None,
    permission: Permission | None = None,
    running: Running | None = None,
) -> UpgradeStatus:
    """Return the status; the world is the preflight's, taken now. `permission`: what the next step may do, None when it
    was not evaluated; `running`: None where it cannot be known (offline).
    """
    members = preflight.members
    proven, scaled = (record.proven, record.others_scaled) if record is not None else (None, None)
    reach = zones_in_reach(preflight, record) if record is not None else None
    gate = gate_of(preflight, proven, launches=scaled is None, reach=reach)
    phase = _of_execution(record, running) or phase_of(members, gate, record, permission)
    passed = gate.open or (record is not None and record.cordoned)
    ends = running.terminations if running is not None else {}
    left = timedelta(seconds=seconds_left(preflight, gate_passed=passed, terminations=ends))
    failed = set(record.failed) if record is not None else set[str]()
    return UpgradeStatus(
        phase=phase,
        gate=gate,
        old=len(preflight.old),
        new=len(members) - len(preflight.old),
        draining=len(leaving(preflight)),
        failed=sum(bool({member.name, member.instance.id} & failed) for member in preflight.old),
        blockers=blocking_drains(preflight),
        eta=None if phase in _ENDED_OR_STILL else preflight.snapshot.now + left,
        execution=running.execution if running is not None else None,
        held=permission.why if permission is not None and permission.move is Move.HOLD else "",
        leaving=tuple(sorted(member.name for member in leaving(preflight))),
    )


def _of_execution(record: UpgradeRecord | None, running: Running | None) -> UpgradePhase | None:
    """Return the phase that follows from whether an execution is open: one that was started just now has not recorded
    anything yet, and an upgrade that has not ended and is not paused stands still without one.
    """
    if running is None:
        return None
    if running.new:
        return UpgradePhase.STARTING
    if record is None or record.ended is not None or running.execution:
        return None
    return UpgradePhase.PAUSED if record.control is ControlRequest.PAUSE else UpgradePhase.STOPPED


def phase_of(
    members: Sequence[Member], gate: Gate, record: UpgradeRecord | None, permission: Permission | None
) -> UpgradePhase:
    """Return the phase: the record and the operator's request come first, then a hold, then the nodes."""
    phase = _phase_of_record(record) if record is not None else None
    if phase is not None:
        return phase
    old = [member for member in members if member.age is Age.OLD]
    if not old:
        scaling_down = record is not None and (record.launched > record.gone or bool(record.update))
        return UpgradePhase.SCALING_DOWN if scaling_down else UpgradePhase.DONE
    if record is not None and record.update:  # EKS rolls it, and nothing holds EKS
        return _phase_of_nodes(members, old, gate, begun=True, by_eks=True)
    if permission is not None and permission.move is Move.HOLD and permission.hold is not None:
        return _OF_HOLD[permission.hold]
    if record is not None and record.cordoned:  # the gate was passed: new nodes that still come change nothing
        return UpgradePhase.UPGRADING
    return _phase_of_nodes(members, old, gate, begun=record is not None)


def _phase_of_nodes(
    members: Sequence[Member], old: Sequence[Member], gate: Gate, *, begun: bool, by_eks: bool = False
) -> UpgradePhase:
    """Return the phase that the nodes themselves show."""
    nodes = [member.node for member in old if member.node is not None]
    if any(node.tainted or (by_eks and gate.open and node.unschedulable) for node in nodes):
        return UpgradePhase.UPGRADING
    if not begun and len(old) == len(members) and not any(node.unschedulable for node in nodes):
        return UpgradePhase.NOT_STARTED
    if not gate.open:
        return UpgradePhase.SCALING_UP
    return UpgradePhase.UPGRADING if all(node.unschedulable for node in nodes) else UpgradePhase.CORDONING


def _phase_of_record(record: UpgradeRecord) -> UpgradePhase | None:
    if record.ended is not None:
        return (
            UpgradePhase.FAILED
            if record.error
            else UpgradePhase.ABORTED
            if record.control is ControlRequest.ABORT
            else UpgradePhase.DONE
        )
    if record.rolling_back and record.control is ControlRequest.RUN:
        return UpgradePhase.ROLLING_BACK
    return {ControlRequest.ABORT: UpgradePhase.ABORTING, ControlRequest.ROLLBACK: UpgradePhase.ROLLING_BACK}.get(
        record.control
    )
