"""Who is old, who is new, and whether all old nodes may be cordoned (U6, V2)."""

from dataclasses import replace

import pytest

from leeward.model import well_known
from leeward.model.launch import LaunchTemplateRef
from leeward.model.node import Taint
from leeward.upgrade.gate import Lack, evaluate_gate, gate_of, is_proven, waited_for
from leeward.upgrade.members import (
    IMAGE_LABEL,
    NODEGROUP_LABEL,
    TEMPLATE_LABEL,
    VERSION_LABEL,
    Age,
    UpgradeTarget,
    members,
)
from tests.unit.upgrade.builders import NEW, OLD, a_group, a_node, an_instance, an_upgrade, template

TARGET = UpgradeTarget(template=template(NEW))


def ages(*instances, nodes=(), target=TARGET):
    by_id = {node.instance_id: node for node in nodes}
    return {member.name: member.age for member in members(a_group(*instances), by_id, target)}


def gate(*instances, nodes, zones=("a",), target=TARGET):
    by_id = {node.instance_id: node for node in nodes}
    return evaluate_gate(members(a_group(*instances), by_id, target), zones, target.labels)


def lacks(found):
    return [(one.lack, one.object) for one in found.missing]


def test_the_groups_own_record_of_the_template_version_separates_old_from_new():
    assert ages(an_instance("o", version=OLD), an_instance("n", version=NEW)) == {"i-o": Age.OLD, "i-n": Age.NEW}


def test_another_template_with_the_same_number_is_old():
    other = UpgradeTarget(template=LaunchTemplateRef(id="lt-2", version=NEW))
    assert ages(an_instance("n", version=NEW), target=other) == {"i-n": Age.OLD}


def test_without_ids_the_names_of_the_templates_are_compared():
    named = UpgradeTarget(template=LaunchTemplateRef(name="web", version=NEW))
    assert ages(an_instance("n", version=NEW), target=named) == {"i-n": Age.OLD}


def test_an_instance_without_a_record_is_old():
    assert ages(an_instance("o", version=None)) == {"i-o": Age.OLD}


def test_a_version_that_is_yet_to_be_made_makes_every_member_old():
    assert ages(an_instance("n", version=NEW), target=UpgradeTarget()) == {"i-n": Age.OLD}


def test_an_override_with_a_template_of_its_own_is_judged_by_that():
    target = UpgradeTarget(template=template("7"), overrides={"m5.large": template(NEW)})
    assert ages(an_instance("n", version=NEW), target=target) == {"i-n": Age.NEW}


@pytest.mark.parametrize(
    ("came", "age"), [(("lt-arm", "4"), Age.NEW), (("lt-arm", "3"), Age.OLD), (("lt-gone", "4"), Age.OLD)]
)
def test_a_member_of_an_override_with_requirements_is_judged_by_that_overrides_template(came, age):
    """Which types its requirements choose is not needed: the member's own template tells."""
    own = LaunchTemplateRef(id="lt-arm", version="4")
    member = replace(an_instance("n"), template=LaunchTemplateRef(id=came[0], version=came[1]))
    assert ages(member, target=UpgradeTarget(template=template("7"), by_requirements=(own,))) == {"i-n": age}


def test_two_versions_of_a_template_are_both_new_where_an_override_names_the_other():
    target = UpgradeTarget(template=template("7"), by_requirements=(template("6"),))
    found = ages(*(an_instance(f"n{version}", version=version) for version in ("5", "6", "7")), target=target)
    assert found == {"i-n5": Age.OLD, "i-n6": Age.NEW, "i-n7": Age.NEW}


@pytest.mark.parametrize("lifecycle", ["Terminating:Wait", "Terminating", "Detaching", "Warmed:Stopped"])
def test_terminating_instances_and_those_in_a_warm_pool_are_no_members(lifecycle):
    assert ages(an_instance("o", lifecycle=lifecycle)) == {}


def test_of_a_managed_group_the_image_label_decides_where_the_record_does_not():
    target = UpgradeTarget(nodegroup="ng", image="ami-2")
    nodes = (a_node("o", labels={IMAGE_LABEL: "ami-1"}), a_node("n", labels={IMAGE_LABEL: "ami-2"}))
    found = ages(an_instance("o", version=None), an_instance("n", version=None), nodes=nodes, target=target)
    assert found == {"o": Age.OLD, "n": Age.NEW}


def test_of_a_custom_template_both_labels_have_to_be_the_targets():
    target = UpgradeTarget(nodegroup="ng", source=("lt-9", "3"))
    right, other = {TEMPLATE_LABEL: "lt-9", VERSION_LABEL: "3"}, {TEMPLATE_LABEL: "lt-8", VERSION_LABEL: "3"}
    nodes = (a_node("n", labels=right), a_node("o", labels=other))
    found = ages(an_instance("n", version=None), an_instance("o", version=None), nodes=nodes, target=target)
    assert found == {"n": Age.NEW, "o": Age.OLD}


def test_the_gate_opens_with_a_ready_new_node_in_every_zone_that_has_old_ones():
    instances = (an_instance("o"), an_instance("n", version=NEW))
    assert gate(*instances, nodes=(a_node("o"), a_node("n"))).open
    closed = gate(*instances, nodes=(a_node("o"), a_node("n")), zones=("a", "b"))
    assert lacks(closed) == [(Lack.NO_NEW_NODE, "b")]


def test_a_zone_whose_only_old_node_is_being_terminated_needs_no_new_node():
    """Nothing is launched for it: the upgrade would end with addresses that no subnet lacks."""
    taint = Taint(key=well_known.DISRUPTED_TAINT, effect="NoSchedule")
    surplus = a_node("old-b", "b")
    nodes = [a_node("old-a", "a"), a_node("new-a", "a")]
    assert not gate_of(an_upgrade(*nodes, surplus, new=["new-a"])).open
    assert gate_of(an_upgrade(*nodes, replace(surplus, taints=(taint,)), new=["new-a"])).open


def test_every_new_node_has_to_be_there_and_ready():
    instances = (an_instance("n", version=NEW), an_instance("m", version=NEW), an_instance("x", version=NEW))
    found = gate(*instances, nodes=(a_node("n"), a_node("m", ready=False)))
    assert lacks(found) == [(Lack.NOT_JOINED, "i-x"), (Lack.NOT_READY, "m")]


def test_every_new_node_has_to_carry_the_labels_that_eks_applies():
    target = UpgradeTarget(template=template(NEW), nodegroup="ng", image="ami-2")
    right = a_node("n", labels={NODEGROUP_LABEL: "ng", IMAGE_LABEL: "ami-2"})
    wrong = a_node("m", labels={NODEGROUP_LABEL: "ng", IMAGE_LABEL: "ami-1"})
    instances = (an_instance("n", version=NEW), an_instance("m", version=NEW))
    found = gate(*instances, nodes=(right, wrong), target=target)
    assert [one.message for one in found.missing] == [f"m: without the labels {IMAGE_LABEL}=ami-2"]


def test_a_custom_template_expects_its_own_pair_of_labels_instead_of_the_image():
    target = UpgradeTarget(nodegroup="ng", image="ami-2", source=("lt-9", "3"))
    assert target.labels == {NODEGROUP_LABEL: "ng", TEMPLATE_LABEL: "lt-9", VERSION_LABEL: "3"}


def proven(*instances, nodes, zones=("a", "b")):
    by_id = {node.instance_id: node for node in nodes}
    return is_proven(members(a_group(*instances), by_id, TARGET), zones, TARGET.labels)


def test_a_target_is_proven_by_a_ready_new_node_in_each_zone_though_others_still_boot():
    both = [an_instance("n1", "a", NEW), an_instance("n2", "b", NEW), an_instance("n3", "b", NEW)]
    assert proven(*both, nodes=[a_node("n1"), a_node("n2", "b")])
    assert not proven(*both, nodes=[a_node("n1"), a_node("n2", "b", ready=False)])
    assert not proven(*both, nodes=[a_node("n1")])


@pytest.mark.parametrize(("most", "passes"), [(1, True), (2, False), (3, False)])
def test_a_max_surge_below_the_zones_needs_a_new_node_in_as_many_of_them(most, passes):
    found, zones = members(a_group(an_instance("n1", "a", NEW)), {"i-n1": a_node("n1")}, TARGET), ("a", "b")
    assert evaluate_gate(found, zones, TARGET.labels, most=most).open is passes
    assert is_proven(found, zones, TARGET.labels, most=most) is passes


def test_a_new_node_in_a_zone_without_old_ones_serves_none_of_them():
    found = members(a_group(an_instance("n1", "c", NEW)), {"i-n1": a_node("n1", "c")}, TARGET)
    assert [one.object for one in evaluate_gate(found, ("a", "b"), TARGET.labels, most=1).missing] == ["a", "b"]


def test_old_nodes_prove_nothing():
    assert not proven(an_instance("n1", "a", NEW), an_instance("o", "b"), nodes=[a_node("n1"), a_node("o", "b")])


def names_waited_for(*instances, early):
    return [one.instance.id for one in waited_for(members(a_group(*instances), {}, TARGET), early)]


def test_new_nodes_that_came_after_the_proof_are_not_waited_for():
    both = [an_instance("n1", "a", NEW), an_instance("n2", "b", NEW), an_instance("n3", "b", NEW)]
    assert names_waited_for(*both, early={"i-n1", "i-n2"}) == ["i-n1", "i-n2"]


def test_in_a_zone_without_an_earlier_one_the_later_ones_are_waited_for():
    both = [an_instance("n1", "a", NEW), an_instance("n2", "b", NEW), an_instance("n3", "b", NEW)]
    assert names_waited_for(*both, early={"i-n1"}) == ["i-n1", "i-n2", "i-n3"]
    assert names_waited_for(*both, early=()) == ["i-n1", "i-n2", "i-n3"]
