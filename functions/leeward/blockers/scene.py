"""Inputs of one node's blockers; the command line and the steps gather them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from leeward.model.drain_options import BY_POLICY, DrainOptions
from leeward.model.group import TERMINATING, Group, LifecycleHook
from leeward.model.node import Node
from leeward.model.pod import Pod, PodDisruptionBudget
from leeward.model.termination import Status, TerminationRecord
from leeward.policy.document import NodePolicy
from leeward.termination import deadlines
from leeward.termination.freshness import WAITING
from leeward.termination.volumes import HeldVolume

HOOKS_LONGEST = timedelta(
    hours=48
)  # a group waits no longer than this or a hundred time-outs, whatever heartbeats it gets


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingHook:
    """Terminate hook that holds the node's instance. `ours`: Leeward heartbeats and completes it. `until`: when it
    times out; `exact` False: counted from now, because the start of its wait is unknown.
    """

    hook: LifecycleHook
    ours: bool
    until: datetime
    exact: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Keeper:
    """Upgrade or disruption run of ours that has put `scale-down-disabled` on its new nodes until it has ended.

    `name`: the value of `leeward.dev/kept-for`, a group's or `disruption:NUMBER`. `execution`: the one that works on
    it, empty: none does any more, None: unknown (offline). `phase`: an upgrade's as `leeward upgrade status` shows it.
    `until`: when it should end, an estimate; None where it is unknown. `going`: names of the nodes that a run waits
    for.
    """

    name: str
    execution: str | None = None
    phase: str = ""
    until: datetime | None = None
    going: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeScene:
    """One node and everything that can hold up its termination.

    `policy` None: no policy selects its group, the defaults are used. `deadline`: when the node is terminated in any
    case; `gives_up`: when the drain that is under way stops waiting, None while there is none. `detaching`: since when
    its volumes are waited for (the end of the drain), None before. `elsewhere`: pods of other nodes, or of none, that
    have claims. `gone`: EC2 has ended the instance, so that no pod blocks any more. `keeper`: the one that the node's
    `kept-for` names. `blocked_by`: obstacles of the drain that is under way, one line a pod. `surged`: pods that get a
    second replica before they leave, `namespace/name`.
    """

    node: Node
    pods: tuple[Pod, ...]
    budgets: tuple[PodDisruptionBudget, ...] = ()
    daemon_sets: frozenset[str] = frozenset()
    volumes: tuple[HeldVolume, ...] = ()
    group: str | None = None
    policy: NodePolicy | None = None
    hooks: tuple[WaitingHook, ...] = ()
    deadline: datetime | None = None
    gives_up: datetime | None = None
    options: DrainOptions = BY_POLICY
    detaching: datetime | None = None
    elsewhere: tuple[Pod, ...] = ()
    gone: bool = False
    keeper: Keeper | None = None
    blocked_by: tuple[str, ...] = ()
    surged: frozenset[str] = frozenset()


def waiting_hooks(
    hooks: Sequence[LifecycleHook],
    group: Group | None,
    instance: str,
    record: TerminationRecord | None,
    ours: frozenset[str],
    now: datetime,
) -> tuple[WaitingHook, ...]:
    """Return the hooks that hold the instance, while its group says Terminating:Wait. A hook waits for HeartbeatTimeout
    from its announcement or its last heartbeat; the record has both where a message or a step of ours recorded them.
    """
    if group is None or group.lifecycle_of(instance) != WAITING:
        return ()
    return tuple(_waiting(hook, record, hook.name in ours, now) for hook in hooks if hook.transition == TERMINATING)


def _waiting(hook: LifecycleHook, record: TerminationRecord | None, ours: bool, now: datetime) -> WaitingHook:
    announced = [cause.at for cause in record.causes if cause.hook == hook.name] if record else []
    last = record.heartbeats.get(hook.name) if record else None
    time_out = timedelta(seconds=hook.heartbeat_timeout)
    since = last or min(announced, default=None)
    until = (since or now) + time_out
    if announced:
        until = min(until, min(announced) + min(HOOKS_LONGEST, 100 * time_out))
    return WaitingHook(hook=hook, ours=ours, until=until, exact=since is not None)


def gives_up_at(record: TerminationRecord | None, policy: NodePolicy) -> datetime | None:
    """Return when the drain under way stops waiting for pods: its time-out, or the moment EC2 takes the instance."""
    if record is None or record.status is not Status.OPEN:
        return None
    started = record.times.get("draining")
    ends = (deadlines.release_at(record), deadlines.drain_end(record, policy.drain, started) if started else None)
    return min((moment for moment in ends if moment), default=None)
