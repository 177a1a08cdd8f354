"""Groups that a plan might have used and whose nodes refuse a pod: a short line each, with the fix."""

import base64

import pytest

from tests.cli.command import NOON
from tests.cli.snapshots.disruption import POLICY, a_disruption_snapshot, a_group, a_node, a_pod, a_template
from tests.cli.snapshots.placement import items

SCRIPT = "#!/bin/bash\n/etc/eks/bootstrap.sh blue --kubelet-extra-args '{}'\n"
LABEL, SPOT = "k8s.io/cluster-autoscaler/node-template/label/life", {"life": "spot"}
LABELLED = "node(s) didn't match Pod's node affinity/selector"
ANY = "disruption.architecture any, where the images of its pods are built for both"
PLATFORM = "node(s) were of another operating system or architecture"


def batch(flags="", tags=()):
    """The cheaper group, with its user data and tags."""
    template, group = a_template("lt-batch", "m5.large"), a_group("batch", "lt-batch")
    if flags:
        template["LaunchTemplateData"]["UserData"] = base64.b64encode(SCRIPT.format(flags).encode()).decode()
    group["Tags"] = [{"Key": key, "Value": value} for key, value in tags]
    return {
        "auto_scaling_groups": {"AutoScalingGroups": [a_group("web", "lt-web", "n1"), group]},
        "launch_template_versions": {"LaunchTemplateVersions": [a_template("lt-web", "m5.xlarge"), template]},
    }


@pytest.fixture
def ask(leeward, tmp_path):
    def run(*arguments, labels=None, spec=None, **files):
        node, pod = a_node("n1"), a_pod("p1", "n1", cpu="1500m")
        node["metadata"]["labels"] = {**node["metadata"]["labels"], **(labels or {})}
        pod["spec"] |= spec or {}
        snapshot = a_disruption_snapshot(tmp_path, nodes=items(node), pods=items(pod), **files)
        result = leeward("plan", "--snapshot", snapshot, "--now", NOON, *arguments)
        assert (result.code, result.err) == (0, "")
        return result

    return run


def test_a_label_that_only_a_script_sets_names_the_tag_that_lets_the_group_be_used(ask):
    asked = {"labels": SPOT, "spec": {"nodeSelector": SPOT}}
    (found,) = ask("-o", "json", **asked, **batch("--node-labels=life=spot")).json["refusedTargets"]
    assert (found["group"], found["nodes"], found["pod"], found["reason"]) == ("batch", ["n1"], "shop/p1", LABELLED)
    assert found["fix"] == f"tag batch with {LABEL}=spot: a script alone sets it, which proves nothing"
    tagged = ask("-o", "json", **asked, **batch("--node-labels=life=spot", [(LABEL, "spot")])).json
    assert tagged["refusedTargets"] == []
    assert [command["replacements"][0]["group"] for command in tagged["commands"]] == ["batch"]


def test_a_tag_that_the_user_data_contradicts_lets_no_pod_in_and_is_named(ask):
    given = batch("--node-labels=life=normal", [(LABEL, "spot")])
    (found,) = ask("-o", "json", labels=SPOT, spec={"nodeSelector": SPOT}, **given).json["refusedTargets"]
    assert (found["reason"], found["fix"]) == (LABELLED, f"{LABEL} of batch: its user data names another value")


def test_a_label_that_nothing_sets_has_no_fix(ask):
    (found,) = ask("-o", "json", labels=SPOT, spec={"nodeSelector": SPOT}, **batch()).json["refusedTargets"]
    assert (found["reason"], found["fix"]) == (LABELLED, None)


def test_a_taint_is_named(ask):
    (found,) = ask("-o", "json", **batch("--register-with-taints=team=red:NoSchedule")).json["refusedTargets"]
    assert (found["reason"], found["fix"]) == ("node(s) had untolerated taint {team: red}", None)


@pytest.mark.parametrize(
    ("platform", "fix"),
    [
        ({"kubernetes.io/os": "windows"}, None),
        (
            {"kubernetes.io/arch": "arm64"},
            "disruption.architecture any, where the images of its pods are built for both",
        ),
    ],
)
def test_another_platform_is_named_and_another_architecture_has_a_fix(ask, platform, fix):
    (found,) = ask("-o", "json", labels=platform, **batch()).json["refusedTargets"]
    assert (found["reason"], found["fix"]) == (PLATFORM, fix)


def test_without_verbose_each_refusal_is_one_short_line(ask):
    lines = ask(labels={"kubernetes.io/os": "windows"}, **batch()).out.splitlines()
    refused = [line for line in lines if line.startswith("refused")]
    assert refused == [f"refused: batch in place of n1, pod shop/p1: {PLATFORM}"]


def test_a_drifted_node_whose_own_group_refuses_its_pod_says_so(ask):
    files = batch()
    files["launch_template_versions"]["LaunchTemplateVersions"][0]["LaunchTemplateData"]["ImageId"] = "ami-2"
    policy = POLICY.replace("consolidateAfter: 0s", "consolidationPolicy: WhenEmpty")
    found = ask("-o", "json", labels=SPOT, spec={"nodeSelector": SPOT}, policy=policy, **files).json
    assert [(one["group"], one["reason"]) for one in found["refusedTargets"]] == [("web", LABELLED)]
