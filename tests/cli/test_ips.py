"""`leeward inspect ips` as its users run it."""

import json
from pathlib import Path

import jsonschema
import pytest

from tests.cli.snapshots.placement import POLICY, a_placement_snapshot, aws_node, items

SCHEMA = json.loads(Path("docs/schema/ips.json").read_text())


@pytest.fixture
def ips(leeward):
    def run(*arguments, kind="t3.small", pods=5):
        result = leeward("inspect", "ips", "--instance-type", kind, "--pods", pods, *arguments, "-o", "json")
        assert (result.code, result.err) == (0, "")
        jsonschema.validate(result.json, SCHEMA)
        return result.json

    return run


def test_the_schema_is_one():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_without_a_cluster_the_cnis_defaults_count(ips):
    assert ips() == {
        "enis": 3,
        "maxEnis": 3,
        "ipsPerEni": [3, 3, 3],
        "secondaryIps": 9,
        "unusedIps": 4,
        "subnetIps": 12,
        "maxPods": 11,
        "unservablePods": 0,
        "accounting": "on",
        "why": "WARM_ENI_TARGET 1: 3 interfaces take an address each, and 9 are for pods",
    }


def test_each_flag_sets_its_variable(ips):
    found = ips("--warm-ip-target=2", "--minimum-ip-target=5", "--warm-eni-target=7", "--max-eni=2", pods=9)
    assert (found["ipsPerEni"], found["maxEnis"], found["unservablePods"]) == ([3, 3], 2, 3)
    assert found["why"].endswith("3 of the pods cannot be served")
    assert ips("--warm-eni-target", "0", pods=2)["enis"] == 1


@pytest.mark.parametrize("value", ["0", "-1"])
def test_a_max_eni_of_zero_or_less_is_unset(ips, value):
    assert ips(f"--max-eni={value}", pods=9)["maxEnis"] == 3


def test_pods_on_the_hosts_network_only_count_against_max_pods(ips):
    assert ips("--host-network-pods", "2", pods=9) == ips(pods=9)
    assert ips("--host-network-pods", "4", pods=9)["unservablePods"] == 2


def test_a_snapshots_daemonset_is_read_a_policy_overrides_it_and_a_flag_wins(ips, tmp_path):
    variables = items(aws_node(WARM_IP_TARGET="3", MAX_ENI="nonsense"))
    plain = a_placement_snapshot(tmp_path / "plain", daemonsets=variables)
    policy = POLICY + "  placement: {cni: {WARM_IP_TARGET: 1}}\n"
    overridden = a_placement_snapshot(tmp_path / "policy", daemonsets=variables, policy=policy)
    assert ips("--snapshot", plain)["secondaryIps"] == 8
    assert ips("--snapshot", overridden)["secondaryIps"] == 6
    assert ips("--snapshot", overridden, "--warm-ip-target=2")["secondaryIps"] == 7


def test_a_setting_that_switches_accounting_off_is_named(ips, tmp_path):
    snapshot = a_placement_snapshot(tmp_path, daemonsets=items(aws_node(ENABLE_PREFIX_DELEGATION="true")))
    found = ips("--snapshot", snapshot)
    assert found["accounting"] == "off"
    assert found["why"].startswith("ENABLE_PREFIX_DELEGATION is on")


def test_limits_of_the_snapshot_win_over_the_table(ips, tmp_path):
    network = {"MaximumNetworkInterfaces": 2, "Ipv4AddressesPerInterface": 6}
    types = {"InstanceTypes": [{"InstanceType": name, "NetworkInfo": network} for name in ("t3.small", "z99.new")]}
    snapshot = a_placement_snapshot(tmp_path, instance_types=types)
    assert ips("--snapshot", snapshot)["maxPods"] == ips("--snapshot", snapshot, kind="z99.new")["maxPods"] == 12
    assert ips("--snapshot", snapshot, kind="p3dn.24xlarge")["maxPods"] == 737


def test_the_table_is_for_people_by_default(leeward):
    result = leeward("inspect", "ips", "--instance-type", "t3.small", "--pods", "5")
    assert result.code == 0
    assert "t3.small: 12 addresses of its subnet" in result.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--pods", "5"], "ips: found nothing, expected --instance-type"),
        (["--instance-type", "t3.small", "--pods", "-5"], "'-5', expected a whole number, 0 to 999999"),
        (["--instance-type", "t3.small", "--pods", "5", "--max-eni=two"], "'two', expected a whole number"),
        (["--instance-type", "t3.tiny", "--pods", "5"], "found 't3.tiny', expected an EC2 instance type that is in"),
        (["--instance-type", "t3.small", "--pods", "5", "--snapshot", "none"], "none: found no such folder"),
    ],
)
def test_bad_input_is_reported_in_one_sentence(leeward, arguments, message):
    assert message in leeward.refuses("inspect", "ips", *arguments)


def test_a_broken_daemonset_is_named_with_its_path(leeward, tmp_path):
    broken = aws_node()
    broken["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": "WARM_IP_TARGET", "value": 3}]
    snapshot = a_placement_snapshot(tmp_path, daemonsets=items(broken))
    said = leeward.refuses("inspect", "ips", "--instance-type", "t3.small", "--pods", "5", "--snapshot", snapshot)
    assert "daemonsets.json: items[0].spec.template.spec.containers[0].env[0].value: found 3, expected text" in said
