"""An earlier plan looked at again: Karpenter's validation, row K1 of docs/features.md."""

from datetime import timedelta

from leeward.disruption.command import MethodName
from leeward.disruption.plan import plan_disruption, validate
from tests.unit.disruption.fleet import a_budget, a_fleet, a_policy, rules


def again(earlier, fleet):
    plan = plan_disruption(earlier.snapshot())
    assert plan.commands
    return validate(fleet.snapshot(), plan.method, plan.commands)


def two_nodes(**rest):
    return a_fleet(**rest).node("n1").node("n2").pod("a", "n1", cpu="400m").pod("b", "n2", cpu="1200m")


def test_an_unchanged_command_is_still_valid():
    plan = again(two_nodes(), two_nodes())
    assert [command.nodes for command in plan.commands] == [("n1",)]
    assert plan.verdicts["n1"][MethodName.CONSOLIDATION].reason == "the earlier command is still valid"


def test_a_command_is_dropped_when_its_pods_have_no_place_any_more():
    plan = again(two_nodes(), two_nodes().pod("c", "n2", cpu="700m"))
    assert plan.commands == ()
    assert "is no longer valid: pod shop/a has no other place" in plan.verdicts["n1"][MethodName.CONSOLIDATION].reason


def test_a_command_is_dropped_when_its_node_is_no_candidate_any_more_or_is_gone():
    asks = {"karpenter.sh/do-not-disrupt": "true"}
    assert again(two_nodes(), two_nodes().pod("c", "n1", cpu="1m", annotations=asks)).commands == ()
    assert again(two_nodes(), a_fleet().node("n2").pod("b", "n2")).commands == ()


def test_of_an_empty_set_only_the_nodes_that_have_changed_fall():
    plan = again(a_fleet().node("n1").node("n2"), a_fleet().node("n1").node("n2").pod("a", "n1"))
    assert [command.nodes for command in plan.commands] == [("n2",)]


def test_budgets_that_were_spent_meanwhile_are_kept():
    policy = a_policy(disruption=rules(budgets=(a_budget(1),)))
    late = a_fleet(policy).node("n1").node("n2").node("n3", ready=False)
    assert again(a_fleet(policy).node("n1").node("n2").node("n3"), late).commands == ()


def test_a_replacement_is_dropped_when_the_group_would_launch_something_else_or_prices_rose():
    def fleet(*types):
        return a_fleet().group("web", "large").group("batch", *types).node("n1").pod("a", "n1")

    assert len(again(fleet("small"), fleet("small")).commands) == 1
    assert again(fleet("small"), fleet("medium")).commands == ()
    assert again(fleet("small"), fleet("small", "medium")).commands == ()


def test_expired_nodes_are_replaced_as_planned():
    policy = a_policy(disruption=rules(expire_after=timedelta(days=7)))

    def fleet():
        return a_fleet(policy).node("n1").node("n2").pod("a", "n1", cpu="1500m").pod("b", "n2", cpu="1500m")

    plan = again(fleet(), fleet())
    assert (plan.method, len(plan.commands)) == (MethodName.EXPIRATION, 2)
