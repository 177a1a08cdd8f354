"""Two deployments of Leeward on one cluster, each with a table of its own: neither touches the other's nodes."""

from dataclasses import replace

import pytest

from leeward.model import well_known
from leeward.model.node import disruption_taint, stripped, tainted, untainted
from leeward.reconcile.reconciler import reconcile_once
from leeward.termination.drain import drain
from leeward.termination.node_removal import return_to_service
from leeward.termination.run import Next, Run
from leeward.termination.steps import Status
from tests.fakes.builders import CLUSTER, DEPLOYMENT, GROUP, a_group, a_node, an_instance, policies
from tests.fakes.system import FakeSystem
from tests.state_machines.test_walks import a_pod
from tests.unit.reconcile.test_reconciler import NODE, claim

OTHER = "444455556666-us-east-1"
NAME = f"node-{NODE}"


@pytest.fixture
def pair():
    """This deployment and the other one, which see the same cluster and group."""
    both = tuple(
        FakeSystem(
            instances=[an_instance(NODE)],
            groups=[a_group(GROUP, NODE)],
            nodes=[a_node(NODE)],
            written=policies(),
            deployment=deployment,
        )
        for deployment in (DEPLOYMENT, OTHER)
    )
    shared = both[0].kubernetes
    both[1].kubernetes = shared
    both[1].clusters.apis[CLUSTER] = shared
    return both


def reconcile_for_minutes(system, minutes=30):
    swept = []
    for _ in range(minutes):
        swept.append(reconcile_once(system.ports))
        system.clock.advance(minutes=1)
    return swept


@pytest.mark.parametrize("first", [0, 1], ids=["ours drains", "theirs drains"])
def test_the_taint_of_the_deployment_that_drains_a_node_outlives_the_passes_of_the_other(pair, first):
    draining, sweeping = pair[first], pair[1 - first]
    draining.kubernetes.taint(draining.kubernetes.by_name[NAME], disruption_taint(draining.ports.deployment))
    claim(draining)
    swept = reconcile_for_minutes(sweeping)
    assert all(found.untainted == [] for found in swept)
    assert swept[-1].foreign == [f"{NAME}: {draining.ports.deployment}"]
    node = draining.kubernetes.by_name[NAME]
    assert node.unschedulable
    assert node.disrupted_by == draining.ports.deployment
    assert reconcile_once(draining.ports).foreign == []


@pytest.mark.parametrize("first", [0, 1], ids=["ours", "theirs"])
def test_a_taint_without_a_record_is_taken_off_by_its_owner_alone(pair, first):
    owner, other = pair[first], pair[1 - first]
    owner.kubernetes.taint(owner.kubernetes.by_name[NAME], disruption_taint(owner.ports.deployment))
    assert all(found.untainted == [] for found in reconcile_for_minutes(other, 3))
    assert [name for found in reconcile_for_minutes(owner, 3) for name in found.untainted] == [NAME]
    assert not owner.kubernetes.by_name[NAME].unschedulable


def test_a_termination_that_returns_the_node_to_service_leaves_the_other_deployments_taint(pair):
    ours, theirs = pair
    theirs.kubernetes.taint(theirs.kubernetes.by_name[NAME], disruption_taint(OTHER))
    ours.kubernetes.put_pod(a_pod())
    claim(ours)
    run = Run(instance=NODE, attempt=1, version=1, next=Next.DRAIN)
    drain(run, {}, ours.ports)
    assert ours.kubernetes.by_name[NAME].disrupted_by == OTHER
    return_to_service(replace(run, next=Next.FAILED), {}, ours.ports)
    node = ours.kubernetes.by_name[NAME]
    assert (node.disrupted_by, node.unschedulable) == (OTHER, True)


def test_a_record_names_its_deployment(pair):
    assert [claim(system).deployment for system in pair] == [DEPLOYMENT, OTHER]
    assert claim(pair[0]).status is Status.OPEN


def test_a_cordon_and_a_label_under_the_other_deployments_taint_stay():
    node = tainted(a_node(NODE), disruption_taint(OTHER), cordon=True, exclude=True)
    assert untainted(node, disruption_taint(DEPLOYMENT)) == node
    assert stripped(node, DEPLOYMENT) == node
    bare = untainted(node, disruption_taint(OTHER))
    assert (bare.tainted, bare.unschedulable, well_known.EXCLUDE_LABEL in bare.labels) == (False, False, False)
