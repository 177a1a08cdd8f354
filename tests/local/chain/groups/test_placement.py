"""Where replacements go on the deployed stack: zones with and without free addresses, by Event, log and command."""

import json
import re
import subprocess
import sys
from dataclasses import dataclass

import pytest

from leeward.adapters.aws.catalog import DynamoCatalog
from leeward.adapters.aws.table import DynamoTable
from leeward.model.facts import KEPT_BY_SYNC, ClusterFacts, FactKind
from local import fleet, zones
from local.demo import ledger, scenario
from tests.local.chain.conftest import Crew, called, logged

pytestmark = pytest.mark.local


def aws_node(name, value):
    """The CNI's DaemonSet with one setting."""
    labels = {"k8s-app": "aws-node"}
    container = {"name": "aws-node", "image": "cni", "env": [{"name": name, "value": value}]}
    spec = {"hostNetwork": True, "tolerations": [{"operator": "Exists"}], "containers": [container]}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "aws-node", "namespace": "kube-system"},
        "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": spec}},
    }


@dataclass(kw_only=True)
class Placed:
    """A crew, and the network that it has for itself."""

    team: Crew
    network: fleet.Network

    @property
    def victim(self):
        return self.team.instances[0]

    @property
    def node(self):
        return self.team.node_name(self.victim)

    def at_its_size(self):
        stack, group = self.team.stack, self.team.group
        self.team.until(lambda: ledger.group_size(stack, group) == (1, 1), "the group at its size")


@pytest.fixture
def placed(stack, crew):
    """One spot node in a network of its own, and everything that fn sync has to say about it."""
    within = fleet.build_network(stack)
    stack.kubectl("apply", "-f", "-", stdin=fleet.manifests([aws_node("WARM_ENI_TARGET", "1")]))
    team = crew(1, spot=True, within=within)
    called(stack, "sync")
    return Placed(team=team, network=within)


def instance(stack, name):
    reservations = stack.client("ec2").describe_instances(InstanceIds=[name])["Reservations"]
    return reservations[0]["Instances"][0]


def leave_free(stack, subnets, count):
    for subnet in subnets:
        stack.control("PUT", f"subnets/{subnet}", {"freeIps": count})


def leeward(stack, *arguments):
    arn = stack.client("sts").get_caller_identity()["Arn"]
    eks = stack.client("eks")
    if arn not in eks.list_access_entries(clusterName=stack.cluster)["accessEntries"]:
        groups = ["leeward:read", "leeward:taint"]
        eks.create_access_entry(clusterName=stack.cluster, principalArn=arn, kubernetesGroups=groups)
    stack.take_over_access_entries()
    command = [sys.executable, "-m", "leeward.cli.main", *arguments, "--cluster", stack.cluster]
    return subprocess.run(command, env=stack.environment(), capture_output=True, text=True, check=False)


def test_fn_sync_writes_facts_down_and_labels_nodes_with_their_subnet(stack, placed):
    victim = placed.victim
    labels = ledger.nodes(stack)[victim]["metadata"]["labels"]
    subnet = instance(stack, victim)["SubnetId"]
    assert (labels["leeward.dev/subnet-id"], labels["topology.cast.ai/subnet-id"]) == (subnet, subnet)
    facts = ClusterFacts.from_sheets(catalog(stack).read(stack.cluster))
    assert set(placed.network.subnets) <= {one.id for one in facts.subnets}
    assert facts.types["m5.large"].ips_per_eni == 10
    assert facts.cni == {"WARM_ENI_TARGET": "1"}
    assert victim in facts.ready
    assert min(facts.cores.values()) > 0
    assert set(KEPT_BY_SYNC) - set(facts.synced) <= {FactKind.PRICES}


def catalog(stack):
    class Clients:
        def get(self, service):
            return stack.client(service)

    return DynamoCatalog(DynamoTable(Clients(), "leeward"))


def test_with_its_zones_subnet_nearly_full_a_spot_replacement_lands_in_another_zone(stack, placed):
    victim = placed.victim
    home = instance(stack, victim)["SubnetId"]
    zone = instance(stack, victim)["Placement"]["AvailabilityZone"]
    node = placed.node
    leave_free(stack, [home], 5)
    reported = leeward(stack, "inspect", "place", placed.team.group, "--count", "1", "--pods", "3", "-o", "json")
    assert reported.returncode == 0, reported.stderr
    refused = {one["zone"]: one["why"] for one in json.loads(reported.stdout)["refused"]}
    assert f"{home} has 5 free, a node (m5.large) with 3 pods takes 20 IPs" in refused[zone]
    shown = leeward(stack, "inspect", "zones", "--pods", "3")
    seen = r"as fn sync recorded them: templates \d+ min ago, instance-types \d+ min ago, cni \d+ min ago"
    assert re.search(seen, shown.stdout), shown.stdout

    stack.emit(scenario.spot_warning(stack, victim))
    record = placed.team.closed(victim)
    (launched,) = record.launched
    assert instance(stack, launched)["Placement"]["AvailabilityZone"] != zone
    why = f"{home} has 5 free, a node (m5.large) with"
    (event,) = [one for one in placed.team.reported_about(node) if one["reason"] == "ReplacementElsewhere"]
    assert why in event["message"]
    assert logged(stack, "drain", why)
    placed.at_its_size()


def test_with_every_subnet_full_nothing_is_launched_and_the_pod_is_reported(stack, placed):
    victim = placed.victim
    node = placed.node
    placed.team.run_pods(fleet.deployment("homeless", 1, grace=1), instance=victim)
    (pod,) = placed.team.pods_on(node)
    leave_free(stack, placed.network.subnets, 4)
    stack.emit(scenario.spot_warning(stack, victim))
    record = placed.team.closed(victim)
    assert record.launched == ()
    for name in (node, pod):
        (event,) = [one for one in placed.team.reported_about(name) if one["reason"] == "NoSubnetIPs"]
        assert event["type"] == "Warning"
        assert "there is no subnet with enough available IP addresses" in event["message"]
        assert "has 4 free, a node (m5.large) with" in event["message"]
    assert logged(stack, "drain", "there is no subnet with enough available IP addresses")
    leave_free(stack, placed.network.subnets, None)
    placed.at_its_size()


def test_with_prefix_delegation_addresses_are_not_counted_and_the_command_says_so(stack, placed):
    leave_free(stack, placed.network.subnets, 4)
    stack.kubectl("apply", "-f", "-", stdin=fleet.manifests([aws_node("ENABLE_PREFIX_DELEGATION", "true")]))
    called(stack, "sync")
    reported = leeward(stack, "inspect", "place", placed.team.group, "--count", "1", "--pods", "3", "-o", "json")
    assert reported.returncode == 0, reported.stderr
    (subnet,) = json.loads(reported.stdout)["subnets"]
    assert "pods are not counted: ENABLE_PREFIX_DELEGATION is on" in subnet["why"]


def test_a_zone_without_capacity_is_followed_by_the_next(stack, placed):
    victim = placed.victim
    zone = instance(stack, victim)["Placement"]["AvailabilityZone"]
    stack.control("POST", "capacity", {"subnet": instance(stack, victim)["SubnetId"]})
    stack.emit(scenario.spot_warning(stack, victim))
    record = placed.team.closed(victim)
    stack.control("DELETE", "capacity")
    (launched,) = record.launched
    assert instance(stack, launched)["Placement"]["AvailabilityZone"] != zone
    placed.at_its_size()


@pytest.mark.parametrize("silent", [False, True], ids=["with its event", "without an event"])
def test_a_zonal_shift_closes_the_zone_for_a_replacement(stack, placed, silent):
    """The event is read at once; without one, the minute reconciler's poll sees the shift."""
    victim = placed.victim
    node, zone = placed.node, instance(stack, victim)["Placement"]["AvailabilityZone"]
    known = catalog(stack)
    try:
        zones.shift(stack, zone, shift_type="PRACTICE_RUN", silent=silent)
        if silent:
            called(stack, "reconciler")
        placed.team.until(lambda: known.zonal_shifts(stack.cluster).zones == {zone}, "the shift is known")
        stack.emit(scenario.spot_warning(stack, victim))
        record = placed.team.closed(victim)
        (launched,) = record.launched
        assert instance(stack, launched)["Placement"]["AvailabilityZone"] != zone
        reported = placed.team.reported_about(node)
        (why,) = {one["message"] for one in reported if one["reason"] == "ReplacementElsewhere"}
        assert f"not allowed by the zonal shift away from {zone} (practice run since" in why
    finally:
        zones.end_shift(stack, zone, silent=silent)
        called(stack, "reconciler")
    assert known.zonal_shifts(stack.cluster).zones == frozenset()
    placed.at_its_size()
