"""What budgets count: docs/policy.md, and row X9 of docs/features.md."""

from datetime import timedelta

import pytest

from leeward.budgets.usage import all_allowances
from leeward.policy.document import Window
from tests.unit.disruption.fleet import NOON, ZONES, a_budget, a_fleet, a_policy, rules

DISRUPTED = [{"key": "leeward.dev/disrupted", "effect": "NoSchedule"}]
HOURS_AGO = str(int((NOON - timedelta(hours=3)).timestamp()))  # as Cluster Autoscaler dates its taint
FORGOTTEN = {"key": "ToBeDeletedByClusterAutoscaler", "value": HOURS_AGO, "effect": "NoSchedule"}


def reported(fleet, reason="Empty", zone=None):
    found = [one for one in all_allowances(fleet.snapshot()) if (one.reason, one.zone) == (reason, zone)]
    return [(one.allowed, one.disrupting, one.total) for one in found]


def ten(**rest):
    policy = a_policy(disruption=rules(budgets=rest.pop("budgets", (a_budget(30, percent=True),))))
    fleet = a_fleet(policy, **rest)
    for number in range(9):
        fleet.node(f"n{number}", zone=ZONES[number % 3])
    return fleet


@pytest.mark.parametrize(
    ("node", "found"),
    [
        ({}, (3, 0, 10)),
        ({"ready": False}, (2, 1, 10)),
        ({"taints": DISRUPTED}, (2, 1, 10)),
        ({"taints": [{"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}]}, (2, 1, 10)),
        ({"taints": [{"key": "ToBeDeletedByClusterAutoscaler", "effect": "NoSchedule"}]}, (2, 1, 10)),
        ({"taints": [FORGOTTEN]}, (3, 0, 10)),
        ({"cordoned": True}, (3, 0, 10)),
        ({"lifecycle": "Terminating:Wait"}, (3, 0, 9)),
        ({"lifecycle": "Terminating:Wait", "taints": DISRUPTED}, (2, 1, 10)),
        ({"lifecycle": "Terminating:Proceed", "taints": DISRUPTED}, (3, 0, 9)),
        ({"lifecycle": "Standby"}, (3, 0, 9)),
        ({"lifecycle": "EnteringStandby"}, (3, 0, 9)),
        ({"lifecycle": "Pending:Wait", "ready": False}, (3, 0, 9)),
        ({"state": "shutting-down"}, (3, 0, 9)),
    ],
    ids=str,
)
def test_which_nodes_count(node, found):
    assert reported(ten().node("last", **node)) == [found]


def test_a_policy_without_budgets_has_no_limit_and_upgrades_have_one_only_where_it_is_named():
    assert reported(ten(budgets=())) == [(None, 0, 9)]
    assert reported(ten(), "Upgrade") == [(None, 0, 9)]
    assert reported(ten(budgets=(a_budget(1, reasons=("Upgrade",)),)), "Upgrade") == [(1, 0, 9)]


def test_a_zone_with_a_budget_of_its_own_has_its_own_line():
    budgets = (a_budget(5), a_budget(1, zone=ZONES[1]))
    fleet = ten(budgets=budgets).node("last", zone=ZONES[1], ready=False)
    assert reported(fleet, zone=ZONES[1]) == [(0, 1, 4)]
    assert reported(fleet) == [(4, 1, 10)]
    assert reported(fleet, zone=ZONES[0]) == []


def test_a_freeze_allows_nothing():
    always = Window(schedule="* * * * *", duration=timedelta(hours=1))
    assert reported(ten(budgets=(), freeze=(always,))) == [(0, 0, 9)]
    assert reported(ten(freeze=(always,)), "Upgrade") == [(0, 0, 9)]


def test_a_window_limits_in_its_own_time_zone():
    office = Window(schedule="0 13 * * *", duration=timedelta(hours=4), time_zone="Europe/Berlin")
    assert reported(ten(budgets=(a_budget(0, window=office),))) == [(0, 0, 9)]
    late = Window(schedule="0 15 * * *", duration=timedelta(hours=4), time_zone="Europe/Berlin")
    assert reported(ten(budgets=(a_budget(0, window=late),))) == [(None, 0, 9)]


def test_nodes_of_other_policies_are_not_counted():
    fleet = a_fleet(a_policy("web", "web"), a_policy("rest")).node("n1").node("n2", group="batch")
    assert [(one.policy, one.total) for one in all_allowances(fleet.snapshot()) if one.reason == "Empty"] == [
        ("web", 1),
        ("rest", 1),
    ]
