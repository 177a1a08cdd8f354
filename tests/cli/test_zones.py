"""`leeward inspect zones` as its users run it."""

import json
from pathlib import Path

import jsonschema
import pytest

from tests.cli.snapshots.disruption import a_type
from tests.cli.snapshots.placement import a_node, a_placement_snapshot, a_pod, a_subnet, items

SCHEMA = json.loads(Path("docs/schema/zones.json").read_text())


@pytest.fixture
def zones(leeward, tmp_path):
    def run(*arguments, **files):
        snapshot = a_placement_snapshot(tmp_path, **files)
        result = leeward("inspect", "zones", "--snapshot", snapshot, *arguments, "-o", "json")
        assert (result.code, result.err) == (0, "")
        jsonschema.validate(result.json, SCHEMA)
        return result.json["zones"]

    return run


def test_the_schema_is_one():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_zones_are_reported_in_their_order_with_cores_addresses_and_verdict(zones):
    found = zones()
    assert [(zone["zone"], zone["cores"], zone["freeIps"], zone["verdict"]) for zone in found] == [
        ("us-east-1c", 1, 5, "no-ips"),
        ("us-east-1a", 2, 100, "next"),
        ("us-east-1b", 4, 200, "usable"),
    ]
    assert found[0]["why"] == "subnet-c has 5 free, a node (m5.large) with 2 pods takes 20 IPs; 1 node with 1 core"


def test_cores_may_be_fractions(zones):
    assert zones(nodes=items(a_node("n1", "us-east-1a", cpu="1930m")))[-1]["cores"] == 1.93


def test_a_node_that_shows_no_capacity_counts_with_its_types_cores(zones):
    silent = a_node("n1", "us-east-1a", kind="m5.xlarge")
    silent["status"] = {}
    assert zones(nodes=items(silent))[-1]["cores"] == 4


def test_the_next_node_can_be_reported(zones):
    found = {zone["zone"]: zone for zone in zones("--instance-type", "t3.nano", "--pods", "1")}
    assert found["us-east-1c"]["verdict"] == "next"
    assert "a node (t3.nano) with 1 pod takes 4 IPs" in found["us-east-1c"]["why"]


def test_equal_zones_are_drawn_by_the_seed(zones):
    firsts = {zones("--seed", seed, nodes=items())[0]["zone"] for seed in range(12)}
    assert len(firsts) > 1
    assert zones("--seed", 4, nodes=items()) == zones("--seed", 4, nodes=items())


def test_a_policy_whose_groups_use_few_subnets_leaves_the_others_out(zones):
    group = {"AutoScalingGroupName": "web", "VPCZoneIdentifier": "subnet-a"}
    found = {zone["zone"]: zone["verdict"] for zone in zones(auto_scaling_groups={"AutoScalingGroups": [group]})}
    assert found == {"us-east-1a": "next", "us-east-1b": "no-subnet", "us-east-1c": "no-subnet"}


def test_pods_bound_by_volumes_and_large_nodes_are_reported(zones, leeward, tmp_path):
    term = {"key": "topology.ebs.csi.aws.com/zone", "operator": "In", "values": ["us-east-1b"]}
    required = {"nodeSelectorTerms": [{"matchExpressions": [term]}]}
    volume = {"kind": "PersistentVolume", "metadata": {"name": "pv-1"}}
    claim = {"kind": "PersistentVolumeClaim", "metadata": {"namespace": "shop", "name": "data-db-0"}}
    files = {
        "nodes": items(a_node("big", "us-east-1b", cpu="16"), a_node("n1", "us-east-1a"), a_node("n2", "us-east-1c")),
        "pods": items(a_pod("db-0", "big", volumes=[{"persistentVolumeClaim": {"claimName": "data-db-0"}}])),
        "pvs": items(volume | {"spec": {"nodeAffinity": {"required": required}}}),
        "pvcs": items(claim | {"spec": {"volumeName": "pv-1"}}),
    }
    why = {zone["zone"]: zone["why"] for zone in zones(**files)}["us-east-1b"]
    assert "large: big with 16 cores (a typical node has 2 cores), 1 pod is bound here by volumes" in why
    wide = leeward("inspect", "zones", "--snapshot", tmp_path, "-o", "wide").out
    assert "BOUND-PODS" in wide
    assert "shop/db-0" in wide
    reported = leeward("inspect", "zones", "--snapshot", tmp_path).out
    assert "us-east-1b holds 16 cores of 20 cores (80 %; an even share is 33 %), us-east-1a 2 cores." in reported
    assert "us-east-1b: volumes bind 1 pod, and what is packed beside them, to it." in reported


def test_with_every_zone_full_the_report_is_still_done(zones):
    found = zones(subnets={"Subnets": [a_subnet("a", 3), a_subnet("b", 2)]})
    assert {zone["verdict"] for zone in found} == {"no-ips", "no-subnet"}


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "subnets.json: Subnets: found no such file, expected the output of: aws ec2 describe-subnets"),
        ({"subnets": {"Subnets": []}}, "subnets.json: Subnets: found no subnet"),
        ({"subnets": {"Subnets": [{"SubnetId": "s"}]}}, "subnets.json: Subnets[0].AvailabilityZone: found nothing"),
        (
            {"nodes": items(a_node("n1", "us-east-1a", cpu="many")), "subnets": {"Subnets": [a_subnet("a", 3)]}},
            'nodes.json: items[0].status.capacity.cpu: found "many", expected a quantity',
        ),
    ],
    ids=["missing", "empty", "broken", "capacity"],
)
def test_bad_files_are_named(leeward, tmp_path, files, message):
    snapshot = a_placement_snapshot(tmp_path, **files)
    if not files:
        (snapshot / "subnets.json").unlink()
    assert message in leeward.refuses("inspect", "zones", "--snapshot", snapshot)


def test_without_a_snapshot_or_a_cluster_nothing_is_guessed(leeward):
    found = "found neither --cluster nor --snapshot, expected --cluster NAME (live) or --snapshot DIR"
    assert leeward.refuses("inspect", "zones") == f"inspect zones: {found}"
    assert leeward.refuses("inspect", "place", "web", "--count", "1", "--pods", "1") == f"inspect place: {found}"


def test_a_type_that_neither_the_folder_nor_a_node_has_is_bad_input(leeward, tmp_path):
    """The folder has other types, which do not stand for it."""
    snapshot = a_placement_snapshot(tmp_path, instance_types={"InstanceTypes": [a_type("m5.large", 2, 8192)]})
    said = leeward.refuses("inspect", "zones", "--instance-type", "m5.lrage", "--snapshot", snapshot)
    assert said == (
        "inspect zones: --instance-type: found 'm5.lrage', expected an EC2 instance type; did you mean m5.large?"
    )
