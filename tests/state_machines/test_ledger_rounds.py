"""A launch that no member can offset now: each is asked once, the last one is retried, and where that one ends another
round begins.
"""

from leeward.model.termination import Status
from leeward.termination.capacity_ledger import surplus
from tests.fakes.builders import GROUP, a_subject
from tests.fakes.ledger import a_surge, settled
from tests.state_machines.test_ledger_walks import a_fleet, ends_the_instance, size
from tests.state_machines.test_walks import I, a_budget, a_pod, spot
from tests.state_machines.walker import Walker


def every_member_asked(system):
    """The launch for I was passed on from member to member, each with a pod that a budget holds; in their order."""
    spot(system)
    Walker(system, before=ends_the_instance(system)).run(I)
    asked, member = [], I
    system.kubernetes.budget_list = [a_budget(0)]
    while settled(system.claims.records[member]):
        (member,) = settled(system.claims.records[member])
        asked.append(member)
        system.kubernetes.put_pod(a_pod(f"stuck-{member}", node=f"node-{member}"))
        assert Walker(system).run(member).ended == "PodEvictionFailure"
    return asked


def test_when_every_member_has_been_asked_the_last_one_is_tried_again():
    system = a_fleet(pods=[a_pod()])
    asked = every_member_asked(system)
    assert len(asked) == len(set(asked)) == size(system)[1]
    record = system.claims.records[asked[-1]]
    assert record.status is Status.OPEN
    assert record.times["retry"] > system.clock.now()
    assert not any(node.tainted for node in system.kubernetes.by_name.values())


def test_a_member_that_was_never_drained_gets_no_event_of_an_eviction_failure():
    system = a_fleet(pods=[a_pod()])
    every_member_asked(system)
    assert "PodEvictionFailure" not in {event.reason for event in system.kubernetes.events}


def test_when_the_group_ends_the_last_one_another_member_is_asked_again():
    """The one that the group launches in its place has already to offset another launch."""
    system = a_fleet(pods=[a_pod()])
    before = size(system)
    first, *_, last = every_member_asked(system)
    system.groups.begin_terminating(GROUP, last)
    system.groups.refill(GROUP)
    young = system.groups.by_name[GROUP].instances[-1].id
    now = system.clock.now()
    system.claims.claim(a_subject(young), surplus(a_surge("i-0other"), now), now)
    system.claims.note(young, times={"drained": now})
    system.kubernetes.budget_list = [a_budget(9)]
    assert Walker(system).run(last).ended == "Terminated"
    assert system.groups.terminated == []
    assert system.claims.records[first].status is Status.OPEN
    assert Walker(system).run(first, attempt=2).ended == "Terminated"
    assert (system.groups.terminated, size(system)) == ([(first, True)], before)
