"""Where an upgrade stands: phase, gate, counts, what blocks it and when it should end.

Decides from what the upgrade wrote down, where it did, and from the world as it is; without a record (offline, or run
by somebody else) the world alone tells."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from leeward.blockers.blocker import Blocker, Kind
from leeward.blockers.find import blockers
from leeward.blockers.scene import NodeScene
from leeward.model.times import format_instant
from leeward.upgrade.control import Hold, Move, Permission
from leeward.upgrade.duration import total_seconds
from leeward.upgrade.gate import Gate, judge_gate
from leeward.upgrade.members import Age, Member
from leeward.upgrade.plan import pace_of
from leeward.upgrade.preflight import Preflight, zone_of
from leeward.upgrade.record import UpgradeRecord, Wish
from leeward.upgrade.sizes import Strategy


class Phase(StrEnum):
    """The closed set of what an upgrade can be at (docs/command-line.md)."""

    NOT_STARTED = "not-started"
    SCALING_UP = "scaling-up"
    CORDONING = "cordoning"
    UPGRADING = "upgrading"
    SCALING_DOWN = "scaling-down"
    PAUSED = "paused"
    WAITING = "waiting"
    BAKING = "baking"
    ABORTING = "aborting"
    ABORTED = "aborted"
    ROLLING_BACK = "rolling-back"
    FAILED = "failed"
    DONE = "done"


_OF_HOLD = {Hold.PAUSED: Phase.PAUSED, Hold.WINDOW: Phase.WAITING, Hold.CANARY: Phase.BAKING}
_ENDED_OR_STILL = {Phase.NOT_STARTED, Phase.FAILED, Phase.ABORTED, Phase.DONE}
_HOLDS_DRAINS = frozenset(
    {
        Kind.PDB_NONE_NOW,
        Kind.PDB_NEVER,
        Kind.PDB_SEVERAL,
        Kind.PDB_FAILING_POD,
        Kind.UNMANAGED_POD,
        Kind.LOCAL_DATA,
        Kind.STUCK_POD,
        Kind.POD_FINALIZER,
        Kind.VOLUME_ATTACHED,
        Kind.LIFECYCLE_HOOK,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """Counts are of nodes: `old` those still there (draining and failed ones too), `new` those on the target."""

    phase: Phase
    gate: Gate
    old: int
    new: int
    draining: int
    failed: int
    blockers: tuple[Blocker, ...]
    eta: datetime | None

    def to_json(self) -> dict[str, Any]:
        """docs/command-line.md; `docs/schema/upgrade-status.json` describes it."""
        return {
            "phase": self.phase.value,
            "gate": {"pass": self.gate.open, "missing": [one.message for one in self.gate.missing]},
            "nodes": {"old": self.old, "new": self.new, "draining": self.draining, "failed": self.failed},
            "blockers": [blocker.to_json() for blocker in self.blockers],
            "eta": format_instant(self.eta) if self.eta is not None else None,
        }


def status_of(
    preflight: Preflight, record: UpgradeRecord | None = None, permission: Permission | None = None
) -> Status:
    """The world is the preflight's, taken now. `permission`: what the next step may do, None when nobody has asked."""
    found = preflight.members
    draining = [one for one in found if one.age is Age.OLD and one.node is not None and one.node.marked]
    gate = gate_of(preflight)
    phase = phase_of(found, gate, record, permission)
    failed = set(record.failed) if record is not None else set[str]()
    return Status(
        phase=phase,
        gate=gate,
        old=len(preflight.old),
        new=len(found) - len(preflight.old),
        draining=len(draining),
        failed=sum(bool({member.name, member.instance.id} & failed) for member in preflight.old),
        blockers=blocking_drains(preflight),
        eta=None if phase in _ENDED_OR_STILL else preflight.world.now + timedelta(seconds=_left(preflight, gate)),
    )


def blocking_drains(preflight: Preflight) -> tuple[Blocker, ...]:
    """What holds the old nodes that are draining now."""
    draining = [one for one in preflight.old if one.node is not None and one.node.marked]
    return tuple(one for member in draining for one in _blocking(preflight, member))


def gate_of(preflight: Preflight) -> Gate:
    """In the zones that hold old nodes; with MINIMAL nothing comes first, so no zone has to have a new node."""
    zones = {zone_of(preflight.world, member) for member in preflight.old} - {""}
    minimal = preflight.strategy is Strategy.MINIMAL
    return judge_gate(preflight.members, () if minimal else zones, preflight.target.labels)


def phase_of(
    members: Sequence[Member], gate: Gate, record: UpgradeRecord | None, permission: Permission | None
) -> Phase:
    """What the record and the operator say comes first, then a hold, then the nodes."""
    told = _told(record) if record is not None else None
    if told is not None:
        return told
    old = [member for member in members if member.age is Age.OLD]
    if not old:
        return Phase.SCALING_DOWN if record is not None and record.launched > record.gone else Phase.DONE
    if permission is not None and permission.move is Move.HOLD and permission.hold is not None:
        return _OF_HOLD[permission.hold]
    return _seen(members, old, gate, begun=record is not None)


def _seen(members: Sequence[Member], old: Sequence[Member], gate: Gate, *, begun: bool) -> Phase:
    """What the nodes themselves show."""
    nodes = [member.node for member in old if member.node is not None]
    if any(node.marked for node in nodes):
        return Phase.UPGRADING
    if not begun and len(old) == len(members) and not any(node.unschedulable for node in nodes):
        return Phase.NOT_STARTED
    if not gate.open:
        return Phase.SCALING_UP
    return Phase.UPGRADING if all(node.unschedulable for node in nodes) else Phase.CORDONING


def _told(record: UpgradeRecord) -> Phase | None:
    if record.ended is not None:
        return Phase.FAILED if record.error else Phase.ABORTED if record.wish is Wish.ABORT else Phase.DONE
    if record.rolling_back and record.wish is Wish.RUN:
        return Phase.ROLLING_BACK
    return {Wish.ABORT: Phase.ABORTING, Wish.ROLLBACK: Phase.ROLLING_BACK}.get(record.wish)


def _left(preflight: Preflight, gate: Gate) -> int:
    """Seconds until everything is done, the boot no longer counted once the gate is open."""
    pace = pace_of(preflight)
    seconds = total_seconds(preflight.waves(), pace, preflight.strategy)
    return max(seconds - (pace.boot if gate.open and preflight.strategy is not Strategy.MINIMAL else 0), 0)


def _blocking(preflight: Preflight, member: Member) -> list[Blocker]:
    """What holds the drain of one node; wishes about voluntary disruption hold no upgrade."""
    world, node = preflight.world, member.node
    if node is None:
        return []
    scene = NodeScene(
        node=node,
        pods=tuple(world.pods_on(node.name)),
        budgets=world.budgets,
        daemon_sets=world.daemon_sets,
        group=preflight.group.name,
        policy=preflight.policy,
    )
    return [one for one in blockers(scene, world.now) if one.kind in _HOLDS_DRAINS]
