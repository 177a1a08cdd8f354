"""Keys of `spec.repair`: when a node is unhealthy, what is done about it, and the circuit breaker."""

from leeward.policy.disruption_section import COUNT_OR_SHARE, count_or_share
from leeward.policy.fields import Section
from leeward.policy.repair import DEFAULT_CONDITIONS, NO_REPAIR, RepairAction, RepairCondition, RepairPolicy

STATUSES = ("True", "False", "Unknown")
READY_IS_ELSEWHERE = "a condition other than Ready, which notReadyAfter is about"


def repair(spec: Section) -> RepairPolicy:
    """Read `spec.repair`. Without the section nothing is repaired."""
    if not spec.has("repair"):
        return NO_REPAIR
    default = RepairPolicy()
    with spec.section("repair") as section:
        default_limit = (default.max_unhealthy, default.max_unhealthy_percent)
        limit, percent = section.read("maxUnhealthy", default_limit, count_or_share, COUNT_OR_SHARE)
        return RepairPolicy(
            not_ready_after=section.duration("notReadyAfter", default.not_ready_after),
            impaired_after=section.duration("impairedAfter", default.impaired_after),
            max_unhealthy=limit,
            max_unhealthy_percent=percent,
            conditions=_conditions(section),
            imports_from_eks=section.choice("nodeRepairConfig", default.imports_from_eks, yes="import", no="ignore"),
        )


def _conditions(repair_section: Section) -> tuple[RepairCondition, ...]:
    """Read the list, which replaces the default one; an empty list switches conditions off."""
    entries = repair_section.sections("conditions")
    if entries is None:
        return DEFAULT_CONDITIONS
    conditions: list[RepairCondition] = []
    for entered in entries:
        with entered as section:
            condition = _condition(section)
            if any(_key(condition) == _key(other) for other in conditions):
                section.refuse("type", "each type, status and reason once")
            conditions.append(condition)
    return tuple(conditions)


def _condition(section: Section) -> RepairCondition:
    kind, default = section.text("type", ""), RepairCondition(type="")
    if not section.has("type"):
        section.refuse("type", "a condition's type, such as KernelReady")
    if kind == "Ready":
        section.refuse("type", READY_IS_ELSEWHERE)
    return RepairCondition(
        type=kind,
        status=section.word("status", default.status, STATUSES),
        after=section.duration("after", default.after),
        action=RepairAction(section.word("action", default.action, tuple(RepairAction))),
        reason=section.text("reason", ""),
    )


def _key(condition: RepairCondition) -> tuple[str, str, str]:
    return condition.type, condition.status, condition.reason
