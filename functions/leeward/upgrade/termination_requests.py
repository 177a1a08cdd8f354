"""Termination requests for old instances: each is claimed for the upgrade and, where it offsets a new node, for
that offset.

The instances and the offsets are written into the upgrade's record before anything here is called; the causes' names
follow from it, so requesting the same termination twice is idempotent."""

from collections.abc import Iterable
from contextlib import suppress

from leeward.errors import ObjectGoneError
from leeward.model.termination import Cause, CauseKind
from leeward.ports import Ports
from leeward.ports.clock import Clock
from leeward.termination import capacity_ledger
from leeward.termination.execution import request, subject_of
from leeward.upgrade.capacity_ledger import offset_by
from leeward.upgrade.record import UpgradeRecord, cause_id, surge_of
from leeward.upgrade.scene import Scene


def tell(record: UpgradeRecord, old: Iterable[str], scene: Scene, ports: Ports) -> None:
    """Cordon, take out of load balancers, request the termination for both causes."""
    kubernetes = ports.clusters.kubernetes(record.cluster)
    nodes = {node.instance_id: node for node in scene.preflight.world.nodes}
    for name in old:
        instance = scene.instances.get(name)
        if instance is None:
            continue
        if name in nodes:
            with suppress(ObjectGoneError):  # its termination finds no Node, and nothing to drain
                kubernetes.cordon(nodes[name], record.group, exclude=True)
        request(subject_of(instance, record.cluster, group=record.group), _causes(record, name, ports.clock), ports)


def force(record: UpgradeRecord, old: Iterable[str], scene: Scene, ports: Ports) -> None:
    """Add force to terminations on their way without it: their pods are deleted once their time is over."""
    now = ports.clock.now()
    for name in old:
        instance = scene.instances.get(name)
        if instance is None:
            continue
        reason = f"the upgrade of {record.group} was started again with force"
        cause = Cause(id=f"{cause_id(record, name)}#force", kind=CauseKind.UPGRADE, at=now, reason=reason, force=True)
        request(subject_of(instance, record.cluster, group=record.group), [cause], ports)


def request_offset(record: UpgradeRecord, new: str, by: str, scene: Scene, ports: Ports) -> None:
    """Request the offset of a launch that no old node is left for from one named node: it terminates as any surplus
    does, and the offset is settled there.
    """
    instance = scene.instances.get(by)
    if instance is None:
        return
    now = ports.clock.now()
    reason = f"the upgrade of {record.group} launched {new} ahead, and no old node is left to go for it"
    cause = capacity_ledger.surplus(capacity_ledger.ahead(new), now, reason)
    request(subject_of(instance, record.cluster, group=record.group), [cause], ports)


def _causes(record: UpgradeRecord, old: str, clock: Clock) -> list[Cause]:
    now = clock.now()
    target = record.target.template
    reason = f"upgrade of {record.group}{f' to {target.told}' if target else ''}"
    force = record.asked.force
    found = [Cause(id=cause_id(record, old), kind=CauseKind.UPGRADE, at=now, reason=reason, force=force)]
    new = offset_by(record, old)
    if new is not None:
        said = f"it offsets {new}, which was launched ahead"
        found.append(capacity_ledger.surplus(surge_of(record, new, old), now, said))
    return found
