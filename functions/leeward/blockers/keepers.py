"""Blocker for a node that an upgrade or a run of ours protects from scale-down: a new one is half empty until its
pods come."""

from leeward.blockers import commands
from leeward.blockers.blocker import Blocker, Kind
from leeward.blockers.scene import Keeper, NodeScene
from leeward.disruption.do_not_disrupt import OptOut
from leeward.model.well_known import KEPT_FOR, OF_DISRUPTION, SCALE_DOWN_DISABLED

PAUSED = "paused"  # `leeward.upgrade.status.Phase`, which imports the blockers and so cannot be imported here


def of_keeper(opt_out: OptOut, keeper: Keeper, scene: NodeScene) -> Blocker:
    """Return the blocker of annotation `scale-down-disabled`, added by the run that `leeward.dev/kept-for` names."""
    _, of_disruption, number = keeper.name.partition(OF_DISRUPTION)
    what = f"disruption run {number}" if of_disruption else f"the upgrade of {keeper.name}"
    way_out = _of_disruption(keeper) if of_disruption else _of_upgrade(keeper)
    return Blocker(
        node=scene.node.name,
        pod=None,
        owner=f"Disruption/{number}" if of_disruption else f"Upgrade/{keeper.name}",
        kind=Kind.NODE_SCALE_DOWN_DISABLED,
        object=f"annotation {opt_out.key}={opt_out.value}, for {what}",
        until=keeper.until,
        fix=f"it holds up consolidation and emptiness for {what}: {_left_behind(keeper, scene) or way_out}",
    )


def _left_behind(keeper: Keeper, scene: NodeScene) -> str:
    if keeper.execution != "":
        return ""
    remove = commands.unannotate(f"node {scene.node.name}", SCALE_DOWN_DISABLED)
    return f"no execution works on that any more, so the minute reconciler removes it; manually: {remove} {KEPT_FOR}-"


def _of_upgrade(keeper: Keeper) -> str:
    """Return one clause with its command."""
    group, look = keeper.name, f"leeward upgrade status {keeper.name}"
    if keeper.execution is None:
        return f"it comes off when that has ended; {look} --cluster NAME tells when that should be"
    where = f"execution {keeper.execution} is {keeper.phase}"
    if keeper.until is not None:
        return f"{where}, and it comes off when that has ended, by estimate then ({look})"
    if keeper.phase == PAUSED:
        return f"{where}: leeward upgrade resume {group} lets it go on, leeward upgrade abort {group} ends it"
    return f"{where}, and when that goes on {look} tells; it comes off when the upgrade has ended"


def _of_disruption(keeper: Keeper) -> str:
    if keeper.execution is None:
        return "it comes off when that has ended; leeward blockers --cluster NAME tells what it waits for"
    where = f"execution {keeper.execution}"
    if not keeper.going:
        return f"{where} waits for the new nodes to be Ready; it comes off when that has ended"
    looks = ", ".join(f"leeward blockers {name}" for name in keeper.going[:3])
    return f"{where} waits until {', '.join(keeper.going)} are gone ({looks} says what holds them); then it comes off"
