"""Two clusters on one deployed stack, of which one accepts connections and never answers: the other does not notice."""

import base64
import logging
import time

import pytest

from local import fleet
from local.demo import ledger, scenario
from local.fleet import GroupPlan
from local.stack import LocalStack
from local.workloads import apply_roles
from tests.adapters.hanging_server import HangingServer
from tests.local.chain.conftest import Crew, called
from tests.local.deployment import deploy

log = logging.getLogger(__name__)
pytestmark = [pytest.mark.local, pytest.mark.long]  # simulated worlds have two clusters and calls that hang in each run

FROZEN = "frozen"
SWEEP_SECONDS = 55  # fn reconciler's time-out (infra/termination.py)


@pytest.fixture(scope="module")
def frozen():
    """An API server that accepts every connection and never answers."""
    server = HangingServer()
    yield server
    server.close()


@pytest.fixture(scope="module")
def stack(tmp_path_factory, frozen):
    """One deployment that serves both clusters; schedules are off, so that a test says when the reconciler runs."""
    directory = tmp_path_factory.mktemp("two-clusters")
    with LocalStack(directory=directory, boot_delay=0.5, termination_scale=0.1, pod_start=0.3) as running:
        role = f"arn:aws:iam::{running.account}:role/local-eks"
        running.client("eks").create_cluster(
            name=FROZEN, roleArn=role, resourcesVpcConfig={"subnetIds": []}, version="1.33"
        )
        authority = base64.b64encode((running.directory / "cluster" / "ca.crt").read_bytes()).decode()
        known = {"endpoint": frozen.url, "certificateAuthorityData": authority}
        running.control("PUT", f"eks/{FROZEN}", known)
        settings = scenario.settings(running)
        settings["clusters"].append({**settings["clusters"][0], "name": FROZEN})
        deploy(running, settings)
        apply_roles(running)
        for name in ("sync", "disruption-planner", "reconciler"):
            running.client("events").disable_rule(Name=f"leeward-{name}-schedule")
        yield running


@pytest.fixture(scope="module")
def network(stack):
    return fleet.build_network(stack)


def a_group(stack, network, name, cluster):
    """Two spot instances tagged for the cluster."""
    plan = GroupPlan(name=name, size=2, spot=True)
    mine, stack.cluster = stack.cluster, cluster
    try:
        fleet.build_group(stack, network, plan)
    finally:
        stack.cluster = mine
    return [str(member["InstanceId"]) for member in fleet.instances_of(stack, name)]


def test_a_cluster_that_hangs_delays_neither_the_reconciler_nor_a_spot_warning_of_the_other(stack, network, frozen):
    theirs = a_group(stack, network, "web-frozen", FROZEN)
    team = Crew(stack=stack, group="web-live", instances=a_group(stack, network, "web-live", stack.cluster))
    team.until(lambda: set(team.instances) <= ledger.nodes(stack).keys(), "nodes joined")
    team.until(lambda: all(scenario.is_ready(ledger.nodes(stack)[one]) for one in team.instances), "nodes Ready")

    began = time.monotonic()
    for victim in (theirs[0], team.instances[0]):
        stack.emit(scenario.spot_warning(stack, victim))
    team.until(lambda: team.record(team.instances[0]), "the claim of the cluster that answers")
    claimed = time.monotonic() - began
    team.until(lambda: team.record(theirs[0]), "the claim of the cluster that hangs")
    theirs_claimed = time.monotonic() - began
    assert team.closed(team.instances[0]).outcome == "terminated"
    drained = time.monotonic() - began

    swept_from = time.monotonic()
    swept = called(stack, "reconciler")
    took = time.monotonic() - swept_from
    times = {"claimed": claimed, "claimed where it hangs": theirs_claimed, "drained": drained, "swept": took}
    log.info("seconds: %s", {name: round(seconds, 1) for name, seconds in times.items()})
    assert frozen.asked, swept["errors"]
    assert drained < 120
    assert took < SWEEP_SECONDS
    assert any(error.startswith(FROZEN) for error in swept["errors"])
    assert not any(error.startswith(stack.cluster) for error in swept["errors"])
