"""Drift on the running system: what counts as drift, what is said of it on the node, and what is done about it."""

from dataclasses import replace
from datetime import timedelta

import pytest

from leeward.model.launch import Override
from leeward.policy.document import Budget, DesiredNode, NodeRequirement
from tests.simulation.disruption_stand_in import CHANGED, DECIDED, GROUP, Disrupted, a_fleet

REASONS = "leeward.dev/drift-reasons"
NOT_FIXABLE = "DriftNotFixable"  # reason of an Event
PARAMETER = "/golden/images/web"
NEWER = "ami-00000000000000002"


def wanting(**policy):
    """A cluster whose policy asks more of its nodes."""
    fleet = a_fleet()
    written = tuple(replace(one, **policy) for one in fleet.policies.policies)
    return Disrupted(replace(fleet, policies=replace(fleet.policies, policies=written)))


def reported(world):
    """Node -> the fields in which it says that it has drifted, of those that say so."""
    nodes = {node["metadata"]["name"]: node for node in world.world.cluster.store.each("nodes")}
    notes = {name: (node["metadata"].get("annotations") or {}).get(REASONS) for name, node in nodes.items()}
    return {name: said for name, said in notes.items() if said}


def images(world):
    members = world.world.groups[GROUP].instances
    return {world.world.fleet.instances[one.id].image for one in members}


def test_a_newer_image_behind_the_alias_of_the_same_template_version_drifts_every_node_and_each_is_replaced():
    world = Disrupted()
    seen = []

    template = world.world.fleet.groups[GROUP].template
    template.parameters[PARAMETER] = template.images[0]
    template.images[0] = f"resolve:ssm:{PARAMETER}"  # before the first instance is launched

    def publish():
        template.parameters[PARAMETER] = NEWER

    world.at(CHANGED, publish).at(DECIDED + 5, lambda: seen.append(reported(world))).run()
    assert set(seen[0].values()) == {"ami"}
    assert (images(world), world.versions, world.ends) == ({NEWER}, ["1", "1", "1"], ["DisruptionDone"] * 3)
    assert reported(world) == {}
    assert world.untouched()


def renaming():
    """A cluster whose instances rename themselves when they boot."""
    world = Disrupted()
    world.world.fleet.groups[GROUP].renames = "web-10-0-1-7"
    return world


def test_what_every_new_node_shows_again_is_reported_once_and_no_node_is_replaced_for_it():
    world, said = renaming(), []
    store = world.world.cluster.store
    world.at(DECIDED + 900, lambda: said.extend(one for one in store.each("events") if one["reason"] == NOT_FIXABLE))
    world.run()
    assert list(reported(world).values()) == ["tags"] * 3
    assert [event.get("count", 1) for event in said] == [1, 1, 1], "by four runs of the planner"
    assert (world.ends, world.launches) == ([], 0)


def test_a_new_version_rolls_every_node_of_a_group_whose_nodes_differ_by_design():
    world = renaming().drifting().run()
    assert (world.versions, world.ends, world.launches) == (["2", "2", "2"], ["DisruptionDone"] * 3, 3)
    assert list(reported(world).values()) == ["tags"] * 3
    assert world.untouched()


FOUR_CORES = {"VCpuCount": {"Min": 4, "Max": 4}, "MemoryMiB": {"Min": 16384, "Max": 16384}}


@pytest.mark.parametrize(
    "override", [Override(instance_type="m5.xlarge"), Override(requirements=FOUR_CORES)], ids=["type", "requirements"]
)
def test_other_types_of_a_group_without_a_new_version_roll_its_nodes_one_after_the_other(override):
    world = Disrupted()
    group = world.world.fleet.groups[GROUP]

    def widen():
        group.overrides, group.plan = (override,), replace(group.plan, instance_type="m5.xlarge")
        group.point_at(group.version)  # its description names the overrides

    world.at(CHANGED, widen).run()
    assert {member.type for member in world.world.groups[GROUP].instances} == {"m5.xlarge"}
    assert (set(world.versions), world.ends) == ({"1"}, ["DisruptionDone"] * 3)
    assert reported(world) == {}
    assert world.untouched()


def test_a_difference_that_the_first_replacement_shows_again_ends_the_method_for_its_group():
    """The tags of the group change, and something takes the new one from each of its instances."""
    world = Disrupted()
    group = world.world.fleet.groups[GROUP]

    def retag():
        group.tags = {**group.tags, "team": "another"}

    world.at(CHANGED, retag).run(2)
    assert (world.launches, world.versions) == (1, ["1", "1", "1"])
    assert world.ends == ["DisruptionGivenUp"]
    assert "was launched after this was wanted" in next(iter(world.record.wanted[GROUP].proofs.values()))
    assert world.untouched()


def test_a_parameter_that_does_not_move_is_no_drift():
    world = Disrupted()
    template = world.world.fleet.groups[GROUP].template
    template.parameters |= {PARAMETER: template.images[0], "/another": template.images[0]}
    template.images[0] = f"resolve:ssm:{PARAMETER}"
    world.at(CHANGED, lambda: template.parameters.update({"/another": NEWER})).run()
    assert (reported(world), world.ends, world.launches) == ({}, [], 0)


def test_a_label_that_no_launch_would_bring_is_reported_and_nothing_is_rolled():
    world = wanting(node=DesiredNode(labels={"tier": "front"})).run()
    assert list(reported(world).values()) == ["labels"] * 3
    assert (world.ends, world.launches) == ([], 0)


def test_only_nodes_that_are_incompatible_with_a_requirement_have_drifted():
    elsewhere = NodeRequirement(key="topology.kubernetes.io/zone", operator="NotIn", values=("us-east-1c",))
    world = wanting(requirements=(elsewhere,)).run()
    (there,) = [node for node in world.world.cluster.store.each("nodes") if zone_of(node) == "us-east-1c"]
    assert reported(world) == {there["metadata"]["name"]: "requirements"}
    assert (world.ends, world.launches) == ([], 0), "its group would launch the next one there as well"


def test_other_times_to_live_budgets_and_savings_are_no_drift():
    world = Disrupted()
    rules = {"expire_after": timedelta(days=9), "budgets": (Budget(nodes=3, percent=False),), "savings_percent": 50.0}

    def write_anew():
        written = world.world.policies
        changed = (replace(one, disruption=replace(one.disruption, **rules)) for one in written.policies)
        world.world.rewrite(replace(written, policies=tuple(changed)))

    world.at(CHANGED, write_anew).run()
    assert (reported(world), world.ends, world.launches) == ({}, [], 0)


def zone_of(node):
    return node["metadata"]["labels"]["topology.kubernetes.io/zone"]
