"""Pre-flight checks, one small file each, in the order in which their findings are reported."""

from collections.abc import Callable, Iterable

from leeward.upgrade.checks import addresses, managed, timing, workloads
from leeward.upgrade.preflight import capacity_checks as room
from leeward.upgrade.preflight import group_checks as group
from leeward.upgrade.preflight import pod_checks as budgets
from leeward.upgrade.preflight import start_checks as versions
from leeward.upgrade.preflight.findings import Code, Finding, Severity, warning
from leeward.upgrade.preflight.model import Preflight

CHECKS: tuple[Callable[[Preflight], Iterable[Finding]], ...] = (
    group.check,  # nothing else matters where the group cannot launch or terminate
    managed.check,
    versions.check,
    timing.check,
    budgets.check,
    workloads.check,
    room.check,  # the most expensive one
    addresses.check,
)


def findings(preflight: Preflight) -> tuple[Finding, ...]:
    """Return the findings of all checks, blockers first."""
    found = [finding for check in CHECKS for finding in check(preflight)]
    fix = "give the role the permission that is named, or look again later"
    found += [warning(Code.NOT_JUDGED, f"group {preflight.group.name}", one, fix) for one in preflight.beside.unread]
    return tuple(sorted(found, key=lambda finding: finding.severity is not Severity.BLOCKER))
