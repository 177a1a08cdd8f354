"""What the VPC CNI takes. Sources: amazon-vpc-cni-k8s docs/eni-and-ip-target.md and pkg/ipamd/ipamd.go."""

import pytest

from leeward.errors import InvalidInputError
from leeward.model.instance_type import InstanceType
from leeward.placement.cni import CniSettings, node_ips, variables_of
from tests.unit.placement.builders import P3DN, T3_SMALL

# instance type, WARM_ENI_TARGET, WARM_IP_TARGET, MINIMUM_IP_TARGET, pods; ENIs, secondary IPs, unused IPs, IPs per ENI
PAGE = [
    (T3_SMALL, 1, None, None, 0, 1, 3, 3, [3]),
    (T3_SMALL, 1, None, None, 5, 3, 9, 4, [3, 3, 3]),
    (T3_SMALL, 1, None, None, 9, 3, 9, 0, [3, 3, 3]),
    (T3_SMALL, None, 1, 1, 0, 1, 1, 1, [1]),
    (T3_SMALL, None, 1, 1, 5, 2, 6, 1, [3, 3]),
    (T3_SMALL, None, 1, 1, 9, 3, 9, 0, [3, 3, 3]),
    (T3_SMALL, None, 2, 5, 0, 2, 5, 5, [2, 3]),
    (T3_SMALL, None, 2, 5, 5, 3, 7, 2, [3, 3, 1]),
    (T3_SMALL, None, 2, 5, 9, 3, 9, 0, [3, 3, 3]),
    (P3DN, 1, None, None, 0, 1, 49, 49, [49]),
    (P3DN, 1, None, None, 3, 2, 98, 95, [49, 49]),
    (P3DN, 1, None, None, 95, 3, 147, 52, [49, 49, 49]),
    (P3DN, None, 5, 10, 0, 1, 10, 10, [10]),
    (P3DN, None, 5, 10, 7, 1, 12, 5, [12]),
    (P3DN, None, 5, 10, 15, 1, 20, 5, [20]),
    (P3DN, None, 5, 10, 45, 2, 50, 5, [49, 1]),
]


def settings(**variables):
    return CniSettings.from_variables({name: str(value) for name, value in variables.items() if value is not None})


@pytest.mark.parametrize(
    ("kind", "warm_eni", "warm_ip", "minimum", "pods", "enis", "secondary", "unused", "per_eni"),
    PAGE,
    ids=[f"{row[0].name}-{row[1]}-{row[2]}-{row[3]}-{row[4]}pods" for row in PAGE],
)
def test_every_row_of_the_cnis_page_holds(kind, warm_eni, warm_ip, minimum, pods, enis, secondary, unused, per_eni):
    found = node_ips(settings(WARM_ENI_TARGET=warm_eni, WARM_IP_TARGET=warm_ip, MINIMUM_IP_TARGET=minimum), kind, pods)
    assert (found.enis, found.secondary_ips, found.unused_ips) == (enis, secondary, unused)
    assert sorted(found.ips_per_eni) == sorted(per_eni)  # the page lists one row's interfaces the other way round
    assert found.subnet_ips == enis + secondary
    assert found.unservable == 0


def test_interfaces_are_filled_one_after_the_other():
    assert node_ips(settings(WARM_IP_TARGET=2, MINIMUM_IP_TARGET=5), T3_SMALL, 0).ips_per_eni == (3, 2)


@pytest.mark.parametrize(("warm_ip", "minimum"), [(1, None), (None, 4), (1, 4)])
def test_with_a_target_for_addresses_the_one_for_interfaces_is_ignored(warm_ip, minimum):
    alone = settings(WARM_IP_TARGET=warm_ip, MINIMUM_IP_TARGET=minimum)
    beside = settings(WARM_IP_TARGET=warm_ip, MINIMUM_IP_TARGET=minimum, WARM_ENI_TARGET=3)
    assert node_ips(beside, P3DN, 3) == node_ips(alone, P3DN, 3)
    assert node_ips(alone, P3DN, 3).secondary_ips == 4


def test_a_warm_ip_target_of_zero_is_unset():
    assert node_ips(settings(WARM_IP_TARGET=0), T3_SMALL, 5).secondary_ips == 9


def test_without_warm_interfaces_one_is_attached_when_no_address_is_free():
    assert [node_ips(settings(WARM_ENI_TARGET=0), T3_SMALL, pods).enis for pods in (0, 2, 3, 5, 6, 9)] == [
        1, 1, 2, 2, 3, 3,
    ]  # fmt: skip


def test_a_minimum_alone_is_never_exceeded_and_further_pods_wait():
    found = node_ips(settings(MINIMUM_IP_TARGET=4), T3_SMALL, 6)
    assert (found.secondary_ips, found.unused_ips, found.unservable) == (4, 0, 2)


@pytest.mark.parametrize(("max_eni", "enis"), [("2", 2), ("3", 3), ("9", 3), ("0", 3), ("-1", 3), ("two", 3)])
def test_max_eni_caps_downward_only(max_eni, enis):
    found = node_ips(settings(MAX_ENI=max_eni), T3_SMALL, 9)
    assert (found.max_enis, found.enis) == (enis, enis)
    assert found.unservable == 9 - min(9, 3 * enis)


def test_max_pods_are_those_of_the_instance_type_whatever_max_eni_says():
    assert node_ips(settings(MAX_ENI=1), T3_SMALL, 0).max_pods == 11
    assert node_ips(settings(), P3DN, 0).max_pods == 737


def test_pods_on_the_hosts_network_take_no_address_but_count_against_max_pods():
    without, beside = node_ips(settings(), T3_SMALL, 9), node_ips(settings(), T3_SMALL, 9, host_network_pods=2)
    assert (beside.subnet_ips, beside.unservable) == (without.subnet_ips, 0)
    assert node_ips(settings(), T3_SMALL, 9, host_network_pods=3).unservable == 1
    assert node_ips(settings(), T3_SMALL, 10).unservable == 1  # there is room for 11 pods, addresses for 9


def test_a_type_whose_limits_are_not_known_is_refused():
    with pytest.raises(InvalidInputError, match="x1: found 0 interfaces with 0 addresses, expected at least 1 with 2"):
        node_ips(settings(), InstanceType(name="x1", vcpus=1, memory_mib=1), 1)


@pytest.mark.parametrize("text", ["", "-1", "two", "1.5", " 2", "2 ", "0x2", "1_0", "٣", "9" * 19, "9" * 400])
def test_what_the_cni_cannot_read_counts_as_its_default(text):
    assert settings(WARM_ENI_TARGET=text, WARM_IP_TARGET=text, MINIMUM_IP_TARGET=text, MAX_ENI=text) == CniSettings()


@pytest.mark.parametrize(("text", "value"), [("0", 0), ("7", 7), ("+7", 7), ("007", 7), ("-0", 0)])
def test_numbers_are_read_as_go_reads_them(text, value):
    assert settings(WARM_ENI_TARGET=text).warm_enis == value


@pytest.mark.parametrize("text", ["1", "t", "T", "TRUE", "true", "True"])
def test_switches_are_read_as_go_reads_them(text):
    assert settings(ENABLE_POD_ENI=text, ENABLE_IPv6="yes").off_by == ("ENABLE_POD_ENI",)


@pytest.mark.parametrize("text", ["0", "f", "F", "FALSE", "false", "False"])
def test_subnet_discovery_is_on_unless_switched_off(text):
    assert settings().discovery
    assert settings(ENABLE_SUBNET_DISCOVERY="off").discovery
    assert not settings(ENABLE_SUBNET_DISCOVERY=text).discovery


def test_the_settings_are_those_of_the_aws_node_container():
    env = [
        {"name": "WARM_IP_TARGET", "value": "1"},
        {"name": "MY_NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
        {"name": "WARM_IP_TARGET", "value": "3"},
    ]
    other = {"name": "aws-eks-nodeagent", "env": [{"name": "WARM_IP_TARGET", "value": "9"}]}
    containers = [other, {"name": "aws-node", "env": env}]
    assert variables_of({"spec": {"template": {"spec": {"containers": containers}}}}) == {"WARM_IP_TARGET": "3"}
    assert variables_of({}) == {}
