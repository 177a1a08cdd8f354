"""A surplus waits for its turn through node-termination's own definition: in service, until the one before it has
drained.
"""

from leeward.model.termination import Outcome, Status
from leeward.termination.capacity_ledger import surplus
from tests.fakes.builders import GROUP, a_group, a_node, a_subject, an_instance
from tests.fakes.ledger import a_surge
from tests.state_machines.test_walks import I, a_pod, a_system
from tests.state_machines.walker import Walker

NEXT = "i-0next"


def two_surplus_nodes():
    """I and another member, a pod on each, both requested for launches that are given up; the drain of I has begun."""
    system = a_system(pods=[a_pod()], group=a_group(GROUP, I, NEXT))
    system.instances.put(an_instance(NEXT))
    system.kubernetes.by_name[f"node-{NEXT}"] = a_node(NEXT)
    system.kubernetes.put_pod(a_pod("web-2", node=f"node-{NEXT}"))
    now = system.clock.now()
    for name in (I, NEXT):
        system.claims.claim(a_subject(name), surplus(a_surge(f"new-{name}"), now), now)
    system.claims.note_attempt(I, 1, times={"draining": now})
    return system


def test_it_serves_until_the_one_before_it_has_drained_and_then_ends():
    system = two_surplus_nodes()
    began = system.clock.now()

    def meanwhile(_state, _data):
        record = system.claims.records[I]
        if "drained" not in record.times:
            assert not system.kubernetes.by_name[f"node-{NEXT}"].tainted
            assert "draining" not in system.claims.records[NEXT].times
            if (system.clock.now() - began).total_seconds() > 100:
                system.claims.note_attempt(I, 1, times={"drained": system.clock.now()})

    walk = Walker(system, before=meanwhile).run(NEXT)
    assert (walk.ended, system.groups.terminated) == ("Terminated", [(NEXT, True)])
    assert system.claims.records[NEXT].times["draining"] >= system.claims.records[I].times["drained"]
    looks = walk.states.count("Drain")
    assert looks <= 12  # ten of them while it waits


def test_a_wait_that_no_drain_ends_is_given_up_and_the_node_serves_on():
    system = two_surplus_nodes()
    walk = Walker(system).run(NEXT)
    assert walk.ended == "PodEvictionFailure"
    assert f"{I} do not finish" in walk.cause
    record = system.claims.records[NEXT]
    assert not system.kubernetes.by_name[f"node-{NEXT}"].tainted
    assert (record.status, record.outcome) in {(Status.OPEN, None), (Status.CLOSED, Outcome.RETURNED_TO_SERVICE)}
    assert system.groups.terminated == []
