"""Drift field by field: rows K14 and K15 of docs/features.md, Karpenter v0.30's Drift design."""

import base64

import pytest

from leeward.drift.detect import WRITTEN, Remedy, annotations, drift_of
from leeward.drift.reasons import DriftKind, Field
from leeward.model.instance import LaunchAttributes
from leeward.model.launch import LaunchSettings
from leeward.model.node import Taint
from leeward.policy.document import DesiredNode, DesiredTaint, NodeRequirement
from tests.unit.disruption.fleet import ZONES, a_fleet, a_policy, rules

OLD = {"image": "ami-1"}


def drift(fleet, node="n1"):
    snapshot = fleet.snapshot()
    return drift_of(snapshot, snapshot.node(node))


def fields(fleet):
    return [reason.field for reason in drift(fleet).reasons]


def launched(instance=None, **launch):
    return a_fleet().group("web", launch=LaunchSettings(**launch)).node("n1", instance=instance or {})


def written(fleet, node="n1"):
    """All that the node should carry for drift."""
    snapshot = fleet.snapshot()
    found = annotations(snapshot, snapshot.node(node), drift(fleet, node))
    return {key: value for key, value in found.items() if value is not None}


def wanting(**policy):
    return a_fleet(a_policy(disruption=rules(), **policy))


def script(text):
    return base64.b64encode(f"#!/bin/bash\n/etc/eks/bootstrap.sh blue {text}".encode()).decode()


def test_a_node_as_its_group_would_launch_it_has_not_drifted():
    found = drift(launched({"image": "ami-1"}, image="ami-1"))
    assert (found.drifted, found.since, found.remedy) == (False, None, Remedy.NONE)


def test_another_image_behind_the_template_is_dynamic_drift_that_a_new_node_mends():
    found = drift(launched({"image": "ami-1"}, image="ami-2"))
    (reason,) = found.reasons
    assert (reason.field, reason.kind, reason.have, reason.want) == (Field.AMI, DriftKind.DYNAMIC, "ami-1", "ami-2")
    assert found.remedy is Remedy.REPLACE


@pytest.mark.parametrize("image", ["", "resolve:ssm:/aws/service/eks/image"])
def test_an_unresolved_image_is_no_drift(image):
    assert not drift(launched({"image": "ami-1"}, image=image)).drifted


def test_a_subnet_that_the_group_no_longer_uses_is_drift():
    fleet = a_fleet().group("web", zones=ZONES[:1]).node("n1", instance={"subnet": "subnet-old"})
    assert fields(fleet) == [Field.SUBNETS]


@pytest.mark.parametrize(
    ("have", "want", "field"),
    [
        ({"security_groups": ("sg-1",)}, {"security_groups": ("sg-2",)}, Field.SECURITY_GROUPS),
        ({"profile": "old"}, {"profile": "new"}, Field.INSTANCE_PROFILE),
        ({"profile": None}, {"profile": "new"}, Field.INSTANCE_PROFILE),
        ({"tags": {"team": "a", "own": "x"}}, {"tags": {"team": "b"}}, Field.TAGS),
        ({"metadata": {"HttpTokens": "optional"}}, {"metadata": {"HttpTokens": "required"}}, Field.METADATA_OPTIONS),
        ({"monitoring": False}, {"monitoring": True}, Field.DETAILED_MONITORING),
    ],
)
def test_what_ec2_shows_is_compared_with_what_the_template_says(have, want, field):
    assert fields(launched({"look": LaunchAttributes(**have)}, look=LaunchAttributes(**want))) == [field]
    assert fields(launched({"look": LaunchAttributes(**want)}, look=LaunchAttributes(**want))) == []


def test_what_the_template_leaves_open_is_no_drift():
    look = LaunchAttributes(
        security_groups=("sg-1",), profile="p", tags={"a": "b"}, metadata={"HttpTokens": "x"}, monitoring=True
    )
    assert fields(launched({"look": look})) == []


def test_a_type_among_several_is_compatible_and_one_that_is_gone_is_not():
    """The design's own example: from [m5.large] to [m5.large, m5.2xlarge] nothing drifts."""
    assert fields(a_fleet().group("web", "medium", "large").node("n1", type="medium")) == []
    assert fields(a_fleet().group("web", "large").node("n1", type="medium")) == [Field.REQUIREMENTS]


def test_a_group_that_pays_otherwise_now_has_drifted_nodes_unless_it_keeps_an_on_demand_base():
    assert fields(a_fleet().group("web", spot=True).node("n1", spot=False)) == [Field.REQUIREMENTS]
    kept = a_fleet().group("web", spot=True, fields={"on_demand_base": 1}).node("n1", spot=False)
    assert fields(kept) == []


def test_a_requirement_of_the_policy_that_new_nodes_meet_is_mended_by_replacing():
    wanted = NodeRequirement(key="node.kubernetes.io/instance-type", operator="NotIn", values=("small",))
    fleet = wanting(requirements=(wanted,)).group("web", "small", "large").node("n1", type="small")
    assert drift(fleet).remedy is Remedy.UPGRADE
    fleet = wanting(requirements=(wanted,)).group("web", "large").node("n1", type="small")
    assert drift(fleet).remedy is Remedy.REPLACE


def test_ec2_answers_requirements_that_the_node_has_no_label_for():
    wanted = NodeRequirement(key="karpenter.sh/capacity-type", operator="In", values=("spot",))
    assert fields(wanting(requirements=(wanted,)).group("web", spot=True).node("n1")) == []
    assert fields(wanting(requirements=(wanted,)).group("web").node("n1")) == [Field.REQUIREMENTS]


def test_labels_of_the_policy_are_static_and_mended_only_where_new_nodes_carry_them():
    desired = DesiredNode(labels={"team": "web"})
    found = drift(wanting(node=desired).group("web").node("n1"))
    assert [(one.field, one.kind, one.want) for one in found.reasons] == [(Field.LABELS, DriftKind.STATIC, "team=web")]
    assert found.remedy is Remedy.UPGRADE
    fleet = wanting(node=desired).group("web", labels={"team": "web"}).node("n1")
    assert drift(fleet).remedy is Remedy.REPLACE
    assert fields(wanting(node=desired).node("n1", labels={"team": "web"})) == []


def test_taints_of_the_policy_have_to_agree_in_key_value_and_effect():
    wanted = DesiredNode(taints=(DesiredTaint(key="gpu", effect="NoSchedule", value="a"),))
    raw = {"key": "gpu", "effect": "NoSchedule"}
    assert fields(wanting(node=wanted).node("n1", taints=[raw | {"value": "a"}])) == []
    assert fields(wanting(node=wanted).node("n1", taints=[raw | {"value": "b"}])) == [Field.TAINTS]
    group = wanting(node=wanted).group("web", taints=(Taint(key="gpu", effect="NoSchedule", value="a"),))
    assert drift(group.node("n1")).remedy is Remedy.REPLACE


def test_annotations_of_the_policy_are_written_and_neither_cause_nor_prevent_a_replacement():
    wanted = DesiredNode(annotations={"a": "b"})
    alone = drift(wanting(node=wanted).node("n1"))
    assert (alone.remedy, alone.not_fixed) == (Remedy.NONE, WRITTEN)
    for carried in ({}, {"a": "b"}):
        fleet = wanting(node=wanted).group("web", launch=LaunchSettings(image="ami-2"))
        assert drift(fleet.node("n1", annotations=carried, instance={"image": "ami-1"})).remedy is Remedy.REPLACE


def test_that_new_nodes_lack_an_annotation_of_the_policy_is_no_proof_of_anything():
    fleet = wanting(node=DesiredNode(annotations={"a": "b"})).node("n1").node("n2")
    assert [reason.proof for reason in drift(fleet).reasons] == [""]


@pytest.mark.parametrize(
    ("policy", "lacks"),
    [
        ({"node": DesiredNode(labels={"team": "a"})}, "label team=a"),
        ({"node": DesiredNode(taints=(DesiredTaint(key="team", effect="NoSchedule"),))}, "taint team=:NoSchedule"),
        ({"requirements": (NodeRequirement(key="team", operator="Exists"),)}, "requirement team Exists"),
    ],
    ids=["label", "taint", "requirement"],
)
def test_what_was_corrected_manually_would_be_missing_on_a_new_node_and_is_named(policy, lacks):
    """An upgrade to the version that the group launches already would end with NothingToUpgrade."""
    taints = [{"key": "team", "effect": "NoSchedule"}]
    manual = {"labels": {"team": "a"}, "taints": taints}
    fleet = wanting(**policy).group("web", launch=LaunchSettings(image="ami-2"))
    found = drift(fleet.node("n1", instance={"image": "ami-1"}, **manual))
    assert ([reason.field for reason in found.reasons], found.remedy) == ([Field.AMI], Remedy.UPGRADE)
    assert found.upgrade.startswith(f"a new node of web would drift as well in {lacks}: change policy web, or what web")


def test_each_difference_has_its_own_remedy():
    wanted = DesiredNode(annotations={"a": "b"})
    found = drift(wanting(node=wanted).group("web", launch=LaunchSettings(image="ami-2")).node("n1", instance=OLD))
    remedies = {reason.field: found.remedy_of(reason) for reason in found.reasons}
    assert remedies == {Field.AMI: Remedy.REPLACE, Field.ANNOTATIONS: Remedy.NONE}
    wanted = DesiredNode(annotations={"a": "b"}, labels={"team": "a"})
    found = drift(wanting(node=wanted).group("web", launch=LaunchSettings(image="ami-2")).node("n1", instance=OLD))
    remedies = {reason.field: found.remedy_of(reason) for reason in found.reasons}
    upgraded = dict.fromkeys((Field.AMI, Field.LABELS), Remedy.UPGRADE)
    assert remedies == {**upgraded, Field.ANNOTATIONS: Remedy.NONE}


def test_user_data_is_compared_with_the_version_that_the_node_came_from():
    now, then = LaunchSettings(user_data=script("")), LaunchSettings(user_data=script("# old"))
    fleet = a_fleet().group("web", launch=now).node("n1")
    assert fields(fleet) == []
    assert fields(fleet.having(launched_from={"i-n1": then})) == [Field.USER_DATA]


def test_kubelets_settings_drift_by_what_they_mean_and_block_devices_as_they_stand():
    now = LaunchSettings(user_data=script("--kubelet-extra-args '--max-pods=50'"), devices="[1]")
    then = LaunchSettings(user_data=script("--kubelet-extra-args '--max-pods=40'"), devices="[]")
    fleet = a_fleet().group("web", launch=now).node("n1").having(launched_from={"i-n1": then})
    assert fields(fleet) == [Field.USER_DATA, Field.KUBELET, Field.BLOCK_DEVICES]


def test_what_was_remembered_on_the_node_counts_and_hashes_of_another_version_do_not():
    """Karpenter's nodepool-hash-version: a change of the algorithm never rolls a fleet."""
    fleet = a_fleet().group("web", launch=LaunchSettings(user_data=script("")))
    remembered = written(fleet.node("n1"))
    assert remembered["leeward.dev/template-hash-version"] == "v2"
    later = a_fleet().group("web", launch=LaunchSettings(user_data=script("# new"))).node("n1", annotations=remembered)
    assert fields(later) == [Field.USER_DATA]
    old = remembered | {"leeward.dev/template-hash-version": "v0"}
    assert fields(a_fleet().group("web", launch=LaunchSettings(user_data="x")).node("n1", annotations=old)) == []


def test_startup_taints_are_remembered_because_they_go():
    before = wanting(node=DesiredNode(startup_taints=(DesiredTaint(key="cni", effect="NoExecute"),))).node("n1")
    remembered = written(before)
    after = wanting(node=DesiredNode()).node("n1", annotations=remembered)
    assert fields(after) == [Field.STARTUP_TAINTS]


def test_since_is_what_the_node_says_else_now():
    fleet = launched({"image": "ami-1"}, image="ami-2")
    assert drift(fleet).since == fleet.now
    fleet.nodes[0]["metadata"]["annotations"] = {"leeward.dev/drifted-since": "2026-04-30T00:00:00Z"}
    assert drift(fleet).since.day == 30


def test_the_annotations_are_put_once_and_taken_off_when_the_node_is_in_order_or_drift_is_off():
    fleet = launched({"image": "ami-1"}, image="ami-2")
    fleet.nodes[0]["metadata"]["annotations"] = put = written(fleet)
    assert put["leeward.dev/drift-reasons"] == "ami"
    assert written(fleet) == put
    fleet.settings["drift"] = False
    assert not {"leeward.dev/drifted-since", "leeward.dev/drift-reasons"} & written(fleet).keys()


def test_a_hash_that_could_not_be_known_at_first_is_remembered_as_soon_as_it_can_be():
    unread = wanting(node=DesiredNode()).group("web", launch=None).node("n1")
    early = written(unread)
    assert "userData" not in early["leeward.dev/template-hash"]
    read = a_fleet().group("web", launch=LaunchSettings(user_data=script("--a"))).node("n1", annotations=early)
    later = written(read)
    assert set(early["leeward.dev/template-hash"].split(",")) < set(later["leeward.dev/template-hash"].split(","))
    changed = a_fleet().group("web", launch=LaunchSettings(user_data=script("--b"))).node("n1", annotations=later)
    assert fields(changed) == [Field.USER_DATA]


def test_a_node_of_no_selected_group_has_nothing_to_differ_from():
    fleet = a_fleet(a_policy("web", "other")).node("n1", instance={"subnet": "elsewhere"})
    assert not drift(fleet).drifted
