"""Zones and subnets on the deployed stack: the report on an imbalance, subnets at random, and what a run places."""

import json
from collections import Counter
from ipaddress import ip_network

import pytest

from leeward.disruption.record import DisruptionOutcome
from local import fleet
from local.demo import ledger, scenario
from local.fleet import GroupPlan, Network
from tests.local.chain.conftest import Crew, called, logged
from tests.local.chain.endings.test_leaving import a_database
from tests.local.chain.groups.test_disruption import closed_disruption, decided, launch_from_another_image
from tests.local.chain.groups.test_placement import aws_node, instance, leave_free

pytestmark = [pytest.mark.local, pytest.mark.long]

RESERVED = 5  # addresses of each subnet that are AWS's own
LARGE = "m5.4xlarge"


@pytest.fixture
def doubled(stack):
    """A network with two subnets in each zone: the first of each, then the second."""
    ec2, first = stack.client("ec2"), fleet.build_network(stack)
    second = tuple(
        ec2.create_subnet(
            VpcId=first.vpc, CidrBlock=f"10.40.{100 + number}.0/24", AvailabilityZone=f"{stack.region}{zone}"
        )["Subnet"]["SubnetId"]
        for number, zone in enumerate(fleet.ZONES)
    )
    return Network(vpc=first.vpc, subnets=(*first.subnets, *second))


def counted_by_interfaces(stack, zone):
    """Free addresses of the zone's subnets in which groups launch, by DescribeNetworkInterfaces."""
    groups = stack.client("autoscaling").describe_auto_scaling_groups()["AutoScalingGroups"]
    names = {name for group in groups for name in group["VPCZoneIdentifier"].split(",")}
    ec2 = stack.client("ec2")
    used = Counter(
        interface["SubnetId"]
        for interface in ec2.describe_network_interfaces()["NetworkInterfaces"]
        for _ in interface["PrivateIpAddresses"]
    )
    subnets = [
        one for one in ec2.describe_subnets(SubnetIds=sorted(names))["Subnets"] if one["AvailabilityZone"] == zone
    ]
    return sum(ip_network(one["CidrBlock"]).num_addresses - RESERVED - used[one["SubnetId"]] for one in subnets)


def test_the_zone_report_explains_an_imbalance_by_large_nodes_volumes_and_addresses(stack, crew, leeward):
    crew(3)
    name = "web-large"
    own = fleet.build_network(stack)
    subnet = Network(vpc=own.vpc, subnets=own.subnets[1:2])
    fleet.build_group(stack, subnet, GroupPlan(name=name, size=1, type=LARGE))
    (large,) = (str(one["InstanceId"]) for one in fleet.instances_of(stack, name))
    team = Crew(stack=stack, group=name, instances=[large])
    team.until(lambda: large in ledger.nodes(stack) and scenario.is_ready(ledger.nodes(stack)[large]), "the large node")
    team.run_pods(a_database(name), instance=large)
    called(stack, "sync")

    def reported():
        code, out, err = leeward("inspect", "zones")
        assert code == 0, err
        return {zone["zone"]: zone for zone in json.loads(out)["zones"]}

    zones = reported()
    zone = instance(stack, large)["Placement"]["AvailabilityZone"]
    assert f"large: {team.node_name(large)} with 16 cores (a typical node has 2 cores)" in zones[zone]["why"]
    assert "1 pod is bound here by volumes" in zones[zone]["why"]
    assert zones[zone]["cores"] >= 16 + 2 > max(found["cores"] for name, found in zones.items() if name != zone)
    assert {name: found["freeIps"] for name, found in zones.items()} == {
        name: counted_by_interfaces(stack, name) for name in zones
    }
    stack.kubectl("delete", "statefulset", "leave-db")


def test_where_addresses_are_not_counted_subnets_are_drawn_and_full_ones_never(stack, crew, leeward, doubled):
    """Custom networking: pods take their addresses elsewhere. Four spot nodes get their warning at once."""
    stack.kubectl("apply", "-f", "-", stdin=fleet.manifests([aws_node("AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG", "true")]))
    team = crew(4, spot=True, within=doubled)
    called(stack, "sync")
    full = doubled.subnets[0]
    leave_free(stack, [full], 0)
    place = ("inspect", "place", team.group, "--count", "90", "--pods", "3", "--seed")  # each subnet is drawn
    answers = [json.loads(leeward(*place, seed)[1])["subnets"] for seed in ("7", "7", "8")]
    assert answers[0] == answers[1] != answers[2]
    assert {one["subnet"] for one in answers[0]} == set(doubled.subnets) - {full}
    assert any("chosen at random among 2 subnets" in one["why"] for one in answers[0])
    for victim in team.instances:
        stack.emit(scenario.spot_warning(stack, victim))
    launched = [name for victim in team.instances for name in team.closed(victim).launched]
    assert len(launched) == 4
    assert {instance(stack, name)["SubnetId"] for name in launched} <= set(doubled.subnets) - {full}
    assert logged(stack, "drain", "chosen at random among 2 subnets")
    team.until(lambda: ledger.group_size(stack, team.group) == (4, 4), "the group at its size")


def test_a_run_launches_its_replacement_only_where_its_zone_has_addresses(stack, crew, doubled):
    """First no subnet of the zone has enough of them, then the second one has."""
    stack.kubectl("apply", "-f", "-", stdin=fleet.manifests([aws_node("WARM_ENI_TARGET", "1")]))
    team = crew(2, name="worn", within=doubled)
    called(stack, "sync")
    launch_from_another_image(stack, team.group)
    leave_free(stack, doubled.subnets, 5)
    decided(stack, team)
    record = closed_disruption(stack, team)
    assert record.outcome is not DisruptionOutcome.DONE, record
    assert record.launched == {}
    assert set(team.instances) == {str(one["InstanceId"]) for one in fleet.instances_of(stack, team.group)}
    assert not [name for name in team.instances if ledger.is_tainted(ledger.nodes(stack)[name])]

    leave_free(stack, doubled.subnets[3:], None)
    decided(stack, team)
    record = closed_disruption(stack, team)
    assert record.outcome is DisruptionOutcome.DONE, record
    (launched,) = record.launched
    (replaced,) = record.nodes.values()
    found, gone = instance(stack, launched), instance(stack, replaced)
    assert found["SubnetId"] in doubled.subnets[3:]
    assert found["Placement"]["AvailabilityZone"] == gone["Placement"]["AvailabilityZone"]
    stack.client("autoscaling").update_auto_scaling_group(  # the other node has drifted still
        AutoScalingGroupName=team.group, MinSize=0, MaxSize=0, DesiredCapacity=0
    )
