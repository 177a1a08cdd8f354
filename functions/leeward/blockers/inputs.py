"""Inputs of one node's blockers, and the deadlines that follow from them.

Decides which hooks hold an instance and until when, and when a drain stops waiting for pods. Reads nothing: the
command line and the upgrade's status gather the inputs, and `blockers.find` decides what blocks."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from leeward.model.group import TERMINATING, Group, LifecycleHook
from leeward.model.lifecycle import is_held
from leeward.model.node import Node
from leeward.model.pod import Pod, PodDisruptionBudget
from leeward.model.termination import BY_POLICY, DrainOptions, Status, TerminationRecord
from leeward.policy.document import NodePolicy
from leeward.termination import deadlines
from leeward.termination.settling import HeldVolume

# An instance stays in a wait state for at most 48 hours or 100 heartbeat time-outs, whichever is smaller, whatever
# heartbeats it gets (Amazon EC2 Auto Scaling user guide, "lifecycle hooks").
LONGEST_HOOK_WAIT = timedelta(hours=48)
LONGEST_HOOK_WAIT_TIME_OUTS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingHook:
    """Terminate hook that holds the node's instance.

    `ours`: Leeward heartbeats and completes it. `until`: when it times out. `exact` False: `until` is counted from now,
    because the start of the wait is unknown.
    """

    hook: LifecycleHook
    ours: bool
    until: datetime
    exact: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtectionOwner:
    """Upgrade or disruption run that protects its new nodes with `scale-down-disabled` until it ends.

    `name`: value of `leeward.dev/kept-for`, the name of a group or `disruption:NUMBER`. `execution`: the execution that
    works on it; empty: none does any more; None: unknown (offline). `phase`: phase of an upgrade, as `leeward upgrade
    status` shows it. `until`: estimated end; None: unknown. `terminating`: names of the nodes whose end a run waits
    for.
    """

    name: str
    execution: str | None = None
    phase: str = ""
    until: datetime | None = None
    terminating: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeInputs:
    """One node and everything that can hold up its termination."""

    node: Node
    pods: tuple[Pod, ...]
    budgets: tuple[PodDisruptionBudget, ...] = ()
    daemon_sets: frozenset[str] = frozenset()
    volumes: tuple[HeldVolume, ...] = ()
    group: str | None = None
    policy: NodePolicy | None = None  # None: no policy selects its group, and the defaults are used
    hooks: tuple[WaitingHook, ...] = ()
    deadline: datetime | None = None  # when the node is terminated in any case
    drain_ends: datetime | None = None  # when the drain under way stops waiting; None: no drain is under way
    options: DrainOptions = BY_POLICY
    detaching_since: datetime | None = None  # end of the drain, from which on its volumes are waited for; None: not yet
    pods_elsewhere: tuple[Pod, ...] = ()  # pods with claims that are on other nodes or on none
    instance_ended: bool = False  # EC2 has ended the instance, so no pod blocks any more
    protection_owner: ProtectionOwner | None = None  # the owner that the node's `kept-for` names
    blocked_by: tuple[str, ...] = ()  # obstacles that the drain under way has recorded, one line a pod
    surged: frozenset[str] = frozenset()  # pods that get a second replica before they leave, `namespace/name`


def waiting_hooks(
    hooks: Sequence[LifecycleHook],
    group: Group | None,
    instance: str,
    record: TerminationRecord | None,
    ours: frozenset[str],
    now: datetime,
) -> tuple[WaitingHook, ...]:
    """Return the hooks that hold the instance, none unless its group says that hooks hold it.

    `ours`: names of the hooks that Leeward answers. A hook waits for HeartbeatTimeout from its announcement or its last
    heartbeat; the record has both where a message or a step of Leeward recorded them.
    """
    if group is None or not is_held(group.lifecycle_of(instance)):
        return ()
    return tuple(_waiting(hook, record, hook.name in ours, now) for hook in hooks if hook.transition == TERMINATING)


def _waiting(hook: LifecycleHook, record: TerminationRecord | None, ours: bool, now: datetime) -> WaitingHook:
    announced = [cause.at for cause in record.causes if cause.hook == hook.name] if record else []
    last_heartbeat = record.heartbeats.get(hook.name) if record else None
    time_out = timedelta(seconds=hook.heartbeat_timeout)
    since = last_heartbeat or min(announced, default=None)
    until = (since or now) + time_out
    if announced:
        until = min(until, min(announced) + min(LONGEST_HOOK_WAIT, LONGEST_HOOK_WAIT_TIME_OUTS * time_out))
    return WaitingHook(hook=hook, ours=ours, until=until, exact=since is not None)


def drain_ends_at(record: TerminationRecord | None, policy: NodePolicy, now: datetime) -> datetime | None:
    """Return when the drain under way stops waiting for pods: its time-out, or the moment at which EC2 takes the
    instance; None while no drain is under way.
    """
    if record is None or record.status is not Status.OPEN:
        return None
    started = record.times.get("draining")
    ends = (deadlines.release_at(record, now), deadlines.drain_end(record, policy.drain, started) if started else None)
    return min((moment for moment in ends if moment), default=None)
