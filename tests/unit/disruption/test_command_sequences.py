"""Looking ahead: commands that save less now and more in the end, where candidates are few."""

import pytest

from leeward.disruption.command import CommandDecision, MethodName
from leeward.disruption.methods import multi_node_consolidation
from leeward.disruption.methods.consolidation import Consolidation
from leeward.disruption.plan import plan_disruption, validate
from leeward.disruption.planning_state import PlanningState
from leeward.policy.document import DisruptionReason
from tests.unit.disruption.fleet import a_budget, a_fleet, a_policy, rules


def with_pods(fleet, **pods):
    """Nodes named after their group and a number, each with pods of so many millicores."""
    for node, sizes in pods.items():
        fleet.node(node.replace("_", "-"), group=node.rpartition("_")[0])
        for number, cpu in enumerate(sizes):
            fleet.pod(f"{node}-{number}", node.replace("_", "-"), cpu=f"{cpu}m", memory="1Gi" if cpu > 500 else "256Mi")
    return fleet


def in_groups(*kinds, policy=None):
    fleet = a_fleet(policy or a_policy())
    for kind in kinds:
        fleet.group(kind, kind)
    return fleet


def crowded(policy=None):
    """Two commands come to $0.18 of $0.36. The one that saves most, $0.15 at once, leaves $0.21."""
    fleet = in_groups("large", "medium", "small", policy=policy)
    return with_pods(fleet, large_1=[1200, 800], large_2=[1900], medium_1=[800, 250], medium_2=[800, 250])


def half_used():
    """The large node's pods fit on the empty one and a small one together."""
    fleet = in_groups("large", "medium", "small")
    return with_pods(fleet, large_1=[1900, 500], medium_1=[1900], medium_2=[])


def three_huge():
    """What two of them hold takes more than the room of the third and one small node."""
    fleet = in_groups("huge", "small")
    return with_pods(fleet, huge_1=[500, 500, 500, 250], huge_2=[1200, 500], huge_3=[1900, 1200, 1200, 1200, 500])


def the_command(fleet, **how):
    plan = plan_disruption(fleet.snapshot(), **how)
    (command,) = plan.commands
    return command


def first_choice(fleet, monkeypatch):
    """Without looking ahead."""
    with monkeypatch.context() as patched:
        patched.setattr(multi_node_consolidation, "MOST_EXHAUSTIVE", 0)
        return the_command(fleet)


def test_a_command_that_saves_less_comes_first_where_more_is_saved_in_the_end(monkeypatch):
    command = the_command(crowded())
    assert first_choice(crowded(), monkeypatch).savings > command.savings == pytest.approx(0.12)
    assert command.reason.endswith("and $0.18 in the end, more than other ways")


@pytest.mark.parametrize(("least", "saved"), [(0.03, 0.12), (0.031, 0.15)])
def test_what_saves_most_comes_first_where_the_end_is_not_better_by_the_minimum_saving(least, saved):
    strict = a_policy(disruption=rules(savings_per_hour=least))
    assert the_command(crowded(strict)).savings == pytest.approx(saved)


def test_an_empty_node_stays_while_a_consolidation_saves_more_with_it():
    plan = plan_disruption(half_used().snapshot())
    (command,) = plan.commands
    assert (plan.method, command.nodes, command.replacements[0].group) == (
        MethodName.CONSOLIDATION,
        ("large-1",),
        "small",
    )
    assert command.placements["shop/large_1-0"] == "medium-2"
    assert "a consolidation that saves more with it there comes first" in (
        plan.verdicts["medium-2"][MethodName.EMPTINESS].reason
    )
    assert len(validate(half_used().snapshot(), plan.method, plan.commands).commands) == 1


def test_emptiness_alone_removes_the_empty_node():
    assert the_command(half_used(), only=MethodName.EMPTINESS).nodes == ("medium-2",)


@pytest.mark.parametrize("held", ["no budget", "switched off"])
def test_an_empty_node_does_not_wait_for_a_consolidation_that_may_not_come(held):
    budgets = (a_budget(0, reasons=(DisruptionReason.UNDERUTILIZED,)),) if held == "no budget" else ()
    fleet = half_used()
    fleet.policies = (a_policy(disruption=rules(budgets=budgets)),)
    fleet.settings = {"consolidation": False} if held == "switched off" else {}
    plan = plan_disruption(fleet.snapshot())
    assert (plan.method, plan.commands[0].nodes) == (MethodName.EMPTINESS, ("medium-2",))


def test_an_empty_node_is_removed_first_where_as_much_can_be_saved_after_it():
    fleet = with_pods(in_groups("medium"), medium_1=[500], medium_2=[500], medium_3=[])
    assert plan_disruption(fleet.snapshot()).method is MethodName.EMPTINESS


def test_a_node_is_launched_before_it_is_needed_where_the_next_command_needs_two(monkeypatch):
    command = the_command(three_huge())
    assert (command.decision, len(command.nodes)) == (CommandDecision.REPLACE, 1)
    assert [one.group for one in command.replacements] == ["small"]
    assert "small" not in command.placements.values()
    assert command.savings == pytest.approx(0.21)
    assert ", one of small is for what can follow, " in command.reason
    assert first_choice(three_huge(), monkeypatch).decision is CommandDecision.DELETE


@pytest.mark.parametrize("fleet", [crowded, half_used, three_huge])
def test_what_was_tried_leaves_the_world_as_it_was(fleet):
    found = PlanningState(fleet().snapshot())
    before = rooms(found.world)
    first, second = (Consolidation().decide(found).commands for _ in range(2))
    assert rooms(found.world) == before
    assert first == second == plan_disruption(fleet().snapshot()).commands


def rooms(world):
    return {node.name: (world.free(node.name), len(world.pods_on(node.name))) for node in world.nodes}
