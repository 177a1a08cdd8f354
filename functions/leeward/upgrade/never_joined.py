"""New instances of an earlier start that have not become nodes: the next start terminates them, and others are
launched.

Decides which those are: they keep the gate closed for as long as they exist, whatever has been fixed since. No pod
has ever served on them."""

from dataclasses import replace

from leeward.model.instance import Instance
from leeward.model.termination import Cause, CauseKind
from leeward.ports import Ports
from leeward.termination import capacity_ledger
from leeward.termination.execution import request, subject_of
from leeward.upgrade.capacity_ledger import with_warning, without
from leeward.upgrade.cluster_constraints import has_to_leave
from leeward.upgrade.lease import written
from leeward.upgrade.members import Age, Member
from leeward.upgrade.pod_placement_failures import JOINS_WITHIN
from leeward.upgrade.record import UpgradeRecord
from leeward.upgrade.scene import Scene

MOST_GIVEN_UP = 200


def end_never_joined(record: UpgradeRecord, scene: Scene, ports: Ports) -> UpgradeRecord:
    """Terminate the instances that never joined. A launch of this upgrade without an offset offsets itself: it is
    terminated with decrement, and the next turn launches another in its zone. Any other is terminated without, and the
    group replaces it. The instances given up, and the offsets, are written into the record first, and the causes' names
    follow from it: a repeat is idempotent.
    """
    late = [one.instance.id for one in scene.preflight.members if _is_late(one, record, scene)]
    waiting = record.ahead.keys() - record.under_way.keys()  # the others offset a launch in a turn
    unassigned = set(record.unassigned)
    own = {new for new in waiting if record.ahead[new].offset_by == new or (new in late and new in unassigned)}
    going = {*late, *own, *record.given_up} & scene.instances.keys()
    if not going and not own:
        return record
    if late:
        named = replace(record, given_up=(*record.given_up, *late)[-MOST_GIVEN_UP:])
        named = named.with_offsets({new: new for new in own})
        record = written(
            with_warning(named, f"{', '.join(late)} never joined the cluster and were ended"), ports.upgrades
        )
    for name in sorted(going):
        if not scene.instances[name].ended:
            _end(scene.instances[name], record, ports, offsets_itself=name in own)
    return written(without(record, own), ports.upgrades)


def _is_late(member: Member, record: UpgradeRecord, scene: Scene) -> bool:
    """Return whether the member was launched for this upgrade a quarter of an hour ago or longer, has no Ready node,
    and runs no pod that has to leave.
    """
    instance = scene.instances.get(member.instance.id)
    if instance is None or instance.ended or member.instance.id in record.under_way:
        return False
    ours = member.instance.id in record.ahead or (member.age is Age.NEW and instance.launched >= record.began)
    if not ours or scene.preflight.world.now - instance.launched < JOINS_WITHIN:
        return False
    node = member.node
    return node is None or not (node.ready or any(map(has_to_leave, scene.preflight.world.pods_on(node.name))))


def _end(instance: Instance, record: UpgradeRecord, ports: Ports, *, offsets_itself: bool) -> None:
    now = ports.clock.now()
    subject = subject_of(instance, record.cluster, group=record.group)
    reason = f"the upgrade of {record.group} launched it and it never joined"
    causes = [Cause(id=f"never-joined#{record.group}#{record.stamp}", kind=CauseKind.UPGRADE, at=now, reason=reason)]
    if offsets_itself:
        reason = "it offsets its own launch"
        causes.append(capacity_ledger.surplus(capacity_ledger.ahead(instance.id), now, reason))
    request(subject, causes, ports)
