"""Managed node groups: EKS rolls them, we start its update, watch it and say what blocks it meanwhile.

Nothing here writes the group through Auto Scaling. An update that fails because of pods is started again only with a
changed decision: by force, where the start or the policy says so."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from leeward.errors import TerminalError
from leeward.ports import Ports
from leeward.ports_upgrade import ManagedState
from leeward.upgrade.checks import findings
from leeward.upgrade.findings import Code, blocking
from leeward.upgrade.lease import read, written
from leeward.upgrade.preflight import Beside
from leeward.upgrade.record import UpgradeRecord
from leeward.upgrade.run import Next, Run
from leeward.upgrade.scene import Scene, look
from leeward.upgrade.status import blocking_drains

PAUSE = 30  # seconds
EVICTION = "PodEvictionFailure"


def start(run: Run, _: Mapping[str, Any], ports: Ports) -> Run:
    """Pre-flight, then UpdateNodegroupVersion with a token that follows from the record."""
    record = read(run, ports)
    if record.update:
        return replace(run, next=Next.WAIT, why=f"update {record.update} goes on")
    asked = record.asked
    scene = look(record, ports, Beside(force=asked.force, image=asked.image, image_by_eks=bool(asked.image)))
    known = {code.value: code for code in Code}
    found = blocking(findings(scene.preflight), frozenset(known[one] for one in asked.overrides if one in known))
    if found:
        why = "; ".join(f"{one.code.value} ({one.object}): {one.message}: {one.fix}" for one in found)
        return replace(run, next=Next.BLOCKED, why=why)
    return _begin(run, record, scene, ports, force=asked.force)


def watch(run: Run, _: Mapping[str, Any], ports: Ports) -> Run:
    """How the update stands, and which pods and budgets hold the nodes that drain."""
    record = read(run, ports)
    nodegroup = record.target.nodegroup or ""
    update = ports.managed_updates.look(record.cluster, nodegroup, record.update)
    if update.state is ManagedState.SUCCESSFUL:
        return replace(run, next=Next.RESTORE, why=f"update {update.id} succeeded")
    scene = look(record, ports)
    if update.state is ManagedState.IN_PROGRESS:
        held = "; ".join(f"{one.pod or one.node}: {one.object}" for one in blocking_drains(scene.preflight))
        why = f"update {update.id} in progress{f', held by {held}' if held else ''}"
        return replace(run, next=Next.WAIT, pause=PAUSE, rounds=run.rounds + 1, why=why)
    said = "; ".join(update.errors) or update.state.value
    if any(EVICTION in error for error in update.errors):
        if scene.policy.drain.force and not record.asked.force:
            forced = replace(record, asked=replace(record.asked, force=True), update="")
            return _begin(run, written(forced, ports), scene, ports, force=True)
        return replace(run, next=Next.EVICTION_FAILURE, why=said)
    return replace(run, next=Next.UPDATE_FAILURE, why=said)


STEPS = {"start-managed": start, "watch-managed": watch}


def _begin(run: Run, record: UpgradeRecord, scene: Scene, ports: Ports, *, force: bool) -> Run:
    asked, nodegroup = record.asked, record.target.nodegroup or ""
    try:
        update = ports.managed_updates.start(
            record.cluster,
            nodegroup,
            token=f"leeward-{record.stamp}-{record.attempt}{'-force' if force else ''}",
            version=asked.kubernetes or None,
            template_version=asked.template_version or None,
            force=force,
        )
    except TerminalError as refused:
        return replace(run, next=Next.UPDATE_FAILURE, why=f"EKS refuses the update of {nodegroup}: {refused}")
    written(replace(record, update=update), ports)
    return replace(
        run, next=Next.WAIT, why=f"EKS update {update} of {nodegroup}, {len(scene.preflight.members)} members"
    )
