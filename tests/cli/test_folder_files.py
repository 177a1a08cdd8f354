"""Warnings about files that a folder lacks: the file, the effect on the answer, and the command that makes it."""

import json
from pathlib import Path

import jsonschema
import pytest
import yaml

from leeward.cli.folder_files import COMMANDS, EFFECTS, MISSING, POLICY
from tests.cli.command import NOON
from tests.cli.snapshots import placement, upgrade
from tests.cli.snapshots.disruption import a_disruption_snapshot

PLAN, DRIFT, TOP = ("plan",), ("drift",), ("top",)
DRAIN, BLOCKERS = ("drain", "n1"), ("blockers",)
EVENT = ("inspect", "explain-event", "tests/events/spot_interruption.json")
UPGRADE = ("upgrade", "plan", "web")
FOLDERS = {"zones": placement.a_placement_snapshot, "place": placement.a_placement_snapshot}
WARNED = (
    (PLAN, "prices", "no price is known: no cost is shown", "leeward snapshot writes it"),
    (PLAN, "instances", "types, prices, images and launch times", "aws ec2 describe-instances > "),
    (PLAN, "launch-template-versions", "new nodes have no type", "aws ec2 describe-launch-template-versions > "),
    (PLAN, "instance-types", "memory and architecture", "aws ec2 describe-instance-types > "),
    (PLAN, "subnets", "zones and free addresses", "aws ec2 describe-subnets > "),
    (PLAN, POLICY, "no group is selected, so nothing is a candidate", "leeward init --snapshot "),
    (
        ("inspect", "budget"),
        POLICY,
        "no group is selected",
        "leeward init --snapshot ",
    ),
    (DRIFT, "instances", "images", "aws ec2 describe-instances > "),
    (DRIFT, "launch-template-versions", "no node drifts from them", "aws ec2 describe-launch-template-versions > "),
    (TOP, "instances", "capacity types and prices of the nodes", "aws ec2 describe-instances > "),
    (TOP, "prices", "no price is known", "leeward snapshot writes it"),
    (DRAIN, "instances", "whether an instance has ended is not known", "aws ec2 describe-instances > "),
    (DRAIN, "lifecycle-hooks", "none is taken as present", "aws autoscaling describe-lifecycle-hooks > "),
    (DRAIN, POLICY, "the defaults of a policy decide how pods are drained", "leeward init --snapshot "),
    (BLOCKERS, "lifecycle-hooks", "none is taken as present", "aws autoscaling describe-lifecycle-hooks > "),
    (UPGRADE, "prices", "no price is known", "leeward snapshot writes it"),
    (("upgrade", "status", "web"), "launch-template-versions", "$Latest and $Default", "> "),
    (
        ("inspect", "zones"),
        "daemonsets",
        "its defaults are taken",
        "kubectl get daemonsets -A -o json > ",
    ),
    (("inspect", "place", "web", "--count", "1", "--pods", "2"), "launch-template-versions", "no type", "> "),
    (
        ("inspect", "ips", "--instance-type", "m5.large", "--pods", "3"),
        "daemonsets",
        "the VPC CNI",
        "kubectl get daemonsets",
    ),
    (EVENT, POLICY, "no group is selected, so nothing follows from a message", "leeward init --snapshot "),
    (EVENT, "auto-scaling-groups", "a policy that asks for tags selects none", "aws autoscaling describe-auto-"),
    (EVENT, "lifecycle-hooks", "no such message has a deadline", "aws autoscaling describe-lifecycle-hooks > "),
    (("uninstall",), "lifecycle-hooks", "is not seen", "aws autoscaling describe-lifecycle-hooks > "),
)
CLAIM = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
OF_CLAIMS = ("pvs", "pvcs", "storageclasses", "csinodes")


@pytest.fixture
def ask(leeward, tmp_path):
    """The command on a folder without a file; its warnings, which JSON and standard error have alike."""

    def asked(*command, without=None, change=lambda folder: None):
        verb = command[command[0] == "inspect"]
        make = FOLDERS.get(verb, upgrade.an_upgrade_snapshot if "upgrade" in command else a_disruption_snapshot)
        folder = make(tmp_path)
        change(folder)
        if without is not None:
            (folder / ("policy.yaml" if without == POLICY else f"{without}.json")).unlink()
        result = leeward(*command, "--snapshot", folder, "--now", NOON, "-o", "json")
        assert result.code in {0, 1}
        schema = f"upgrade-{command[1]}" if verb == "upgrade" else verb
        jsonschema.validate(result.json, json.loads(Path(f"docs/schema/{schema}.json").read_text()))
        warnings = [one for one in result.json.get("warnings", []) if " is missing: " in one]
        assert result.err.splitlines() == [f"leeward: warning: {one}" for one in warnings]
        return [one.replace(str(folder), "DIR") for one in warnings]

    return asked


def edit(folder, name, change):
    document = json.loads((folder / f"{name}.json").read_text())
    change(document)
    (folder / f"{name}.json").write_text(json.dumps(document))


@pytest.mark.parametrize(
    ("command", "file", "effect", "made"), WARNED, ids=[f"{w[0][w[0][0] == 'inspect']}-{w[1]}" for w in WARNED]
)
def test_a_missing_file_is_named_with_its_effect_and_its_command(ask, command, file, effect, made):
    (warning,) = ask(*command, without=file)
    assert warning.startswith(f"{'policy.yaml' if file == POLICY else f'{file}.json'} is missing: ")
    assert effect in warning
    assert made in warning


@pytest.mark.parametrize(
    "command", sorted({one[0] for one in WARNED}), ids=lambda command: command[command[0] == "inspect"]
)
def test_a_folder_with_every_file_gives_no_warning(ask, command):
    assert ask(*command) == []


def test_volumes_are_asked_for_only_where_a_pod_has_one(ask):
    def claim(folder):
        edit(folder, "pods", lambda pods: pods["items"][0]["spec"].update(volumes=[CLAIM]))

    assert [one.partition(".")[0] for one in ask(*PLAN, change=claim)] == list(OF_CLAIMS)
    assert [one.partition(".")[0] for one in ask(*DRAIN, change=claim)] == ["volumeattachments"]


def test_an_annotation_that_repeats_a_pod_is_no_volume(ask):
    def annotated(folder):
        applied = {"kubectl.kubernetes.io/last-applied-configuration": json.dumps({"spec": {"volumes": [CLAIM]}})}
        edit(folder, "pods", lambda pods: pods["items"][0]["metadata"].update(annotations=applied))

    assert ask(*PLAN, change=annotated) == []


def test_node_groups_are_asked_for_only_where_a_group_is_managed(ask):
    def managed(folder):
        tag = {"Key": "eks:nodegroup-name", "Value": "ng"}
        edit(folder, "auto-scaling-groups", lambda all_: all_["AutoScalingGroups"][0].update(Tags=[tag]))

    (warning,) = ask(*DRIFT, change=managed)
    assert warning == (
        "nodegroups.json is missing: labels, taints and update settings of managed node groups are not known "
        "(aws eks describe-nodegroup > DIR/nodegroups.json)"
    )


def test_launch_configurations_are_asked_for_only_where_a_group_has_one(ask):
    def configured(folder):
        def change(groups):
            for group in groups["AutoScalingGroups"]:
                group.pop("LaunchTemplate", None)
                group.pop("MixedInstancesPolicy", None)
                group["LaunchConfigurationName"] = "lc-web"

        edit(folder, "auto-scaling-groups", change)

    assert any("launch-configurations.json is missing" in one for one in ask(*DRIFT, change=configured))


def test_namespaces_are_asked_for_only_where_a_pod_selects_them(ask):
    term = {"labelSelector": {}, "namespaceSelector": {}, "topologyKey": "kubernetes.io/hostname"}
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}

    def selects(folder):
        edit(folder, "pods", lambda pods: pods["items"][0]["spec"].update(affinity=affinity))

    assert any("namespaces.json is missing" in one for one in ask(*PLAN, change=selects))


def test_status_checks_matter_to_the_unhealthy_method_alone(ask):
    assert any("instance-status.json is missing" in one for one in ask("plan", "--method", "unhealthy"))


def test_every_node_of_a_group_has_the_warning_and_yaml_too(leeward, tmp_path):
    folder = a_disruption_snapshot(tmp_path)
    (folder / "lifecycle-hooks.json").unlink()
    asked = ("drain", "--group", "web", "--snapshot", folder, "--now", NOON, "-o", "yaml")
    assert [len(one["warnings"]) for one in yaml.safe_load(leeward(*asked).out)] == [1, 1, 1]


def test_a_node_object_has_no_key_of_ours(leeward, tmp_path):
    folder = upgrade.an_upgrade_snapshot(tmp_path)
    (folder / "instance-types.json").unlink()
    result = leeward("inspect", "template", "web", "--snapshot", folder, "--now", NOON, "-o", "json")
    assert "warnings" not in result.json
    assert "instance-types.json is missing: memory and architecture" in result.err


def test_a_plan_with_warnings_can_be_validated(leeward, tmp_path):
    folder, kept = a_disruption_snapshot(tmp_path), tmp_path / "plan.json"
    (folder / "subnets.json").unlink()
    kept.write_text(leeward("plan", "--snapshot", folder, "--now", NOON, "-o", "json").out)
    assert "warnings" in json.loads(kept.read_text())
    assert leeward("plan", "--validate", kept, "--snapshot", folder, "--now", NOON).code == 0


def test_every_file_that_a_command_uses_has_an_effect():
    used = {name for files in COMMANDS.values() for name in files.optional}
    assert used - {POLICY} == set(MISSING)
    assert {file for _, file in EFFECTS} <= used
