"""Estimated duration of an upgrade, before it starts and while it runs, and cost of its surge.

Decides numbers; they are reported as estimates. New nodes boot ahead of the drains, settling overlaps the next
wave's draining: so boot, settle and termination count once, the drains one after the other (with MINIMAL, where
nothing comes ahead, all four count for each wave). In a running upgrade what has not begun counts in whole waves,
nodes that drain with what is left of them: so the estimate falls while they drain."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median

from leeward.model.instance import Instance
from leeward.model.node import Node
from leeward.model.pod import Pod
from leeward.model.termination import TerminationRecord
from leeward.termination.settling import settle_time
from leeward.upgrade.preflight.model import Preflight
from leeward.upgrade.surge.sizes import Strategy
from leeward.upgrade.waves.model import ClusterConstraints, WaveNode, has_to_leave

BOOT_SECONDS = 90  # from launch to a node that has joined, where nothing was measured
READY_SECONDS = 20  # from the end of a pod until its replacement serves
TERMINATION_SECONDS = 60
EKS_SETTLES = timedelta(seconds=60)  # between the last pod and the termination, whatever the policy says
_PLAUSIBLE = range(1, 3600)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Durations in seconds. `drains`: of each node by name, when nothing but its own budgets delays it."""

    boot: int
    settle: int
    drains: Mapping[str, int]


def boot_seconds(nodes: Iterable[Node], instances: Mapping[str, Instance]) -> int:
    """Return the median time from EC2's launch to the Node's creation; the default where no node has a measurement."""
    known = ((node, instances[node.instance_id]) for node in nodes if node.instance_id in instances)
    measured = [int((node.created - instance.launched).total_seconds()) for node, instance in known]
    plausible = [seconds for seconds in measured if seconds in _PLAUSIBLE]
    return int(median(plausible)) if plausible else BOOT_SECONDS


def drain_seconds(node: WaveNode, pods: Sequence[Pod], constraints: ClusterConstraints) -> int:
    """Return the longest grace of its pods and the start of the next one, for each turn that the
    scarcest budget needs.
    """
    leaving = [pod for pod in pods if has_to_leave(pod)]
    if not leaving:
        return 0
    turns = max((-(-load // max(constraints.allowed.get(b, 0), 1)) for b, load in node.budgets.items()), default=1)
    return turns * (max(pod.grace_seconds for pod in leaving) + READY_SECONDS)


def total_seconds(waves: Sequence[Sequence[str]], pace: Pace, strategy: Strategy, *, bake: int = 0) -> int:
    """Return the duration of the whole upgrade; `bake`: of the canary. 0 when there is nothing to do."""
    if not waves:
        return 0
    drains = [max((pace.drains.get(name, 0) for name in wave), default=0) for wave in waves]
    around = pace.boot + pace.settle + TERMINATION_SECONDS
    return sum(drains) + bake + around * (len(waves) if strategy is Strategy.MINIMAL else 1)


def surge_cost(extra: int, seconds: int, price: float | None) -> float | None:
    """Return the cost in US dollars, at the most: `extra` nodes at the most expensive price for the whole time. None
    where no price is known.
    """
    if extra == 0:
        return 0.0
    return None if price is None else round(extra * price * seconds / 3600, 4)


def pace_of(preflight: Preflight) -> Pace:
    """Return the pace, measured where the cluster shows it, else the defaults."""
    snapshot = preflight.snapshot
    settle = EKS_SETTLES
    if preflight.group.nodegroup is None:
        settle = settle_time(preflight.policy.drain, preflight.group, lambda: preflight.inputs.services)
    return Pace(
        boot=boot_seconds(snapshot.nodes, snapshot.instances),
        settle=int(settle.total_seconds()),
        drains={
            node.name: drain_seconds(node, preflight.pods[node.name], preflight.constraints)
            for node in preflight.wave_nodes
        },
    )


def seconds_left(
    preflight: Preflight, *, gate_passed: bool, terminations: Mapping[str, TerminationRecord] | None = None
) -> int:
    """Return the seconds left. `gate_passed`: the first new nodes have come, and no further boot is waited for (with
    MINIMAL each wave waits for its own). `terminations`: of old nodes under way by instance, where they can be read.
    """
    pace = pace_of(preflight)
    ends, now = terminations or {}, preflight.snapshot.now
    under_way = {
        one.node.name: ends.get(one.instance.id) for one in preflight.old if one.node is not None and one.node.tainted
    }
    drains = [_drain_left(name, record, pace, now) for name, record in under_way.items()]
    waves = [[name for name in wave if name not in under_way] for wave in preflight.waves()]
    waves = [wave for wave in waves if wave]
    if not waves:
        return max((_end_left(name, record, pace, now) for name, record in under_way.items()), default=0)
    boot = pace.boot if gate_passed and preflight.strategy is not Strategy.MINIMAL else 0
    return total_seconds(waves, pace, preflight.strategy) - boot + max(drains, default=0)


def _drain_left(name: str, record: TerminationRecord | None, pace: Pace, now: datetime) -> int:
    """Return the seconds until its last pod has left; a drain that takes longer than estimated may end any moment."""
    whole = pace.drains.get(name, 0)
    if record is None or "draining" not in record.times:
        return whole
    return 0 if "drained" in record.times else _less(whole, now - record.times["draining"])


def _end_left(name: str, record: TerminationRecord | None, pace: Pace, now: datetime) -> int:
    after = pace.settle + TERMINATION_SECONDS
    if record is not None and "drained" in record.times:
        return _less(after, now - record.times["drained"])
    return _drain_left(name, record, pace, now) + after


def _less(seconds: int, passed: timedelta) -> int:
    return max(seconds - int(passed.total_seconds()), 0)
