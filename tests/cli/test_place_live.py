"""`leeward inspect place|zones` against a cluster, with fakes for AWS, Kubernetes and what fn sync wrote down."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import jsonschema
import pytest

from leeward.adapters import wiring
from leeward.errors import AccessDeniedError, ObjectGoneError
from leeward.model.facts import FactKind, Sheet, cni_content, types_content
from leeward.model.pod import Pod
from tests.fakes.builders import a_group, a_node, a_subnet, an_instance
from tests.fakes.network import M5_LARGE
from tests.fakes.system import FakeSystem

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
LIVE = ("--cluster", "blue", "--now", "2026-05-01T12:00:00Z")
PLACE = ("inspect", "place", "web-a", "--count", "1", "--pods", "8")


def valid(result, name):
    jsonschema.validate(result.json, json.loads(Path(f"docs/schema/{name}.json").read_text()))
    return result.json


@pytest.fixture
def system(monkeypatch):
    group = replace(a_group("web-a", "i-0a"), subnets=("subnet-a", "subnet-b"), zones=("us-east-1a", "us-east-1b"))
    system = FakeSystem(instances=[an_instance("i-0a")], groups=[group], nodes=[replace(a_node("i-0a"), cpu=2000)])
    member = replace(group.instances[0], type="m5.large")
    system.groups.by_name["web-a"] = replace(group, instances=(member,))
    system.network.by_id["subnet-b"] = a_subnet("subnet-b", zone="us-east-1b", free=40)
    monkeypatch.setattr(wiring, "command_line_ports", lambda cluster, region=None, account=None: system.ports)
    keep(system, FactKind.INSTANCE_TYPES, types_content([M5_LARGE]), minutes=3)
    keep(system, FactKind.CNI, cni_content({"WARM_IP_TARGET": "2"}), minutes=3)
    return system


def keep(system, kind, content, *, minutes):
    system.catalog.keep("blue", kind, Sheet(synced=NOW - timedelta(minutes=minutes), content=content))


def put_pod(system, name, **more):
    pod = Pod(namespace="shop", name=name, uid=name, node="node-i-0a", phase="Running", **more)
    system.kubernetes.put_pod(pod)


def test_a_place_is_chosen_from_what_is_now_and_the_age_of_the_rest_is_reported(leeward, system):
    found = valid(leeward(*PLACE, *LIVE, "-o", "json"), "place")
    (subnet,) = found["subnets"]
    assert (subnet["subnet"], subnet["freeIps"]) == ("subnet-b", 40)
    assert "fewest cores allocated (0 cores; us-east-1a 2 cores)" in subnet["why"]
    assert "a node (m5.large) with 8 pods takes 12 IPs" in subnet["why"]
    assert found["facts"] == {"instance-types": "2026-05-01T11:57:00Z", "cni": "2026-05-01T11:57:00Z"}
    reported = leeward(*PLACE, *LIVE).out
    assert "as fn sync recorded them: instance-types 3 min ago, cni 3 min ago; all else as it is now" in reported


def test_a_zone_without_addresses_is_refused_with_its_numbers(leeward, system):
    system.network.by_id["subnet-b"] = a_subnet("subnet-b", zone="us-east-1b", free=11)
    found = valid(leeward(*PLACE, *LIVE, "-o", "json"), "place")
    assert [one["subnet"] for one in found["subnets"]] == ["subnet-a"]
    assert found["refused"] == [
        {"zone": "us-east-1b", "why": "subnet-b has 11 free, a node (m5.large) with 8 pods takes 12 IPs"}
    ]


def test_no_place_at_all_is_exit_1_and_says_why(leeward, system):
    for name, zone in (("subnet-a", "us-east-1a"), ("subnet-b", "us-east-1b")):
        system.network.by_id[name] = a_subnet(name, zone=zone, free=2)
    result = leeward(*PLACE, *LIVE)
    assert result.code == 1
    assert "there is no subnet with enough available IP addresses" in result.out


def test_old_facts_say_so(leeward, system):
    keep(system, FactKind.CNI, cni_content({}), minutes=2)
    keep(system, FactKind.INSTANCE_TYPES, types_content([M5_LARGE]), minutes=2)
    late = ("--cluster", "blue", "--now", "2026-05-01T12:30:00Z")
    assert "cni 32 min ago (old: is fn sync running?)" in leeward(*PLACE, *late).out


def test_before_fn_sync_has_run_or_without_its_table_aws_and_the_cluster_are_asked(leeward, system):
    system.catalog.fail("read", ObjectGoneError("dynamodb:BatchGetItem on leeward"))
    found = valid(leeward(*PLACE, *LIVE, "-o", "json"), "place")
    assert found["facts"] == {}
    assert "kube-system/aws-node is not there" in found["subnets"][0]["why"]
    assert system.launches.asked["instance_types"] == 1


def test_an_unknown_group_is_bad_input(leeward, system):
    assert "found no group 'x'" in leeward.refuses("inspect", "place", "x", "--count", "1", "--pods", "1", *LIVE)


def test_zones_are_judged_for_the_busiest_node_and_bound_pods_are_counted(leeward, system):
    for number in range(3):
        put_pod(system, f"web-{number}")
    put_pod(system, "agent", host_network=True)
    put_pod(system, "db", claims=("data",))
    terms = [{"matchExpressions": [{"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["us-east-1a"]}]}]
    claim = {"namespace": "shop", "name": "data"}
    spec = {"claimRef": claim, "nodeAffinity": {"required": {"nodeSelectorTerms": terms}}}
    system.kubernetes.volume_list = [{"metadata": {"name": "pv", "labels": {}}, "spec": spec}]
    found = valid(leeward("inspect", "zones", *LIVE, "-o", "json"), "zones")
    zones = {zone["zone"]: zone for zone in found["zones"]}
    assert zones["us-east-1b"]["verdict"] == "next"
    assert "with 4 pods takes 7 IPs" in zones["us-east-1b"]["why"]
    assert "1 pod is bound here by volumes" in zones["us-east-1a"]["why"]
    assert zones["us-east-1a"]["cores"] == 2


def test_a_permission_that_is_missing_is_a_message_and_exit_1(leeward, system):
    system.network.fail("subnets", AccessDeniedError("ec2:DescribeSubnets on subnet-a"))
    result = leeward(*PLACE, *LIVE)
    assert (result.code, result.out) == (1, "")
    assert "ec2:DescribeSubnets" in result.err
