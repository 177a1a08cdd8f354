"""A group that an upgrade holds, and nodes that were requested to terminate before they carry a mark."""

from dataclasses import replace

from leeward.budgets.usage import all_allowances
from leeward.disruption.candidates import candidates
from leeward.disruption.observation import with_records
from leeward.disruption.targets import targets
from tests.fakes.upgrades import FakeUpgrades
from tests.unit.disruption.fleet import a_budget, a_fleet, a_policy, rules

HELD = {"web": "its group web is being upgraded"}


def test_no_node_of_a_group_with_an_upgrade_is_a_candidate_and_each_says_why():
    fleet = a_fleet().node("n1").node("n2", group="other")
    found, why = candidates(replace(fleet.snapshot(), blocked_groups=HELD))
    assert set(found) == {"n2"}
    assert why == {"n1": "its group web is being upgraded"}


def test_nothing_is_launched_in_a_group_with_an_upgrade():
    fleet = a_fleet().node("n1").node("n2", group="other")
    found, why = targets(replace(fleet.snapshot(), blocked_groups=HELD), priced=True)
    assert [target.group for target in found] == ["other"]
    assert why == HELD


def test_a_node_whose_termination_an_upgrade_requested_spends_the_budget_before_its_taint():
    fleet = a_fleet(a_policy(disruption=rules(budgets=(a_budget(1),)))).node("n1").node("n2")
    snapshot = fleet.snapshot()
    assert {one.allowed for one in all_allowances(snapshot) if one.reason == "Drifted"} == {1}
    reported = replace(snapshot, terminating=frozenset({"i-n1"}))
    assert {one.allowed for one in all_allowances(reported) if one.reason == "Drifted"} == {0}
    assert candidates(reported)[1]["n1"] == "a termination of it is under way"


def test_a_group_whose_sizes_are_no_instance_counts_is_neither_disrupted_nor_a_target():
    units = {"capacity_units": "its sizes count vcpu (DesiredCapacityType)"}
    fleet = a_fleet().group("web", "large").group("heavy", "small", fields=units)
    snapshot = with_records(fleet.node("n1").node("n2", group="heavy").snapshot(), FakeUpgrades(), None)
    found, why = candidates(snapshot)
    assert (set(found), "(CapacityUnits)" in why["n2"]) == ({"n1"}, True)
    assert [target.group for target in targets(snapshot, priced=True)[0]] == ["web"]
