"""Folders that a stranger made: whatever type a field has, every command ends in one sentence."""

import json
import shutil
from pathlib import Path

import pytest

from fuzz.offline_commands import COMMANDS, offline

EVERYTHING = Path("fuzz/corpus/folders/everything")
KEYS = {
    "instances": ("Reservations", 0, "Instances", 0),
    "launch-template-versions": ("LaunchTemplateVersions", 0, "LaunchTemplateData"),
    "launch-configurations": ("LaunchConfigurations", 0),
    "nodegroups": (0, "nodegroup"),
    "auto-scaling-groups": ("AutoScalingGroups", 0),
    "instance-types": ("InstanceTypes", 0),
}


@pytest.fixture
def folder(tmp_path):
    """A copy of the folder with the fields of the first element of a file replaced."""

    def of(name, **fields):
        shutil.copytree(EVERYTHING, tmp_path, dirs_exist_ok=True)
        path = tmp_path / f"{name}.json"
        document = json.loads(path.read_text())
        element = document
        for step in KEYS[name]:
            element = element[step]
        element.update(fields)
        path.write_text(json.dumps(document))
        return tmp_path

    return of


def test_all_commands_answer_about_the_whole_folder(leeward):
    assert {command: leeward(*offline(command, EVERYTHING)).code for command in COMMANDS}.items() <= {
        (command, code) for command in COMMANDS for code in (0, 1)
    }


@pytest.mark.parametrize(
    ("verb", "name", "field", "value", "place"),
    [
        ("drift", "instances", "NetworkInterfaces", 5, "NetworkInterfaces"),
        ("inspect budget", "instances", "NetworkInterfaces", [5], "NetworkInterfaces[0]"),
        (
            "inspect budget",
            "instances",
            "NetworkInterfaces",
            [{"PrivateIpAddresses": [{}]}],
            "NetworkInterfaces[0].PrivateIpAddresses[0].PrivateIpAddress",
        ),
        (
            "drift",
            "instances",
            "NetworkInterfaces",
            [{"Ipv6Addresses": [{}]}],
            "NetworkInterfaces[0].Ipv6Addresses[0].Ipv6Address",
        ),
        ("drift", "instances", "ImageId", ["x"], "ImageId"),
        ("drift", "instances", "ImageId", {}, "ImageId"),
        ("drift", "instances", "SecurityGroups", [[]], "SecurityGroups[0]"),
        ("drift", "instances", "IamInstanceProfile", {"Arn": 5}, "IamInstanceProfile.Arn"),
        ("drift", "instances", "Monitoring", {"State": []}, "Monitoring.State"),
        ("drift", "launch-template-versions", "TagSpecifications", [{"Tags": 5}], "TagSpecifications[0].Tags"),
        ("drift", "launch-template-versions", "MetadataOptions", [1], "MetadataOptions"),
        ("drift", "launch-template-versions", "SecurityGroupIds", [[]], "SecurityGroupIds[0]"),
        ("drift", "launch-configurations", "IamInstanceProfile", {"Name": 5}, "IamInstanceProfile"),
        (
            "upgrade plan eks-managed",
            "nodegroups",
            "updateConfig",
            {"maxUnavailable": "x"},
            "updateConfig.maxUnavailable",
        ),
        ("upgrade plan eks-managed", "nodegroups", "health", {"issues": [5]}, "health.issues[0]"),
        ("drift", "auto-scaling-groups", "InstanceLifecyclePolicy", 5, "InstanceLifecyclePolicy"),
        ("drift", "instance-types", "BareMetal", "no", "BareMetal"),
    ],
)
def test_a_field_of_another_type_is_named_with_its_place(leeward, folder, verb, name, field, value, place):
    where = folder(name, **{field: value})
    reported = leeward.refuses(*offline(verb.split(), where))
    assert reported.startswith(f"{where}/{name}.json: ")
    assert f"{place}: found " in reported
    assert " expected " in reported
