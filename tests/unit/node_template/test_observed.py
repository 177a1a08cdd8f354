"""What Ready nodes show about the next node of their group."""

from dataclasses import replace

import pytest

from leeward.model.launch import LaunchSettings
from leeward.model.node import Node, Taint
from leeward.node_template.observed import ReadyNode, kept, observed, recalled
from leeward.node_template.provenance import Attribute, Provenance
from tests.unit.node_template.builders import PREFIX, a_group, a_launch
from tests.unit.node_template.builders import an_expected_node as expected

SCRIPT = "#!/bin/bash\n/etc/eks/bootstrap.sh blue --kubelet-extra-args --node-labels=pool=batch\n"
CONFIG = """apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec: {cluster: {name: blue}, kubelet: {flags: [--node-labels=pool=batch]}}
"""
BRANCH = f"#!/bin/bash\nif true; then\n{SCRIPT.splitlines()[1]}\nfi\n"
GIB = 1024**3
GPU = {"feature.example/gpu.count": "1"}


def a_ready_node(name="n1", *, zone="us-east-1a", launch=None, labels=None, taints=(), kind="m5.large", **amounts):
    raw = {
        "metadata": {"name": name, "uid": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "spec": {
            "providerID": f"aws:///{zone}/i-{name}",
            "taints": [{"key": key, "effect": "NoSchedule"} for key in taints],
        },
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    }
    settings = launch or a_launch()
    return ReadyNode(node=Node.from_json(raw), type=kind, zone=zone, allocatable=amounts, launch=settings)


def seen(*nodes, launch=None, startup=()):
    return observed(nodes, "m5.large", launch or a_launch(), startup)


def test_the_smaller_of_estimate_and_observation_is_the_capacity():
    without = expected()
    large, small = (
        a_ready_node(memory=6 * 1024**3, cpu=1900, pods=500),
        a_ready_node("n2", memory=5 * GIB, cpu=9999),
    )
    found = expected(observed=seen(large, small))
    assert found.allocatable == {**without.allocatable, "memory": 5 * GIB, "cpu": 1900}
    kept = without.capacity["memory"] - without.allocatable["memory"]
    assert found.capacity["memory"] == 5 * GIB + kept
    assert found.provenance[Attribute.CAPACITY] is Provenance.OBSERVED


def test_a_resource_that_every_node_reports_is_offered():
    nodes = a_ready_node(**{"example.com/eni": 9}), a_ready_node("n2", **{"example.com/eni": 4, "example.com/one": 1})
    assert expected(observed=seen(*nodes)).allocatable == {**expected().allocatable, "example.com/eni": 4}


@pytest.mark.parametrize(
    "node",
    [
        a_ready_node(labels=GPU, kind="m5.xlarge"),
        a_ready_node(labels=GPU, launch=replace(a_launch(user_data="#!/bin/bash\n"), version=2)),
        a_ready_node(labels=GPU, launch=LaunchSettings(template="lt-1", version=2)),
    ],
    ids=["another type", "other user data", "another version without user data"],
)
def test_nodes_that_were_launched_otherwise_show_nothing(node):
    assert seen(node) is None


def test_a_node_of_an_older_version_with_the_same_user_data_shows_what_it_is():
    launch = a_launch(user_data=SCRIPT)
    older = LaunchSettings(template="lt-1", version=2, image="ami-0", user_data=launch.user_data)
    assert seen(a_ready_node(launch=older), launch=launch) is not None


def test_labels_that_all_nodes_share_are_known_everywhere_or_in_their_only_zone():
    one = expected(observed=seen(a_ready_node(labels=GPU)))
    assert (GPU.items() <= one.labels.items(), one.zone_labels) == (False, {"us-east-1a": GPU})
    two = expected(observed=seen(a_ready_node(labels=GPU), a_ready_node("n2", zone="us-east-1b", labels=GPU)))
    assert two.labels.items() >= GPU.items()
    differing = expected(observed=seen(a_ready_node(labels=GPU), a_ready_node("n2", zone="us-east-1b")))
    assert (differing.labels.keys() & GPU.keys(), differing.zone_labels["us-east-1b"]) == (set(), {})


def test_labels_of_one_node_or_one_version_are_not_those_of_the_next():
    own = {
        "example.com/instance": "i-n1",
        "eks.amazonaws.com/nodegroup-image": "ami-7",
        "topology.example/rack": "r1",
        "leeward.dev/subnet-id": "subnet-1",
        "node.kubernetes.io/exclude-from-external-load-balancers": "true",
    }
    assert seen(a_ready_node(labels={**own, **GPU})).by_zone == {"us-east-1a": GPU}


def test_an_estimated_label_that_no_node_carries_is_removed():
    launch = a_launch(user_data=SCRIPT)
    nodes = [a_ready_node(launch=launch), a_ready_node("n2", launch=launch)]
    assert expected(launch=launch).labels["pool"] == "batch"
    assert "pool" not in expected(launch=launch, observed=seen(*nodes, launch=launch)).labels
    nodes.append(a_ready_node("n3", launch=launch, labels={"pool": "batch"}))
    assert expected(launch=launch, observed=seen(*nodes, launch=launch)).labels["pool"] == "batch"


def test_labels_are_estimated_where_only_a_script_speaks_of_them_and_no_node_shows_them():
    launch = a_launch(user_data=SCRIPT)
    assert expected(launch=launch).estimated == {"pool"}
    node = a_ready_node(launch=launch, labels={"pool": "batch"})
    assert expected(launch=launch, observed=seen(node, launch=launch)).estimated == frozenset()
    tagged = a_group(tags={f"{PREFIX}label/pool": "batch"})
    assert expected(group=tagged, launch=launch).estimated == frozenset()
    assert expected(launch=a_launch(user_data=CONFIG)).estimated == frozenset()


@pytest.mark.parametrize("label", ["pool", "node.kubernetes.io/lifecycle"])
def test_a_label_of_a_script_that_only_some_nodes_carry_stays_estimated(label):
    launch = a_launch(user_data=SCRIPT.replace("pool=", f"{label}="))
    nodes = [a_ready_node(launch=launch, labels={label: "batch"}), a_ready_node("n2", launch=launch)]
    assert expected(launch=launch, observed=seen(*nodes, launch=launch)).estimated == {label}
    assert expected(launch=launch, observed=seen(nodes[0], launch=launch)).estimated == frozenset()


def test_a_declared_label_stays_where_the_memory_of_a_node_has_left_it_out():
    launch = a_launch(user_data=CONFIG)
    many = {f"feature.example/{number:02}": "1" for number in range(40)}
    shown = seen(a_ready_node(launch=launch, labels={"pool": "batch", **many}), launch=launch)
    memory = recalled(kept({"web/m5.large": (shown, launch)})["web/m5.large"], launch)
    tagged = a_group(tags={f"{PREFIX}label/team": "shop"})  # so that labels are not declared by the NodeConfig alone
    assert "pool" not in dict(memory.carried)
    assert expected(group=tagged, launch=launch, observed=memory).labels["pool"] == "batch"
    promised = a_launch(user_data=SCRIPT)
    forgotten = recalled(kept({"web/m5.large": (shown, promised)})["web/m5.large"], promised)
    assert expected(launch=promised, observed=forgotten).estimated == {"pool"}


def test_where_labels_are_unclear_nodes_do_not_prove_those_of_the_next():
    launch = a_launch(user_data=BRANCH)
    found = expected(launch=launch, observed=seen(a_ready_node(launch=launch, labels={"pool": "batch"}), launch=launch))
    assert ("pool" in found.labels, found.zone_labels) == (False, {})
    assert found.provenance[Attribute.LABELS] is Provenance.UNKNOWN


def test_taints_that_all_nodes_share_are_joined_without_those_that_pass():
    passing = ("node.kubernetes.io/unschedulable", "leeward.dev/disrupted", "cni.example/agent-not-ready", "boot")
    first = a_ready_node(taints=("dedicated", "maintenance", *passing))
    both = seen(first, a_ready_node("n2", taints=("dedicated", *passing)), startup=["boot"])
    tags = {f"{PREFIX}taint/tagged": "x:NoSchedule"}
    assert [taint.key for taint in expected(group=a_group(tags=tags), observed=both).taints] == ["tagged", "dedicated"]
    assert both.taints == (Taint(key="dedicated", effect="NoSchedule"),)


def test_the_operating_system_is_that_of_the_nodes():
    windows = seen(a_ready_node(labels={"kubernetes.io/os": "windows"}))
    assert expected(observed=windows).labels["kubernetes.io/os"] == "windows"
