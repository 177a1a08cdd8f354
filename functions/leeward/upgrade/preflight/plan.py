"""The plan of an upgrade, as `leeward upgrade plan` shows it and the machine's first state records it.

Its duration and the cost of its surge are reported as estimates, before it starts and while it runs. New nodes boot
ahead of the drains, settling overlaps the next wave's draining: so boot, settle and termination count once, the drains
one after the other (with MINIMAL, where nothing comes ahead, all four count for each wave). In a running upgrade what
has not begun counts in whole waves, nodes that drain with what is left of them: so the estimate falls while they
drain."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median
from typing import Any, Self

from leeward.model.instance import Instance
from leeward.model.node import Node
from leeward.model.pod import Pod
from leeward.model.termination import TerminationRecord
from leeward.termination.settling import settle_time
from leeward.upgrade.preflight.capacity_checks import check_addresses, check_capacity
from leeward.upgrade.preflight.findings import Code, PreflightFinding, Severity, warning
from leeward.upgrade.preflight.group_checks import (
    check_alarms,
    check_group,
    check_images,
    check_managed,
    check_schedule,
    check_versions,
)
from leeward.upgrade.preflight.model import Preflight
from leeward.upgrade.preflight.pod_checks import check_budgets, check_opt_outs, check_workloads
from leeward.upgrade.surge.sizes import Size, Sizes, Strategy, sizes
from leeward.upgrade.waves.model import ClusterConstraints, WaveNode, has_to_leave

BOOT_SECONDS = 90  # from launch to a node that has joined, where nothing was measured
READY_SECONDS = 20  # from the end of a pod until its replacement serves
TERMINATION_SECONDS = 60
EKS_SETTLES = timedelta(seconds=60)  # between the last pod and the termination, whatever the policy says
_PLAUSIBLE = range(1, 3600)
CHECKS: tuple[Callable[[Preflight], Iterable[PreflightFinding]], ...] = (
    check_group,  # nothing else matters where the group cannot launch or terminate
    check_managed,
    check_versions,
    check_images,
    check_schedule,
    check_alarms,
    check_budgets,
    check_workloads,
    check_opt_outs,
    check_capacity,  # the most expensive one
    check_addresses,
)
"""Pre-flight checks in the order in which their findings are reported."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradePlan:
    """The plan. `seconds` and `cost` (US dollars, None where no price is known) are estimates; `surge` is the upper
    bound.
    """

    group: str
    strategy: Strategy
    parallel: int
    surge: int
    sizes: Sizes
    waves: tuple[tuple[str, ...], ...]
    seconds: int
    cost: float | None
    findings: tuple[PreflightFinding, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the document that `docs/schema/upgrade-plan.json` describes."""
        both = {"desired": self.sizes.desired, "max": self.sizes.maximum}
        return {
            "group": self.group,
            "strategy": self.strategy.value,
            "parallel": self.parallel,
            "surge": self.surge,
            "sizes": {
                name: {"before": size.before, "during": size.during, "after": size.after} for name, size in both.items()
            },
            "waves": [list(wave) for wave in self.waves],
            "durationSeconds": self.seconds,
            "surgeCost": self.cost,
            "findings": [finding_json(finding) for finding in self.findings],
        }

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """Parse the document of `to_json`."""
        desired, most = (Size(**raw["sizes"][name]) for name in ("desired", "max"))
        return cls(
            group=raw["group"],
            strategy=Strategy(raw["strategy"]),
            parallel=raw["parallel"],
            surge=raw["surge"],
            sizes=Sizes(desired=desired, maximum=most),
            waves=tuple(tuple(wave) for wave in raw["waves"]),
            seconds=raw["durationSeconds"],
            cost=raw["surgeCost"],
            findings=tuple(
                PreflightFinding(**{**one, "code": Code(one["code"]), "severity": Severity(one["severity"])})
                for one in raw["findings"]
            ),
        )


def finding_json(finding: PreflightFinding) -> dict[str, str]:
    """Return one element of `findings`."""
    return {
        "code": finding.code.value,
        "severity": finding.severity.value,
        "object": finding.object,
        "message": finding.message,
        "fix": finding.fix,
    }


def plan_upgrade(preflight: Preflight, *, seed: int = 0) -> UpgradePlan:
    """Return the whole plan: waves, sizes, estimates and findings."""
    waves = preflight.waves(seed)
    pace = pace_of(preflight)
    bake = preflight.canary
    seconds = total_seconds(
        waves, pace, preflight.strategy, bake=int(bake.bake.total_seconds()) if bake.nodes and waves else 0
    )
    launchable, group = preflight.launchable, preflight.group
    return UpgradePlan(
        group=group.name,
        strategy=preflight.strategy,
        parallel=preflight.parallel,
        surge=preflight.surge,
        sizes=sizes(desired=group.desired, maximum=group.maximum, extra=preflight.most_extra),
        waves=waves,
        seconds=seconds,
        cost=surge_cost(
            min(preflight.most_extra, len(preflight.old)), seconds, launchable.price if launchable is not None else None
        ),
        findings=findings(preflight),
    )


def findings(preflight: Preflight) -> tuple[PreflightFinding, ...]:
    """Return the findings of all checks, blockers first."""
    results = [finding for check in CHECKS for finding in check(preflight)]
    launch, about = preflight.inputs.launch, f"group {preflight.group.name}"
    if launch is not None:
        message = f"{launch.why}: what a new node gets from it is not judged"
        results.append(warning(Code.NOT_JUDGED, about, message, launch.fix))
    fix = "give the role the permission that is named, or plan again with --cluster NAME"
    results += [warning(Code.NOT_JUDGED, about, one, fix) for one in preflight.inputs.unread]
    return tuple(sorted(results, key=lambda finding: finding.severity is not Severity.BLOCKER))


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
