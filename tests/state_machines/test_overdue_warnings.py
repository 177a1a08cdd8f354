"""Warnings whose moment passed minutes ago while EC2 says running: replayed, forged, or not carried out by EC2."""

from datetime import timedelta

import pytest

from leeward.model.termination import CauseKind
from tests.fakes.builders import our_hook
from tests.fakes.clock import START
from tests.state_machines.test_walks import I, a_budget, a_pod, a_system, claim
from tests.state_machines.walker import Walker

HOUR = timedelta(hours=1)
KINDS = pytest.mark.parametrize("kind", [CauseKind.SPOT_INTERRUPTION, CauseKind.CAPACITY_RESERVATION])


@KINDS
@pytest.mark.parametrize("hooks", [(), (our_hook(),)], ids=["no hook", "our hook"])
def test_a_node_whose_pod_a_budget_holds_returns_to_service(kind, hooks):
    system = a_system(hooks=hooks, pods=[a_pod(grace=60)], budgets=[a_budget(0)])
    claim(system, kind, deadline=START - HOUR)
    assert Walker(system).run(I).ended == "PodEvictionFailure"
    assert system.kubernetes.done == []
    assert I not in [instance for instance, _ in system.groups.terminated]
    assert not system.kubernetes.by_name[f"node-{I}"].tainted
    assert system.clock.now() - START >= timedelta(minutes=15)


@KINDS
def test_a_pod_gets_its_whole_grace_and_the_node_ends_in_order(kind):
    system = a_system(pods=[a_pod(grace=60)], budgets=[a_budget(1)])
    claim(system, kind, deadline=START - HOUR)
    assert Walker(system).run(I).ended == "Terminated"
    assert system.claims.records[I].times["drained"] - START >= timedelta(seconds=60)
    assert len(system.groups.launches) == 1


def test_a_warning_that_arrives_a_minute_late_still_ends_the_drain_in_time():
    system = a_system(pods=[a_pod(grace=60)], budgets=[a_budget(0)])
    claim(system, CauseKind.SPOT_INTERRUPTION, deadline=START - timedelta(minutes=1))
    assert Walker(system).run(I).ended == "Terminated"
    assert system.clock.now() - START < timedelta(minutes=5)
