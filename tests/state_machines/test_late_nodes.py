"""A Node that joins after its instance was found without one, while another team's hook holds the instance."""

from datetime import timedelta

import pytest

from leeward.model.termination import CauseKind
from leeward.termination.capacity_ledger import surplus
from tests.fakes.builders import GROUP, a_node, a_subject, our_hook
from tests.fakes.clock import START
from tests.fakes.ledger import a_surge
from tests.state_machines.test_detach_deadlines import Happens
from tests.state_machines.test_walks import FOREIGN, I, a_budget, a_pod, a_system, claim, spot
from tests.state_machines.walker import Walker

NODE = f"node-{I}"


def booting(**given):
    """An instance that EC2 runs and whose Node has not joined the cluster."""
    system = a_system(hooks=[our_hook(), FOREIGN], **given)
    del system.kubernetes.by_name[NODE]
    return system


def after(seconds, do):
    return START + timedelta(seconds=seconds), do


def joins(system):
    def join():
        system.kubernetes.by_name[NODE] = a_node(I)
        system.kubernetes.put_pod(a_pod())

    return join


def answers(system):
    """The other team completes its hook, and the group ends the instance."""
    return lambda: system.groups.complete(group=GROUP, hook="other-team", instance=I, result="CONTINUE")


@pytest.mark.parametrize("joined", [1, 20, 60, 90])
def test_a_node_that_joins_while_a_spot_instance_is_held_is_tainted_within_seconds_and_drained(joined):
    system = booting()
    spot(system)
    happens = Happens(system, after(joined, joins(system)), after(115, answers(system)))
    assert Walker(system, before=happens).run(I).ended == "Terminated"
    tainted = system.claims.records[I].times["tainted"]
    assert START + timedelta(seconds=joined) <= tainted <= START + timedelta(seconds=joined + 15)
    assert system.kubernetes.done == ["evict shop/web-1"]
    assert system.groups.terminated == [(I, True)]  # asked once, the launch is paid for once


def test_a_node_that_joins_late_in_a_scale_in_is_drained_as_long_as_the_instance_is_held():
    system = booting(budgets=[a_budget(1)])
    system.groups.begin_terminating(GROUP, I)
    claim(system, CauseKind.ASG_TERMINATE, hook="leeward-terminate")
    happens = Happens(system, after(240, joins(system)), after(900, answers(system)))
    assert Walker(system, before=happens).run(I).ended == "Terminated"
    assert system.kubernetes.done == ["evict shop/web-1"]
    assert system.claims.records[I].times["drained"] < START + timedelta(seconds=300)


def test_a_surplus_node_that_joins_after_its_termination_was_asked_for_is_drained_and_not_returned():
    system = booting(budgets=[a_budget(0)])
    system.claims.claim(a_subject(I, node=None), surplus(a_surge("i-0new"), START), START)
    happens = Happens(
        system,
        after(30, joins(system)),
        after(90, lambda: system.kubernetes.set_allowed("shop/web", 1)),
        after(300, answers(system)),
    )
    assert Walker(system, before=happens).run(I).ended == "Terminated"
    assert system.kubernetes.done == ["evict shop/web-1"]


def test_an_instance_that_never_joins_is_looked_for_ever_less_often_until_the_other_team_answers():
    system = booting()
    system.groups.begin_terminating(GROUP, I)
    claim(system, CauseKind.ASG_TERMINATE, hook="leeward-terminate")
    walk = Walker(system, before=Happens(system, after(3600, answers(system)))).run(I)
    assert walk.ended == "Terminated"
    assert system.kubernetes.done == []
    assert walk.states.count("Drain") < 80


def test_a_drained_node_is_not_looked_for_again_while_another_teams_hook_holds_its_instance():
    system = a_system(hooks=[our_hook(), FOREIGN], pods=[a_pod()])
    system.groups.begin_terminating(GROUP, I)
    claim(system, CauseKind.ASG_TERMINATE, hook="leeward-terminate")
    walk = Walker(system, before=Happens(system, after(900, answers(system)))).run(I)
    assert walk.ended == "Terminated"
    assert "Drain" not in walk.states[walk.states.index("AnswerHooks") :]
