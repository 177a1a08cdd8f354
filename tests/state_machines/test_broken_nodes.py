"""A broken node whose pods a budget holds: it takes no new pods, is replaced once, and drained as soon as it may be."""

from dataclasses import replace
from datetime import timedelta

import pytest

from leeward.model.node_condition import NodeCondition
from leeward.model.termination import Cause, CauseKind, Outcome, Status
from leeward.reconcile.reconciler import reconcile_once
from tests.fakes.builders import a_node, a_subject, an_instance
from tests.fakes.clock import START
from tests.state_machines.test_walks import I, a_budget, a_pod, a_system, ended
from tests.state_machines.walker import Walker

BROKEN = NodeCondition(type="AcceleratedHardwareReady", status="False", reason="NvidiaXID79Error", since=START)


@pytest.fixture
def system():
    """One broken node of three, with a pod whose budget allows no eviction."""
    system = a_system(pods=[a_pod()], budgets=[a_budget(0)])
    system.kubernetes.by_name[f"node-{I}"] = replace(a_node(I), monitored=(BROKEN,))
    for name in ("i-0b", "i-0c"):
        system.instances.put(an_instance(name))
        system.kubernetes.put_node(a_node(name))
    cause = Cause(id="unhealthy#1", kind=CauseKind.UNHEALTHY, at=START, reason="AcceleratedHardwareReady is False")
    system.claims.claim(a_subject(I), cause, START)
    return system


def the_node(system):
    return system.kubernetes.by_name[f"node-{I}"]


def an_hour_later(system):
    """The minute reconciler starts what is due, and each execution runs to its end; return the walks."""
    walks, until = [], system.clock.now() + timedelta(hours=1)
    while system.clock.now() < until:
        reconcile_once(system.ports)
        for name in sorted(system.executions.open):
            walks.append(Walker(system).run(I, int(name.rpartition("-")[2])))
        system.clock.advance(seconds=60)
    return walks


def test_it_stays_tainted_and_cordoned_and_its_record_open(system):
    walk = Walker(system).run(I)
    assert walk.ended == "PodEvictionFailure"
    assert "pdb shop/web" in walk.cause
    assert the_node(system).tainted
    assert the_node(system).unschedulable
    assert system.claims.records[I].status is Status.OPEN
    assert system.groups.terminated == []


def test_its_event_names_the_budget_and_that_it_is_tried_again(system):
    Walker(system).run(I)
    event = next(event for event in system.kubernetes.events if event.reason == "PodEvictionFailure")
    assert "shop/web-1: pdb shop/web" in event.message
    assert event.message.endswith("it takes no new pods, and its drain is tried again")


def test_it_is_tried_again_within_minutes_and_replaced_once(system):
    Walker(system).run(I)
    walks = an_hour_later(system)
    assert {walk.ended for walk in walks} == {"PodEvictionFailure"}
    assert len(walks) >= 2
    assert len(system.groups.launches) == 1
    assert the_node(system).tainted


def test_it_is_ended_once_its_budget_allows_that_and_shrinks_the_group_by_its_replacement(system):
    Walker(system).run(I)
    system.kubernetes.budget_list = [a_budget(1)]
    assert [walk.ended for walk in an_hour_later(system)] == ["Terminated"]
    assert (len(system.groups.launches), system.groups.terminated) == (1, [(I, True)])
    assert ended(system) == (Status.CLOSED, Outcome.TERMINATED)


def test_a_node_that_is_healthy_again_when_its_time_is_over_returns_to_service(system):
    def recovers(state, _):
        if state == "ReturnNodeToService":
            system.kubernetes.by_name[f"node-{I}"] = replace(the_node(system), monitored=())

    assert Walker(system, before=recovers).run(I).ended == "Cancelled"
    assert not the_node(system).tainted
    assert not the_node(system).unschedulable
    assert ended(system) == (Status.CLOSED, Outcome.RETURNED_TO_SERVICE)
    cancelled = next(event for event in system.kubernetes.events if event.reason == "TerminationCancelled")
    assert "healthy again" in cancelled.message
    assert "pdb shop/web" in cancelled.message
