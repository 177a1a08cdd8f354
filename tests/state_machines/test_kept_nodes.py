"""`leeward drain --keep`: the pods leave by the same rules, the instance stays in service and its node cordoned."""

from dataclasses import replace
from datetime import timedelta

import pytest

from leeward.model import well_known
from leeward.model.termination import BY_POLICY, Cause, CauseKind, DrainOptions, Outcome, Status
from tests.fakes.builders import a_subject, our_hook
from tests.fakes.clock import START
from tests.state_machines.test_walks import I, a_budget, a_pod, a_system, claim, ended
from tests.state_machines.walker import KilledError, Walker

KEEP = DrainOptions(keep=True)


def drain(system, options=KEEP, id_="manual#1"):
    cause = Cause(id=id_, kind=CauseKind.MANUAL, at=system.clock.now(), options=options)
    return system.claims.claim(a_subject(I), cause, system.clock.now())


def the_node(system):
    (node,) = system.kubernetes.nodes()
    return system.kubernetes.by_name[node.name]


def stays(system):
    return system.groups.terminated == [] and system.groups.launches == []


def test_a_node_that_is_drained_alone_loses_its_pods_and_stays_in_service_cordoned():
    system = a_system(pods=[a_pod()], budgets=[a_budget(1)])
    drain(system)
    walk = Walker(system).run(I)
    assert walk.ended == "Kept"
    assert system.kubernetes.done == ["evict shop/web-1"]
    assert stays(system)
    node = the_node(system)
    assert (node.tainted, node.unschedulable) == (False, True)
    assert well_known.CORDONED_BY_DRAIN not in node.annotations
    assert ended(system) == (Status.CLOSED, Outcome.KEPT)
    assert not {"Settle", "Terminate", "RemoveNode"} & set(walk.states)


def test_its_operator_lifts_the_cordon_and_a_later_drain_returns_it_to_service_as_any_other():
    system = a_system(pods=[a_pod()])
    drain(system)
    Walker(system).run(I)
    node = the_node(system)
    system.kubernetes.by_name[node.name] = replace(node, unschedulable=False)
    system.kubernetes.put_pod(a_pod("web-2"))
    system.kubernetes.budget_list = [a_budget(0)]
    drain(system, BY_POLICY, "manual#2")
    assert Walker(system).run(I, attempt=2).ended == "PodEvictionFailure"
    assert (the_node(system).tainted, the_node(system).unschedulable) == (False, False)


def test_a_node_that_was_cordoned_already_stays_cordoned():
    system = a_system(pods=[a_pod()])
    node = the_node(system)
    system.kubernetes.by_name[node.name] = replace(node, unschedulable=True)
    drain(system)
    assert Walker(system).run(I).ended == "Kept"
    assert (the_node(system).tainted, the_node(system).unschedulable) == (False, True)


def test_an_empty_node_is_kept_as_well():
    system = a_system()
    drain(system)
    assert Walker(system).run(I).ended == "Kept"
    assert the_node(system).unschedulable


def test_a_guarding_hook_does_not_make_the_group_terminate_it():
    system = a_system(hooks=[our_hook()], pods=[a_pod()])
    drain(system)
    assert Walker(system).run(I).ended == "Kept"
    assert stays(system)


def test_blocked_pods_return_it_to_service_uncordoned_as_after_any_drain():
    system = a_system(pods=[a_pod()], budgets=[a_budget(0)])
    drain(system)
    assert Walker(system).run(I).ended == "PodEvictionFailure"
    assert (the_node(system).tainted, the_node(system).unschedulable) == (False, False)
    assert stays(system)


class Joins:
    """Another cause joins when the machine enters a state for the first time."""

    def __init__(self, system, state, cause):
        self.system, self.state, self.cause = system, state, cause

    def __call__(self, state, _):
        if state == self.state and self.cause is not None:
            self.system.claims.claim(a_subject(I), self.cause, self.system.clock.now())
            self.cause = None


WARNING = Cause(id="event-1", kind=CauseKind.SPOT_INTERRUPTION, at=START, deadline=START + timedelta(minutes=2))
PLAIN = Cause(id="manual#2", kind=CauseKind.MANUAL, at=START)


@pytest.mark.parametrize("state", ["AskForReplacement", "Drain", "ReturnNodeToService", "Finish"])
@pytest.mark.parametrize("cause", [WARNING, PLAIN], ids=["spot warning", "drain without --keep"])
def test_whatever_else_requests_its_termination_is_not_kept_from_it(state, cause):
    system = a_system(pods=[a_pod()])
    drain(system)
    walk = Walker(system, before=Joins(system, state, cause)).run(I)
    assert walk.ended == "Terminated"
    assert [instance for instance, _ in system.groups.terminated] == [I]
    assert len(system.groups.launches) == (1 if cause is WARNING else 0)
    assert ended(system) == (Status.CLOSED, Outcome.TERMINATED)


def test_keep_does_not_end_a_termination_that_is_under_way():
    system = a_system(pods=[a_pod()])
    claim(system, CauseKind.MANUAL)
    drain(system)
    assert Walker(system).run(I).ended == "Terminated"


@pytest.mark.parametrize("call", ["annotate", "untaint", "event"])
def test_a_step_that_is_killed_while_it_keeps_the_node_ends_the_same(call):
    system = a_system(pods=[a_pod()])
    drain(system)
    original, states, kills = getattr(system.kubernetes, call), [], []

    def killed(*arguments, **named):
        result = original(*arguments, **named)
        if states[-1] == "ReturnNodeToService" and not kills:
            kills.append(call)
            raise KilledError
        return result

    setattr(system.kubernetes, call, killed)
    walk = Walker(system, before=lambda state, _: states.append(state)).run(I)
    assert (walk.ended, kills) == ("Kept", [call])
    assert (the_node(system).tainted, the_node(system).unschedulable) == (False, True)


def test_a_period_of_a_kept_node_decides_nothing_for_the_next_one():
    system = a_system(pods=[a_pod()])
    drain(system)
    Walker(system).run(I)
    system.kubernetes.put_pod(a_pod("web-2"))
    record = claim(system, CauseKind.MANUAL)
    assert not record.keeps
    assert Walker(system).run(I, attempt=record.attempt).ended == "Terminated"
