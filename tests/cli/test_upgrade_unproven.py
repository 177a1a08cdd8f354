"""`leeward upgrade plan` for pods that need what nodes have and nothing that boots them names."""

import base64
import json

import pytest

from tests.cli.command import NOON
from tests.cli.snapshots.upgrade import a_node, a_pod, an_upgrade_snapshot, templates

FEATURE = {"feature.node.kubernetes.io/fast": "true"}
SCRIPT = "#!/bin/bash\n/etc/eks/bootstrap.sh blue --kubelet-extra-args --node-labels=pool=batch\n"
CONFIG = "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec: {{kubelet: {{config: {{maxPods: {}}}}}}}\n"
ENI = {"resources": {"requests": {"cpu": "100m", "memory": "64Mi", "example.com/eni": "1"}}}


@pytest.fixture
def found(leeward, tmp_path):
    """Return the findings, by code and severity; the message of each."""

    def run(nodes, *user_data, code=0, pods=None, **spec):
        pods = pods or [a_pod(f"web-{number}", number, **spec) for number in range(len(nodes))]
        data = [{"UserData": base64.b64encode(text.encode()).decode()} if text else {} for text in user_data]
        snapshot = an_upgrade_snapshot(tmp_path, nodes=nodes, pods=pods, launch_template_versions=templates(*data))
        result = leeward("upgrade", "plan", "web", "--snapshot", snapshot, "--now", NOON, "-o", "json")
        assert (result.code, result.err) == (code, "")
        return {(one["code"], one["severity"]): one["message"] for one in json.loads(result.out)["findings"]}

    return run


def nodes_with(labels, *others):
    return [a_node(number, labels=labels) for number in range(3)] + [a_node(number) for number in others]


@pytest.mark.parametrize(
    "versions",
    [("", ""), (CONFIG.format(20), CONFIG.format(25)), (SCRIPT, ""), ("#!/bin/bash\n", "#!/bin/sh\n")],
    ids=["none in either version", "changed", "none any more", "nothing recognised"],
)
def test_a_label_that_others_put_on_every_node_does_not_block_an_upgrade(found, versions):
    messages = found(nodes_with(FEATURE), *versions, nodeSelector=FEATURE)
    assert ("PodsFitNowhere", "blocker") not in messages
    text = "(and 2 more) a node with feature.node.kubernetes.io/fast=true: every node of the group has that"
    assert text in messages["LabelsMissing", "warning"]


@pytest.mark.parametrize(
    ("nodes", "versions", "label"),
    [
        (nodes_with({"pool": "batch"}), (SCRIPT, "#!/bin/bash\n"), {"pool": "batch"}),
        (nodes_with(FEATURE, 3), ("", ""), FEATURE),
        (
            [a_node(number, labels={"example.com/id": f"i-0{number}"}) for number in range(3)],
            ("", ""),
            {"example.com/id": "i-00"},
        ),
    ],
    ids=["the old user data names it", "a node lacks it", "the id of a node"],
)
def test_a_label_that_is_lost_or_not_of_every_node_blocks(found, nodes, versions, label):
    pods = [a_pod("web-0", 0, nodeSelector=label)]
    assert ("PodsFitNowhere", "blocker") in found(nodes, *versions, code=1, pods=pods)


def test_a_resource_that_every_node_reports_does_not_block_an_upgrade(found):
    nodes = nodes_with({})
    for node in nodes:
        node["status"]["allocatable"] = {**node["status"]["allocatable"], "example.com/eni": "2"}
    containers = [{"name": "main", **ENI}]
    messages = found(nodes, "", "", containers=containers)
    assert "a node with example.com/eni: every node" in messages["LabelsMissing", "warning"]
    assert ("PodsFitNowhere", "blocker") not in messages
    three = [{"name": f"c{number}", **ENI} for number in range(3)]
    assert ("PodsFitNowhere", "blocker") in found(nodes, "", "", code=1, containers=three)


def test_a_pod_that_fits_for_no_label_is_a_blocker_beside_one_that_needs_a_label(found):
    nodes = nodes_with(FEATURE)
    pods = [a_pod("fast", 0, nodeSelector=FEATURE), a_pod("lost", 1, nodeSelector={"gone": "true"})]
    messages = found(nodes, "", "", code=1, pods=pods)
    assert "gone" not in messages["LabelsMissing", "warning"]
    assert "no node could host it" in messages["PodsFitNowhere", "blocker"]
    assert "(and" not in messages["PodsFitNowhere", "blocker"]
