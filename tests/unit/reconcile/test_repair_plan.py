"""The verdicts in the words of `leeward plan`, from a whole snapshot."""

from datetime import timedelta

from leeward.disruption.command import CommandDecision, MethodName
from leeward.model.instance_status import Impairment
from leeward.reconcile.repair_plan import repair_plan
from tests.unit.disruption.fleet import NOON, a_fleet

UNHEALTHY = MethodName.UNHEALTHY


def test_each_unhealthy_node_is_a_command_with_what_its_group_launches():
    fleet = a_fleet().group("web", "medium", "large").node("n1", ready=False)
    for number in range(2, 6):
        fleet.node(f"n{number}")
    plan = repair_plan(fleet.snapshot(), {})
    (command,) = plan.commands
    assert (plan.method, command.decision, command.nodes) == (UNHEALTHY, CommandDecision.REPLACE, ("n1",))
    (replacement,) = command.replacements
    assert (replacement.group, replacement.types) == ("web", ("medium", "large"))
    assert plan.verdicts["n1"][UNHEALTHY].candidate
    assert plan.verdicts["n2"][UNHEALTHY].reason == "it is Ready and passes EC2's status checks"


def test_failing_status_checks_are_asked():
    fleet = a_fleet().node("n1").node("n2").node("n3")
    failing = Impairment(instance="i-n2", checks=("instance",), since=NOON - timedelta(minutes=5))
    assert [command.nodes for command in repair_plan(fleet.snapshot(), {"i-n2": failing}).commands] == [("n2",)]


def test_a_node_whose_instance_is_gone_is_deleted_and_nothing_is_launched_for_it():
    fleet = a_fleet().node("n1", ready=False, state="terminated").node("n2")
    (command,) = repair_plan(fleet.snapshot(), {}).commands
    assert (command.decision, command.nodes, command.replacements) == (CommandDecision.DELETE, ("n1",), ())


def test_nothing_to_do_says_so_of_every_node():
    plan = repair_plan(a_fleet().node("n1").node("n2").snapshot(), {})
    assert (plan.method, plan.commands) == (UNHEALTHY, ())
    assert set(plan.verdicts) == {"n1", "n2"}
