"""The waits at the end of an upgrade: for nodes that an abort lets finish, and for the size to be what it was.

Each ends: with the group as it was, or with a failure that names what blocks it. Offsets of others are left to them."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

from leeward.policy.durations import format_duration
from leeward.ports import Ports
from leeward.upgrade.capacity_ledger import with_warning
from leeward.upgrade.lease import written
from leeward.upgrade.observation import Scene
from leeward.upgrade.record import UpgradeRecord
from leeward.upgrade.run import Next, Run
from leeward.upgrade.stalled import MOST_NAMED, STALLED, longest_wait, pods_left, waited, what_blocks
from leeward.upgrade.waits import again

PATIENCE = timedelta(minutes=15)  # until offsets of others no longer keep the upgrade open
PAUSE = 10  # seconds


def nodes_finish(run: Run, record: UpgradeRecord, held: Mapping[str, str], scene: Scene, ports: Ports) -> Run:
    """Wait, during an abort, for the nodes on their way; the failure names what blocks them."""
    nodes, limit = sorted(record.under_way.keys() - held.keys()), longest_wait(scene.policy.drain)
    record, stands = waited(
        record, "nodes finish", nodes, limit, ports.clock, ports.upgrades, pods=pods_left(nodes, scene.preflight)
    )
    if stands:
        said = what_blocks(nodes, record, scene, ports.claims)
        why = f"nodes have not left in {format_duration(limit)}: {said}"
        return replace(run, next=Next.EVICTION_FAILURE, why=why)
    return again(run, Next.WAIT, PAUSE, f"{len(record.under_way)} nodes finish")


def settled(run: Run, record: UpgradeRecord, scene: Scene, ports: Ports) -> Run:
    """Wait until the desired size is what it was; what others changed, or have not offset, is left to them."""
    now = ports.clock.now()
    if record.ahead or record.raised:
        return _not_offset(run, record, scene, ports)
    too_large = scene.group.desired > record.desired and record.others_scaled is None
    if not too_large:
        return replace(run, next=Next.RESTORE, why=f"desired size {scene.group.desired}")
    if not record.why.startswith("scaling down"):
        record = written(replace(record, phase_since=now, why="scaling down"), ports.upgrades)
    if now - (record.phase_since or now) < PATIENCE:
        return again(run, Next.WAIT, PAUSE, f"desired size is {scene.group.desired}, it was {record.desired}")
    written(with_warning(record, f"the desired size is {scene.group.desired}, it was {record.desired}"), ports.upgrades)
    return replace(run, next=Next.RESTORE, why="what is left is for others to offset")


def _not_offset(run: Run, record: UpgradeRecord, scene: Scene, ports: Ports) -> Run:
    """Wait for launches that no node has offset yet: instances that the raised desired size has not brought, or members
    that others terminate, so that none is left to offset them.
    """
    objects = [*record.ahead, *([f"{record.raised} of the raised desired size"] if record.raised else [])]
    record, stands = waited(record, "launches are not offset", objects, STALLED, ports.clock, ports.upgrades)
    if not stands:
        return again(run, Next.WAIT, PAUSE, "launches are not offset yet")
    waits = f"{format_duration(STALLED)}: {', '.join(objects[:MOST_NAMED])}"
    if record.raised:
        why = f"the group has not launched for {waits}: look at the scaling activities of {record.group}"
        return replace(run, next=Next.CREATION_FAILURE, why=why)
    others = what_blocks((one.instance.id for one in scene.preflight.members), record, scene, ports.claims)
    return replace(run, next=Next.EVICTION_FAILURE, why=f"no node has offset a launch in {waits}: {others}")
