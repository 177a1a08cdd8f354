"""`leeward inspect place` as its users run it."""

import json
from pathlib import Path

import jsonschema
import pytest

from tests.cli.snapshots.placement import (
    POLICY,
    a_group,
    a_placement_snapshot,
    a_subnet,
    a_template,
    aws_node,
    items,
)

SCHEMA = json.loads(Path("docs/schema/place.json").read_text())


@pytest.fixture
def place(leeward, tmp_path):
    def run(*arguments, count=1, pods=8, group="web", code=0, **files):
        snapshot = a_placement_snapshot(tmp_path, **files)
        general = ("--snapshot", snapshot, "-o", "json")
        result = leeward("inspect", "place", group, "--count", count, "--pods", pods, *arguments, *general)
        assert (result.code, result.err) == (code, "")
        jsonschema.validate(result.json, SCHEMA)
        return result.json

    return run


def counts(document):
    return {entry["subnet"]: entry["count"] for entry in document["subnets"]}


def groups(*found):
    return {"AutoScalingGroups": list(found)}


def test_the_schema_is_one():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_a_node_goes_to_the_zone_with_the_fewest_cores_that_can_hold_it(place):
    assert place() == {
        "subnets": [
            {
                "subnet": "subnet-a",
                "zone": "us-east-1a",
                "count": 1,
                "freeIps": 100,
                "why": "us-east-1a: fewest cores allocated (2 cores; us-east-1b 4 cores); us-east-1c dropped; "
                "subnet-a has 100 free, a node (m5.large) with 8 pods takes 20 IPs; "
                "subnet-a is the only subnet there with room",
            }
        ],
        "refused": [{"zone": "us-east-1c", "why": "subnet-c has 5 free, a node (m5.large) with 8 pods takes 20 IPs"}],
    }


def test_several_nodes_even_out_the_cores_and_use_up_the_addresses(place):
    assert counts(place(count=5)) == {"subnet-a": 3, "subnet-b": 2}
    assert counts(place(count=40)) == {"subnet-a": 5, "subnet-b": 10}


def test_only_the_zones_that_are_asked_for_are_used(place):
    assert counts(place("--zones", "us-east-1b", count=2)) == {"subnet-b": 2}
    found = place("--zones", "us-east-1b,us-east-1z")
    assert found["refused"] == [{"zone": "us-east-1z", "why": "no subnet that a node could use is there"}]


def test_with_no_place_for_any_node_the_answer_is_empty_and_the_exit_code_1(place):
    full = {"Subnets": [a_subnet("a", 19), a_subnet("b", 7), a_subnet("c", 0)]}
    found = place(code=1, subnets=full)
    assert found["subnets"] == []
    assert [entry["zone"] for entry in found["refused"]] == ["us-east-1c", "us-east-1a", "us-east-1b"]


def test_people_are_reported_the_refusal_in_a_sentence(leeward, tmp_path):
    snapshot = a_placement_snapshot(tmp_path, subnets={"Subnets": [a_subnet("a", 1)]})
    result = leeward("inspect", "place", "web", "--count", "2", "--pods", "8", "--snapshot", snapshot)
    assert result.code == 1
    assert "web: 0 of 2 nodes placed" in result.out
    assert "there is no subnet with enough available IP addresses" in result.out


def test_two_subnets_in_a_zone_are_used_by_their_free_addresses(place):
    subnets = {"Subnets": [a_subnet("a", 45), a_subnet("a", 50, SubnetId="subnet-a2")]}
    group = a_group(subnets="subnet-a, subnet-a2")
    found = place(count=3, subnets=subnets, auto_scaling_groups=groups(group))
    assert counts(found) == {"subnet-a2": 2, "subnet-a": 1}
    assert [entry["freeIps"] for entry in found["subnets"]] == [50, 45]


def test_with_accounting_off_the_seed_draws_among_subnets_with_a_free_address(place):
    subnets = {"Subnets": [a_subnet("a", 1), a_subnet("a", 50, SubnetId="subnet-a2")]}
    files = {
        "subnets": subnets,
        "auto_scaling_groups": groups(a_group(subnets="subnet-a,subnet-a2")),
        "daemonsets": items(aws_node(AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG="true")),
    }
    found = [place("--seed", seed, **files)["subnets"][0] for seed in range(12)]
    assert {entry["subnet"] for entry in found} == {"subnet-a", "subnet-a2"}
    assert "AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG is on" in found[0]["why"]


def test_a_subnet_that_the_cni_discovers_switches_accounting_off(place):
    pods = a_subnet("a", 4000, SubnetId="subnet-pods", Tags=[{"Key": "kubernetes.io/role/cni", "Value": "1"}])
    subnets = {"Subnets": [a_subnet("a", 2), a_subnet("b", 2), pods]}
    found = place(subnets=subnets)
    assert counts(found) == {"subnet-a": 1}
    assert "ENABLE_SUBNET_DISCOVERY is on and subnet-pods in us-east-1a" in found["subnets"][0]["why"]


def test_the_groups_policy_overrides_the_daemonset(place):
    policy = POLICY + "  placement: {cni: {WARM_IP_TARGET: 1}}\n"
    found = place(pods=2, policy=policy)
    assert counts(found) == {"subnet-c": 1}  # one interface's own address, two pods', one to spare: four of five
    other = policy.replace('["web"]', '["api"]')
    assert counts(place(pods=2, policy=other)) == {"subnet-a": 1}


@pytest.mark.parametrize(
    ("group", "templates", "takes"),
    [
        (a_group(), [a_template(1, "m5.large"), a_template(2, "t3.small")], "(t3.small) with 3 pods takes 8 IPs"),
        (
            a_group(LaunchTemplate={"LaunchTemplateId": "lt-1"}),
            [a_template(1, "t3.small", DefaultVersion=True), a_template(2, "m5.large")],
            "(t3.small) with 3 pods takes 8 IPs",
        ),
        (
            a_group(LaunchTemplate={"LaunchTemplateId": "lt-1", "Version": "1"}),
            [a_template(1, "t3.small"), a_template(2, "m5.large")],
            "(t3.small) with 3 pods takes 8 IPs",
        ),
        (
            a_group(
                MixedInstancesPolicy={
                    "LaunchTemplate": {
                        "LaunchTemplateSpecification": {"LaunchTemplateId": "lt-1"},
                        "Overrides": [{"InstanceType": "t3.small"}, {"InstanceType": "m5.xlarge"}],
                    }
                }
            ),
            [],
            "(2 types) with 3 pods takes 30 IPs",
        ),
        (
            a_group(
                Instances=[{"InstanceId": "i-1", "InstanceType": "t3.small"}],
                MixedInstancesPolicy={"LaunchTemplate": {"Overrides": [{"InstanceRequirements": {}}]}},
            ),
            [],
            "(t3.small) with 3 pods takes 8 IPs",
        ),
    ],
    ids=["latest", "default", "version", "overrides", "requirements"],
)
def test_the_node_is_what_the_group_may_launch(place, group, templates, takes):
    template = {"LaunchTemplateVersions": templates}
    found = place(pods=3, auto_scaling_groups=groups(group), launch_template_versions=template)
    assert takes in found["subnets"][0]["why"]


def test_a_launch_configuration_names_its_type(place):
    group = a_group(LaunchConfigurationName="old")
    del group["LaunchTemplate"]
    known = {"LaunchConfigurations": [{"LaunchConfigurationName": "old", "InstanceType": "t3.small"}]}
    found = place(pods=3, auto_scaling_groups=groups(group), launch_configurations=known)
    assert "(t3.small)" in found["subnets"][0]["why"]


def test_a_group_of_an_unknown_type_is_placed_without_accounting(place):
    found = place(launch_template_versions={"LaunchTemplateVersions": []})
    assert counts(found) == {"subnet-c": 1}
    assert "the network limits of the node's instance type are not known" in found["subnets"][0]["why"]


def test_a_group_without_subnets_takes_those_of_its_zones(place):
    group = a_group(subnets="", AvailabilityZones=["us-east-1b"])
    assert counts(place(auto_scaling_groups=groups(group))) == {"subnet-b": 1}


def test_the_answer_does_not_depend_on_the_order_of_files(place):
    subnets = [a_subnet("a", 60), a_subnet("b", 60), a_subnet("c", 60)]
    arguments = {"count": 6, "nodes": items()}
    one = place("--seed", 9, subnets={"Subnets": subnets}, **arguments)
    assert place("--seed", 9, subnets={"Subnets": subnets[::-1]}, **arguments) == one


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["nope", "--count", "1", "--pods", "1"],
            "AutoScalingGroups: found no group 'nope', expected one of its groups",
        ),
        (["web", "--count", "0", "--pods", "1"], "found '0', expected a whole number, 1 to 1000"),
        (["web", "--pods", "1"], "place: found nothing, expected --count"),
        (["web", "--count", "1", "--pods", "1", "--zones", "a,,b"], "expected zones such as us-east-1a,us-east-1b"),
    ],
)
def test_bad_input_is_reported_in_one_sentence(leeward, tmp_path, arguments, message):
    assert message in leeward.refuses("inspect", "place", *arguments, "--snapshot", a_placement_snapshot(tmp_path))


def test_a_group_whose_subnets_are_not_in_the_file_is_refused(leeward, tmp_path):
    snapshot = a_placement_snapshot(tmp_path, auto_scaling_groups=groups(a_group(subnets="subnet-x")))
    said = leeward.refuses("inspect", "place", "web", "--count", "1", "--pods", "1", "--snapshot", snapshot)
    assert "subnets.json: Subnets: found none of group web's, expected subnet-x" in said
