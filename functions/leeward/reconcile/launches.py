"""Launch hooks of ours: a launch is completed once its node is Ready, or at once where interruption handling is off."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from leeward.cluster.facets import Known, Unavailable, known_or
from leeward.cluster.state import ClusterState
from leeward.errors import RetryableError
from leeward.model.group import LAUNCHING, Group, GroupInstance, LifecycleHook
from leeward.model.instance import Instance
from leeward.model.lifecycle import is_held_at_launch
from leeward.model.termination import RebootBy, TerminationRecord
from leeward.ports import Ports
from leeward.ports.autoscaling import Groups
from leeward.ports.clock import Clock
from leeward.ports.compute import Instances
from leeward.reconcile.hooks import answer, handling_is_off, members_in, our_hooks
from leeward.reconcile.records import is_open
from leeward.reconcile.result import ReconcileResult
from leeward.retry import retry
from leeward.termination.requests import read_apart

AGAIN_AFTER = 2.0  # seconds
BOOTS_WITHIN = timedelta(minutes=15)  # as in termination.replacing and upgrades: a later boot is not expected
REPLACED_WITHIN = timedelta(minutes=30)  # a boot, and before it the new root volume, which EC2 makes from an image
LOST_PASSES = timedelta(minutes=3)  # two passes that fail, and the one that is due: the hook outlasts them


def settle_launches(state: ClusterState, ports: Ports, result: ReconcileResult) -> None:
    """Complete launches whose nodes are Ready, and all of a cluster that EKS has deleted: its nodes cannot be read, and
    nothing is ended for it. The hooks of the other members are kept waiting for as long as a boot
    may take, and beyond that while the API server cannot say whether the node has joined. Throttled members are tried
    once more a moment later, all of a group after one pause: a short hook does not outlast two passes. An answer that
    is repeated finds nothing waiting; a heartbeat only extends.
    """
    for group, members in members_in(is_held_at_launch, state.selected):
        with result.isolate(group.name):
            ours = () if handling_is_off(state, group) else our_hooks(LAUNCHING, state, group, ports)
            if ours:
                _settle_members(ours, state, group, members, ports, result)


def answer_switched_off_launches(state: ClusterState, ports: Ports, result: ReconcileResult) -> None:
    """Complete launches at once where interruption handling is off; a drain that has begun is finished."""
    for group, members in members_in(is_held_at_launch, state.selected):
        with result.isolate(group.name):
            ours = our_hooks(LAUNCHING, state, group, ports) if handling_is_off(state, group) else []
            records = read_apart((member.id for member in members if ours), ports.claims)
            for member in members if ours else ():
                with result.isolate(member.id):
                    if member.id in records.unreadable:
                        continue  # a drain may have begun
                    record = records.read.get(member.id)
                    if not is_open(record) or _since(record) is not None:
                        answer(ours, group, member, ports.groups, result)


def _settle_members(
    ours: Sequence[LifecycleHook],
    state: ClusterState,
    group: Group,
    members: Sequence[GroupInstance],
    ports: Ports,
    result: ReconcileResult,
) -> None:
    instances, again = _booting(state, members, ports.clock, ports.instances), list[GroupInstance]()
    for member in members:
        with result.isolate(member.id):
            try:
                _settle_member(ours, state, group, member, instances.get(member.id), ports.clock, ports.groups, result)
            except RetryableError:
                again.append(member)
    if again:
        ports.clock.sleep(AGAIN_AFTER)
    for member in again:
        with result.isolate(member.id):
            _settle_member(ours, state, group, member, instances.get(member.id), ports.clock, ports.groups, result)


def _settle_member(
    ours: Sequence[LifecycleHook],
    state: ClusterState,
    group: Group,
    member: GroupInstance,
    instance: Instance | None,
    clock: Clock,
    groups: Groups,
    result: ReconcileResult,
) -> None:
    node = state.node_of(member.id)
    if (node is not None and node.ready) or (isinstance(state.node_list, Unavailable) and state.node_list.gone):
        answer(ours, group, member, groups, result)
        return
    for hook in ours:
        if _may_boot(hook, instance, state, clock.now()):
            groups.heartbeat(group=group.name, hook=hook.name, instance=member.id)


def _booting(
    state: ClusterState, members: Sequence[GroupInstance], clock: Clock, instances: Instances
) -> Mapping[str, Instance]:
    """Describe members whose nodes are not Ready. Nothing is read while the API server does not answer."""
    if not isinstance(state.node_list, Known):
        return {}
    names = [member.id for member in members if (node := state.node_of(member.id)) is None or not node.ready]
    return retry(lambda: instances.describe(names), clock) if names else {}


def _may_boot(hook: LifecycleHook, instance: Instance | None, state: ClusterState, now: datetime) -> bool:
    """Return whether the hook may run out within the time that a boot may take, should the next two passes fail. A hook
    with a longer time-out of its own is not heartbeaten at all: its owner has set how long a boot may take. An API
    server that does not answer says nothing about the node, and must not end it.
    """
    if not isinstance(state.node_list, Known) or instance is None:
        return True
    waits = timedelta(seconds=hook.heartbeat_timeout)
    replaced = _since(known_or(state.records, {}).get(instance.id))
    boots_by = instance.launched + BOOTS_WITHIN if replaced is None else replaced + REPLACED_WITHIN
    return waits < BOOTS_WITHIN and now + waits < boots_by + LOST_PASSES


def _since(record: TerminationRecord | None) -> datetime | None:
    """Return when its group began to replace the root volume of an instance that is drained for that: when its hook was
    answered. None for any other instance: a launch is its first boot.
    """
    wanted = record.reboot if record is not None and is_open(record) else None
    return record.times.get("answered") if record and wanted and wanted.by is RebootBy.GROUP else None
