"""Capacity Blocks that end: their instances are claimed when the policy's `drainBefore` begins.

EventBridge warns once, 40 minutes before the end, and may lose the warning; a policy may ask for more time than that.
So the end is read from what fn sync has kept of the reservations, as Karpenter reads it (designs/capacity-block-support
in its repository). The cause is the warning's own: the second of the two adds nothing."""

from leeward.cluster.facets import known_or
from leeward.cluster.state import ClusterState
from leeward.model.capacity_block import CapacityBlock
from leeward.model.facts import FactKind, blocks_of
from leeward.model.instance import Instance
from leeward.model.termination import Cause, CauseKind, Status
from leeward.model.times import format_instant
from leeward.ports import Ports
from leeward.ports.clock import Clock
from leeward.reconcile.result import ReconcileResult
from leeward.termination.requests import start, subject_of


def drain_capacity_blocks(state: ClusterState, ports: Ports, result: ReconcileResult) -> None:
    """Claim and start, one after the other. One GetItem where no block is near; EC2 is asked only about instances that
    are due.
    """
    sheet = ports.catalog.sheet(state.cluster, FactKind.CAPACITY_BLOCKS)
    blocks = blocks_of(sheet.content) if sheet is not None else {}
    due = {instance: block for instance, block in blocks.items() if _is_due(instance, block, state, ports.clock)}
    if not due:
        return
    known = ports.instances.describe(due)
    for name in sorted(due):
        instance = known.get(name)
        if instance is not None and not instance.ended:
            with result.isolate(name):
                result.restarted += _claim(instance, due[name], state, ports)


def _is_due(instance: str, block: CapacityBlock, state: ClusterState, clock: Clock) -> bool:
    """Return whether its drain should have begun, and no open record knows of that."""
    group = state.group_of_instance(instance)
    policy = state.interruption_policy_of(group)
    if group is None or policy is None:
        return False
    now = clock.now()
    listed = next((member for member in group.instances if member.id == instance), None)
    begins = block.drained_from(listed.type if listed is not None else "", policy.interruption.drain_block_before)
    record = known_or(state.records, {}).get(instance)
    return begins <= now < block.ends and not (record is not None and record.knows(f"{block.event_id}#{instance}"))


def _claim(instance: Instance, block: CapacityBlock, state: ClusterState, ports: Ports) -> list[str]:
    """Return the instance if its termination is under way now. Idempotent: the cause is named by block and end."""
    now = ports.clock.now()
    group = state.group_of_instance(instance.id)
    cause = Cause(
        id=f"{block.event_id}#{instance.id}",
        kind=CauseKind.CAPACITY_BLOCK,
        at=now,
        deadline=block.taken_at(instance.type),
        reason=f"{instance.id}: its Capacity Block {block.reservation} ends at {format_instant(block.ends)}",
    )
    record = ports.claims.claim(subject_of(instance, state.cluster, group=group.name if group else None), cause, now)
    if record.status is Status.CLOSED:
        return []
    start(record, ports)
    return [instance.id]
