"""When addresses are counted. Sources: Cast AI, "CNI settings that disable subnet usage calculation"; the CNI's
subnet discovery."""

import pytest

from leeward.model.instance_type import InstanceType
from leeward.placement.accounting import CNI_CLUSTER_TAG, CNI_ROLE_TAG, accounting_of, demand_of
from leeward.placement.cni import CniSettings
from tests.unit.placement.builders import M5_LARGE, ON, T3_SMALL, a_subnet

SWITCHES = ["AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG", "ENABLE_POD_ENI", "ENABLE_PREFIX_DELEGATION", "ENABLE_IPv6"]
TAGGED = {CNI_ROLE_TAG: "1"}


def settings(**variables):
    return CniSettings.from_variables(variables)


@pytest.mark.parametrize("name", SWITCHES)
def test_each_of_the_four_settings_switches_accounting_off_and_is_named(name):
    found = accounting_of(settings(**{name: "true"}))
    assert (found.on, found.why) == (False, f"{name} is on")
    assert accounting_of(settings(**{name: "false"})).on


def test_all_settings_that_are_on_are_named():
    found = accounting_of(settings(ENABLE_IPv6="true", ENABLE_POD_ENI="1"))
    assert found.why == "ENABLE_POD_ENI and ENABLE_IPv6 are on"


def test_what_is_counted_is_said():
    assert accounting_of(settings()).why == "WARM_ENI_TARGET 1"
    found = accounting_of(settings(WARM_IP_TARGET="2", MINIMUM_IP_TARGET="5", MAX_ENI="2"))
    assert found.why == "WARM_IP_TARGET 2, MINIMUM_IP_TARGET 5, MAX_ENI 2 (WARM_ENI_TARGET is ignored)"


def test_subnet_discovery_that_would_use_another_subnet_switches_accounting_off():
    own, pods = a_subnet("subnet-a"), a_subnet("subnet-pods", tags=TAGGED)
    found = accounting_of(settings(), "blue", [own, pods], [own])
    assert not found.on
    assert found.why.startswith("ENABLE_SUBNET_DISCOVERY is on and subnet-pods in us-east-1a carries")
    assert accounting_of(settings(ENABLE_SUBNET_DISCOVERY="false"), "blue", [own, pods], [own]).on


@pytest.mark.parametrize(
    "other",
    [
        a_subnet("subnet-b", zone="us-east-1b", tags=TAGGED),
        a_subnet("subnet-b", tags={CNI_ROLE_TAG: "0"}),
        a_subnet("subnet-b"),
        a_subnet("subnet-a", tags=TAGGED),
        a_subnet("subnet-b", tags={**TAGGED, f"{CNI_CLUSTER_TAG}green": "shared"}),
    ],
    ids=["another zone", "tagged 0", "no tag", "the node's own", "for another cluster"],
)
def test_subnet_discovery_keeps_to_tagged_subnets_of_the_same_zone(other):
    assert accounting_of(settings(), "blue", [other], [a_subnet("subnet-a")]).on


def test_a_subnet_that_is_tagged_for_this_cluster_among_others_is_discovered():
    tags = {**TAGGED, f"{CNI_CLUSTER_TAG}green": "shared", f"{CNI_CLUSTER_TAG}blue": ""}
    own, pods = a_subnet("subnet-a"), a_subnet("subnet-pods", tags=tags)
    assert not accounting_of(settings(), "blue", [own, pods], [own]).on
    assert accounting_of(settings(), "red", [own, pods], [own]).on


@pytest.mark.parametrize(
    ("variables", "others", "shut"),
    [
        ({}, [], {"subnet-a"}),
        ({}, [a_subnet("subnet-pods", tags=TAGGED)], set()),
        ({}, [a_subnet("subnet-pods", zone="us-east-1b", tags=TAGGED)], {"subnet-a"}),
        ({}, [a_subnet("subnet-pods", tags={**TAGGED, f"{CNI_CLUSTER_TAG}green": ""})], {"subnet-a"}),
        ({"ENABLE_SUBNET_DISCOVERY": "false"}, [], set()),
        ({"AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG": "true"}, [], set()),
        ({"ENABLE_PREFIX_DELEGATION": "true"}, [], {"subnet-a"}),
    ],
)
def test_a_subnet_that_excludes_itself_takes_no_pods_unless_discovery_has_another(variables, others, shut):
    own = a_subnet("subnet-a", tags={CNI_ROLE_TAG: "0"})
    assert accounting_of(settings(**variables), "blue", [own, *others], [own]).shut == shut


def test_a_node_of_several_possible_types_takes_what_the_greediest_takes():
    demand = demand_of(ON, settings(), [T3_SMALL, M5_LARGE], 4)
    assert (demand.ips, demand.millicores) == (20, 2000)  # two interfaces of ten against three of four


def test_no_more_pods_are_counted_than_the_node_may_run():
    assert demand_of(ON, settings(WARM_IP_TARGET="1"), [T3_SMALL], 500).ips == 12


@pytest.mark.parametrize("types", [[], [InstanceType(name="x9.new", vcpus=4, memory_mib=1)]], ids=["none", "unknown"])
def test_without_network_limits_accounting_is_off_and_a_node_takes_one_address(types):
    demand = demand_of(ON, settings(), types, 4)
    assert (demand.accounting.on, demand.ips) == (False, 1)
    assert "network limits of" in demand.accounting.why
