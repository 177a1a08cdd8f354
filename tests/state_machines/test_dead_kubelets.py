"""Nodes whose kubelet is gone, with pods that were deleted and have hours of grace left: nothing runs that down."""

from dataclasses import replace
from datetime import timedelta

import pytest

from leeward.model.termination import CauseKind
from leeward.policy.document import DrainPolicy
from tests.fakes.builders import a_node
from tests.fakes.clock import START
from tests.state_machines.test_walks import I, a_pod, a_system, claim
from tests.state_machines.walker import Walker

HOURS = 6 * 3600
SILENT = timedelta(minutes=31)
DEFAULTS, FORCE = DrainPolicy(), DrainPolicy(force=True)


def walked(kind=CauseKind.UNHEALTHY, *, drain=DEFAULTS, silent=SILENT):
    """Return how long the drain takes of a node that has been NotReady for so long, and the system; None: Ready."""
    pod = replace(a_pod(grace=HOURS), deletion=START + timedelta(seconds=HOURS))
    system = a_system(pods=[pod], drain=drain)
    ready = silent is None
    node = replace(a_node(I, ready=ready), not_ready_since=None if ready else START - silent)
    system.kubernetes.by_name[node.name] = node
    system.kubernetes.stuck.add("shop/web-1")
    claim(system, kind)
    assert Walker(system).run(I).ended == "Terminated"
    return system.clock.now() - START, system


@pytest.mark.parametrize("drain", [DEFAULTS, FORCE], ids=["default", "force"])
def test_an_unhealthy_node_is_ended_at_the_time_out_of_its_drain(drain):
    took, system = walked(drain=drain)
    assert timedelta(minutes=14) < took < timedelta(minutes=20)
    (given_up,) = [event for event in system.kubernetes.events if event.reason == "PodEvictionFailure"]
    assert given_up.message.endswith("its kubelet does not answer")


def test_with_force_so_is_one_that_ends_for_another_cause():
    assert walked(CauseKind.MANUAL, drain=FORCE)[0] < timedelta(minutes=20)


@pytest.mark.parametrize(
    ("kind", "silent"),
    [
        (CauseKind.UNHEALTHY, None),
        (CauseKind.UNHEALTHY, -timedelta(hours=5, minutes=59)),
        (CauseKind.MANUAL, SILENT),
    ],
    ids=["a living kubelet", "silent at the end alone", "another cause"],
)
def test_any_other_node_gives_its_pods_their_whole_grace(kind, silent):
    assert walked(kind, silent=silent)[0] > timedelta(seconds=HOURS)
