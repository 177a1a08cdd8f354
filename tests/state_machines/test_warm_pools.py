"""A node that returns to its warm pool: drained, its hook answered, stopped by the group, never terminated by us."""

from dataclasses import replace

import pytest

from leeward.model.termination import CauseKind, Outcome, Status
from leeward.reconcile.reconciler import reconcile_once
from tests.fakes.builders import GROUP, our_hook
from tests.state_machines.test_joining_causes import join
from tests.state_machines.test_walks import I, a_budget, a_pod, a_system
from tests.state_machines.walker import Walker


def returning(*, listed, ends_as="Warmed:Stopped"):
    """Its hook of ours holds it; once that is answered the group puts it into the pool instead of ending it."""
    system = a_system(hooks=[our_hook()], pods=[a_pod()], budgets=[a_budget(1)])
    system.groups.begin_terminating(GROUP, I)
    join(system, CauseKind.ASG_TERMINATE, id="token", minutes=5, hook="leeward-terminate", hook_ours=True)
    member = next(one for one in system.groups.by_name[GROUP].instances if one.id == I)

    def into_the_pool(group, instance):
        system.pods_at_answer = list(system.kubernetes.done)
        if ends_as == "Warmed:Stopped":
            system.instances.set_state(instance, "stopped")
        if listed:
            system.groups.set_lifecycle(group, instance, ends_as)
            return
        target = system.groups.by_name[group]
        kept = tuple(one for one in target.instances if one.id != instance)
        system.groups.by_name[group] = replace(target, instances=kept)
        where = system.groups.lifecycle_of
        system.groups.lifecycle_of = lambda name: (group, ends_as) if name == member.id else where(name)

    system.groups._end = into_the_pool
    return system


@pytest.mark.parametrize("listed", [True, False], ids=["listed by its group", "not listed any more"])
def test_it_is_drained_before_its_hook_is_answered_and_its_node_goes_when_it_stops(listed):
    system = returning(listed=listed)
    walk = Walker(system).run(I)
    assert walk.ended == "Terminated"
    assert system.pods_at_answer == ["evict shop/web-1"]
    assert [hook for _, hook, _, _ in system.groups.answered] == ["leeward-terminate"]
    assert system.groups.terminated == []
    assert system.groups.launches == []
    assert system.kubernetes.by_name == {}
    record = system.claims.records[I]
    assert (record.status, record.outcome) == (Status.CLOSED, Outcome.TERMINATED)


@pytest.mark.parametrize("listed", [True, False], ids=["listed by its group", "not listed any more"])
def test_one_that_runs_on_in_its_pool_keeps_its_node_and_its_taint(listed):
    system = returning(listed=listed, ends_as="Warmed:Running")
    assert Walker(system).run(I).ended == "Terminated"
    assert system.groups.terminated == []
    assert system.kubernetes.by_name[f"node-{I}"].tainted


def test_a_taint_stays_while_the_node_waits_in_its_pool_and_goes_when_it_is_in_service():
    system = returning(listed=False, ends_as="Warmed:Running")
    Walker(system).run(I)
    for _ in range(5):
        assert reconcile_once(system.ports).untainted == []
        system.clock.advance(minutes=1)
    del system.groups.lifecycle_of
    system.groups.set_lifecycle(GROUP, I, "InService")
    found = []
    for _ in range(3):
        found += reconcile_once(system.ports).untainted
        system.clock.advance(minutes=1)
    assert found == [f"node-{I}"]


def test_a_stop_event_alone_does_not_terminate_an_instance_of_the_pool():
    """A group without a hook of ours: the event comes when the instance stops already."""
    system = a_system(pods=[])
    system.groups.set_lifecycle(GROUP, I, "Warmed:Stopped")
    system.instances.set_state(I, "stopped")
    join(system, CauseKind.STATE_CHANGE, id="stopping")
    assert Walker(system).run(I).ended == "Terminated"
    assert system.groups.terminated == []
    assert system.kubernetes.by_name == {}


def started_anew(system):
    """Its group has stopped it and, a minute later, started it again: no scan saw it stopped."""
    system.clock.advance(minutes=1)
    found = system.instances.known[I]
    system.instances.put(replace(found, state="running", launched=system.clock.now()))
    system.groups.set_lifecycle(GROUP, I, "InService")


def test_one_that_is_in_service_again_before_its_end_was_seen_returns_to_service_in_the_cluster_too():
    system = returning(listed=True)
    system.groups._end = lambda group, instance: started_anew(system)
    assert Walker(system).run(I).ended == "Cancelled"
    record, node = system.claims.records[I], system.kubernetes.by_name[f"node-{I}"]
    assert (record.status, record.outcome) == (Status.CLOSED, Outcome.RETURNED_TO_SERVICE)
    assert not node.tainted
    assert not node.unschedulable
    assert system.groups.terminated == []
