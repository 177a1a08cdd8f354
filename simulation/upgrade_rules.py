"""Rules that must hold for upgrades of node groups at the end: they have ended, or make progress, and leave nothing."""

from collections.abc import Callable, Iterator
from datetime import datetime

from leeward.model import well_known
from leeward.model.group import GroupInstance
from leeward.upgrade.record import ControlRequest
from local.cluster.objects import Obj, annotations_of, name_of
from simulation.facts import maximum_kept
from simulation.node_instances import instance_behind
from simulation.rule import Rule
from simulation.view import WorldView

LEAVING = ("Terminating", "Terminated", "Detach", "Warmed:Terminating")
NO_MEMBER = ("Standby", "EnteringStandby", "Warmed")
REBALANCE = "AZRebalance"
STUCK = 3600.0  # seconds: longer than any drain and any wait for new nodes


class Progress:
    """Moments at which upgrades have last written something."""

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}
        self._moved: dict[str, float] = {}

    def watch(self, view: WorldView) -> None:
        """Read the versions of the records."""
        for name, record in view.upgrades.items():
            if self._seen.get(name) != record.version:
                self._seen[name], self._moved[name] = record.version, view.now

    def at_the_end(self, view: WorldView) -> Iterator[str]:
        """Yield upgrades that run without progress. Nodes that are blocked take two time-outs each, so that a large
        group may well be under way.
        """
        for name, record in sorted(view.upgrades.items()):
            idle = view.now - self._moved.get(name, view.now)
            runs = record.ended is None and record.execution in view.upgrading
            if runs and record.control is not ControlRequest.PAUSE and idle > STUCK:
                yield f"{name}: execution {record.execution} has got nowhere for {idle:.0f} s: {record.why}"


class Members:
    """Instances that an upgrade had to bring to its target: those in service when it ended. Not the ones that their
    owner had put into Standby or protected by then, nor those in a warm pool, which may serve again afterwards, nor
    those of a managed node group, which others may update next (`Rule.MANAGED_DONE`).
    """

    def __init__(self) -> None:
        self._ended: dict[str, datetime] = {}
        self._left_out: dict[str, frozenset[str]] = {}

    def watch(self, view: WorldView) -> None:
        """Read the group of each upgrade that has just ended."""
        for name, record in view.upgrades.items():
            if record.ended is not None and self._ended.get(name) != record.ended:
                self._ended[name] = record.ended
                out = (one.id for one in view.groups[name].instances if _out_of_service(one))
                self._left_out[name] = frozenset(out)

    def at_the_end(self, view: WorldView) -> Iterator[str]:
        """Yield members that upgrades have left behind their target."""
        for name, record in sorted(view.upgrades.items()):
            wanted = record.target.template
            managed = view.groups[name].nodegroup is not None
            if record.resumable or record.control is ControlRequest.ABORT or wanted is None or managed:
                continue
            if wanted.version in view.deleted_versions.get(name, ()):
                continue  # its owner has pointed the group at another one since
            for member in view.groups[name].instances:
                known = member.template
                if member.id in self._left_out.get(name, ()) or _out_of_service(member) or member.id in view.reused:
                    continue
                if known is not None and not member.lifecycle.startswith(LEAVING) and known.version != wanted.version:
                    yield f"{name}: {member.id} is of version {known.version}, the target was {wanted.version}"


def _out_of_service(instance: GroupInstance) -> bool:
    """Return whether its owner keeps it from work, or from the group's scale-in."""
    return instance.protected or instance.lifecycle.startswith(NO_MEMBER)


def owed_by_upgrade(group: str, view: WorldView) -> int:
    """Count the launches that its record holds, those that a raised desired size asks for with them, or that others'
    scaling has made theirs.
    """
    record = view.upgrades.get(group)
    if record is None:
        return 0
    written_off = record.launched if record.others_scaled is not None else 0
    held = record.alive + record.raised if record.resumable else 0
    return held + written_off


def _restored(view: WorldView) -> Iterator[str]:
    for name, group in sorted(view.groups.items()):
        record = view.upgrades.get(name)
        if record is None:
            continue
        running = record.execution in view.upgrading
        if REBALANCE in group.suspended and not running:
            yield f"{name}: {REBALANCE} is suspended and no upgrade runs"
        if not record.resumable and maximum_kept(view, group):
            yield f"{name}: maximum {group.maximum}, it was {view.maxima[name]}"


def _cordons(view: WorldView) -> Iterator[str]:
    for node in view.cluster.store.sorted("nodes"):
        group = _cordoned_for(node)
        record = view.upgrades.get(group)
        if instance_behind(node) in view.asked_by_us:
            continue  # termination is requested: it leaves once its pods do
        if group and (record is None or not record.resumable):
            yield f"{name_of(node)} is cordoned for the upgrade of {group}, which has ended"


def _kept(view: WorldView) -> Iterator[str]:
    for node in view.cluster.store.sorted("nodes"):
        group = annotations_of(node).get(well_known.KEPT_FOR)
        record = view.upgrades.get(group or "")
        if (
            group
            and not group.startswith(well_known.OF_DISRUPTION)
            and (record is None or record.execution not in view.upgrading)
        ):
            yield f"{name_of(node)} is kept from Cluster Autoscaler for the upgrade of {group}, which has no execution"


def _cordoned_for(node: Obj) -> str:
    notes = node["metadata"].get("annotations") or {}
    return str(notes.get(well_known.CORDONED_FOR) or notes.get(well_known.EXCLUDED_FOR) or "")


UPGRADES_EVENTUAL: tuple[tuple[Rule, Callable[[WorldView], Iterator[str]]], ...] = (
    (Rule.RESTORED, _restored),
    (Rule.LIFTED, _cordons),
    (Rule.LIFTED, _kept),
)
