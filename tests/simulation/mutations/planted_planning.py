"""Planted builds: budgets, consolidation and scheduling."""

from tests.simulation.mutations.editing import edit
from tests.simulation.mutations.plant import Planted

OF_PLANNING = (
    Planted(
        name="disruption shrinks a group below its MinSize",
        story="looks at budgets alone",
        edits=(edit("leeward.disruption.spending.slack", "group.desired - group.minimum", "group.desired"),),
        tests=("tests/unit/disruption",),
    ),
    Planted(
        name="consolidation ignores minimumSavings",
        story="takes every cent",
        edits=(edit("leeward.disruption.savings.why_not_worth", "if savings < least:", "if False:"),),
        tests=("tests/unit/disruption/test_consolidation.py", "tests/unit/disruption/test_methods.py"),
    ),
    Planted(
        name="budgets round a share down",
        story="divides whole numbers, so that 10 % of nine nodes is none",
        edits=(
            edit("leeward.disruption.budgets.limit", "-(-total * budget.nodes // 100)", "total * budget.nodes // 100"),
        ),
        tests=("tests/unit/disruption/test_budgets.py",),
    ),
    Planted(
        name="a budget's window is always open",
        story="reads the schedule and not the time",
        edits=(edit("leeward.disruption.budgets.allowance", "or is_active(budget.window, now)", "or True"),),
        tests=("tests/unit/disruption/test_budgets.py",),
    ),
    Planted(
        name="pods are packed regardless of topology spread",
        story="takes DoNotSchedule for a preference",
        edits=(edit("leeward.scheduling.rules.Spread.narrow", "return ", "return nodes or "),),
        tests=("tests/unit/scheduling/test_spread.py",),
    ),
    Planted(
        name="pods are packed regardless of anti-affinity",
        story="takes a required term for a preferred one",
        edits=(edit("leeward.scheduling.rules.Away.narrow", "nodes &= ~term.nodes()", "pass"),),
        tests=("tests/unit/scheduling/test_pod_affinity.py",),
    ),
)
