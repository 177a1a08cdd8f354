"""The plan of an upgrade, as `leeward upgrade plan` shows it and the machine's first state records it."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from leeward.upgrade.preflight.capacity_checks import check_addresses, check_capacity
from leeward.upgrade.preflight.estimate import (
    pace_of,
    surge_cost,
    total_seconds,
)
from leeward.upgrade.preflight.findings import Code, Finding, Severity, warning
from leeward.upgrade.preflight.group_checks import check_group, check_managed
from leeward.upgrade.preflight.model import Preflight
from leeward.upgrade.preflight.opt_out_checks import check_opt_outs
from leeward.upgrade.preflight.pod_checks import check_budgets, check_workloads
from leeward.upgrade.preflight.start_checks import check_alarms, check_images, check_schedule, check_versions
from leeward.upgrade.surge.sizes import Size, Sizes, Strategy, sizes

CHECKS: tuple[Callable[[Preflight], Iterable[Finding]], ...] = (
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
class Plan:
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
    findings: tuple[Finding, ...]

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
                Finding(**{**one, "code": Code(one["code"]), "severity": Severity(one["severity"])})
                for one in raw["findings"]
            ),
        )


def finding_json(finding: Finding) -> dict[str, str]:
    """Return one element of `findings`."""
    return {
        "code": finding.code.value,
        "severity": finding.severity.value,
        "object": finding.object,
        "message": finding.message,
        "fix": finding.fix,
    }


def plan_upgrade(preflight: Preflight, *, seed: int = 0) -> Plan:
    """Return the whole plan: waves, sizes, estimates and findings."""
    waves = preflight.waves(seed)
    pace = pace_of(preflight)
    bake = preflight.canary
    seconds = total_seconds(
        waves, pace, preflight.strategy, bake=int(bake.bake.total_seconds()) if bake.nodes and waves else 0
    )
    launchable, group = preflight.launchable, preflight.group
    return Plan(
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


def findings(preflight: Preflight) -> tuple[Finding, ...]:
    """Return the findings of all checks, blockers first."""
    results = [finding for check in CHECKS for finding in check(preflight)]
    launch, about = preflight.inputs.launch, f"group {preflight.group.name}"
    if launch is not None:
        message = f"{launch.why}: what a new node gets from it is not judged"
        results.append(warning(Code.NOT_JUDGED, about, message, launch.fix))
    fix = "give the role the permission that is named, or plan again with --cluster NAME"
    results += [warning(Code.NOT_JUDGED, about, one, fix) for one in preflight.inputs.unread]
    return tuple(sorted(results, key=lambda finding: finding.severity is not Severity.BLOCKER))
