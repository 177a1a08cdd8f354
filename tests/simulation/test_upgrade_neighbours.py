"""Cluster Autoscaler beside an upgrade: it grows the group for pods that wait, and leaves new nodes alone."""

from dataclasses import replace

import pytest

from leeward.model.well_known import KEPT_FOR, SCALE_DOWN_DISABLED
from simulation.autoscaler import WHO
from simulation.plans import AutoscalerPlan
from tests.simulation.fleet_stand_in import budget, deployment
from tests.simulation.upgrade_stand_in import BEGIN, GROUP, Upgraded, a_fleet

HURRY = AutoscalerPlan(unneeded_seconds=30, after_growth_seconds=30, recheck_seconds=30, provision_seconds=300, least=0)
AT_SIZE = replace(HURRY, least=1)  # and no further than the size of the group: what comes ahead it may take
PER_NODE = 7  # pods of a quarter vCPU on two vCPU


def a_world(pods, autoscaler=HURRY, **update):
    workloads = (deployment("web", pods), budget("web"))
    fleet = replace(a_fleet(6, maximum=14, workloads=workloads, **update), autoscaler=autoscaler)
    return Upgraded(fleet).start(launchTemplateVersion="2")


def reported(world):
    return "\n".join(world.world.story)


def names(world):
    return {node["metadata"]["name"] for node in world.world.cluster.store.each("nodes")}


def notes(world, name):
    return world.world.cluster.store.find("nodes", name)["metadata"].get("annotations") or {}


def with_note(world, key):
    return {name for name in names(world) if key in notes(world, name)}


@pytest.mark.parametrize("after", [20, 100, 160])
def test_what_cluster_autoscaler_adds_for_waiting_pods_stays_and_every_node_is_new(after):
    world = a_world(5 * PER_NODE)
    more = deployment("more", 8 * PER_NODE)
    world.at(BEGIN + after, lambda: world.world.cluster.create("deployments", more, "default")).run(2)
    assert f"{WHO} changes the desired capacity" in reported(world)
    assert (world.ended(), world.versions, world.cordoned, world.group.suspended) == ("Upgraded", ["2"], [], ())
    assert world.group.desired > 6


@pytest.mark.parametrize("at_once", [1, 3])
def test_in_a_hurry_it_takes_no_new_node_either(at_once):
    world = a_world(6 * PER_NODE - 2, AT_SIZE, max_unavailable=at_once).run(2)
    removed = [line for line in reported(world).splitlines() if f"{WHO} removes" in line]
    assert (removed, world.ended(), world.versions, world.cordoned) == ([], "Upgraded", ["2"], [])
    assert (world.record.finished, world.record.others_scaled) == (6, None)


@pytest.mark.parametrize("ended", ["Upgraded", "Aborted", "RolledBack", "stopped"])
def test_nodes_are_kept_from_it_while_the_upgrade_runs_and_no_longer(ended):
    world = a_world(6 * PER_NODE - 2, AT_SIZE)
    kept = []
    world.watch(lambda: kept.append(len(with_note(world, KEPT_FOR))))
    if ended == "stopped":
        world.at(BEGIN + 200, lambda: world.machine.stop("first"))
    elif ended != "Upgraded":
        control = {"group": GROUP, "action": {"Aborted": "abort", "RolledBack": "rollback"}[ended]}
        world.at(BEGIN + 200, lambda: world.machine.start("control", control))
    world.run(2)
    assert ended in {"stopped", world.ended()}
    assert max(kept) > 0
    assert with_note(world, KEPT_FOR) | with_note(world, SCALE_DOWN_DISABLED) == set()


def test_what_others_keep_from_it_stays_theirs():
    world = a_world(6 * PER_NODE - 2, AT_SIZE)
    theirs = {"metadata": {"annotations": {SCALE_DOWN_DISABLED: "true"}}}

    def look():
        for name in names(world) - before:
            if SCALE_DOWN_DISABLED not in notes(world, name):
                world.world.cluster.patch("nodes", name, theirs)

    before = names(world)
    world.watch(look).run(2)
    assert (world.ended(), world.record.finished) == ("Upgraded", 6)
    assert with_note(world, KEPT_FOR) == set()
    assert with_note(world, SCALE_DOWN_DISABLED) == names(world) - before


def test_at_its_defaults_it_takes_no_new_node_before_its_pods_have_come():
    world = a_world(4 * PER_NODE, AutoscalerPlan()).run(2)
    assert (world.ended(), world.versions, world.cordoned) == ("Upgraded", ["2"], [])
    assert (world.record.finished, world.record.others_scaled) == (6, None)
