"""Groups whose launch template version, or the parameter of whose image, cannot be read: nothing is judged by it."""

import pytest

from tests.cli.command import NOON
from tests.cli.snapshots.disruption import POLICY, a_disruption_snapshot, a_group, a_template
from tests.cli.snapshots.upgrade import an_upgrade_snapshot, templates

BATCH = a_template("lt-batch", "m5.large")
GONE = {"launch_template_versions": {"LaunchTemplateVersions": [BATCH]}}
ALIAS = {
    "launch_template_versions": {
        "LaunchTemplateVersions": [BATCH, a_template("lt-web", "m5.xlarge", image="resolve:ssm:/golden/ami")]
    }
}
CONFIGURATION = {
    "auto_scaling_groups": {
        "AutoScalingGroups": [
            {**a_group("web", "lt-web", "n1", "n2", "n3"), "LaunchTemplate": None, "LaunchConfigurationName": "old"},
        ]
    }
}
UNREAD = {
    "a version that is gone": (GONE, "aws ec2 describe-launch-template-versions --launch-template-id lt-web shows"),
    "a parameter": (ALIAS, "aws ssm get-parameter --name /golden/ami shows whether it exists; reading it takes ssm:"),
    "a launch configuration": (CONFIGURATION, "--launch-configuration-names old shows it"),
}


@pytest.fixture
def ask(leeward, tmp_path):
    def run(verb, *arguments, **files):
        snapshot = a_disruption_snapshot(tmp_path, **files)
        result = leeward(verb, "--snapshot", snapshot, "--now", NOON, *arguments)
        assert result.code == 0
        return result

    return run


@pytest.mark.parametrize(("files", "fix"), UNREAD.values(), ids=UNREAD)
def test_drift_says_that_nodes_are_not_judged_and_what_mends_it(ask, files, fix):
    for node in ask("drift", "-o", "json", **files).json["nodes"]:
        assert (node["drifted"], node["remedy"]) == (False, "none")
        assert fix in node["notJudged"]
    text = ask("drift", **files).out
    assert text.startswith("0 of 3 nodes drifted, 3 not judged\n")
    assert text.count("web: not judged, ") == 1


@pytest.mark.parametrize(("files", "fix"), UNREAD.values(), ids=UNREAD)
def test_a_plan_does_not_say_that_they_are_what_their_group_would_launch_now(ask, files, fix):
    found = ask("plan", "-o", "json", **files).json
    why = {one["reason"] for node in found["nodes"] for one in node["verdicts"] if one["method"] == "drift"}
    assert len(why) == 1
    assert (sentence := why.pop()).startswith("not judged: ")
    assert fix in sentence


def test_a_node_that_differs_from_its_policy_is_not_replaced_by_what_cannot_be_read(ask):
    policy = POLICY + "  requirements: [{key: kubernetes.io/arch, operator: In, values: [arm64]}]\n"
    nodes = ask("drift", "-o", "json", policy=policy, **GONE).json["nodes"]
    assert {(one["drifted"], one["remedy"]) for one in nodes} == {(True, "none")}
    found = ask("plan", "--method", "drift", "-o", "json", policy=policy, **GONE).json
    assert found["commands"] == []


@pytest.mark.parametrize(("known", "launched"), [(True, {"batch"}), (False, set())])
def test_no_plan_launches_from_a_template_that_cannot_be_read(ask, known, launched):
    """Its labels and taints are EKS' defaults then: an estimate, which permits nothing."""
    policy = {
        "LaunchTemplate": {
            "LaunchTemplateSpecification": {"LaunchTemplateId": "lt-batch", "Version": "1"},
            "Overrides": [{"InstanceType": "m5.large"}],
        },
        "InstancesDistribution": {"OnDemandPercentageAboveBaseCapacity": 100},
    }
    mixed = {**a_group("batch", "lt-batch"), "LaunchTemplate": None, "MixedInstancesPolicy": policy}
    groups = {"AutoScalingGroups": [a_group("web", "lt-web", "n1", "n2", "n3"), mixed]}
    versions = {"LaunchTemplateVersions": [a_template("lt-web", "m5.xlarge"), *([BATCH] if known else [])]}
    found = ask("plan", "-o", "json", auto_scaling_groups=groups, launch_template_versions=versions).json
    assert {one["group"] for command in found["commands"] for one in command["replacements"]} - {"web"} == launched


@pytest.mark.parametrize(
    ("versions", "why"),
    [
        ({"LaunchTemplateVersions": []}, "launch template lt-1 version $Latest cannot be read, it may be deleted"),
        (templates({}, {"ImageId": "resolve:ssm:/golden/ami"}), "the image behind the SSM parameter /golden/ami"),
    ],
    ids=["a version", "a parameter"],
)
def test_an_upgrade_plan_says_what_is_not_judged(leeward, tmp_path, versions, why):
    snapshot = an_upgrade_snapshot(tmp_path, launch_template_versions=versions)
    result = leeward("upgrade", "plan", "web", "--snapshot", snapshot, "--now", NOON, "-o", "json")
    assert result.code == 0
    (found,) = [one for one in result.json["findings"] if one["code"] == "NotJudged"]
    assert why in found["message"]
    assert "aws " in found["fix"]
