"""Cordons of an upgrade: those of old nodes from the gate to the end, none of a new node at any time."""

from dataclasses import replace

from simulation.node_instances import instance_behind
from tests.simulation.fleet_stand_in import budget, deployment
from tests.simulation.upgrade_stand_in import Upgraded, a_fleet, timedelta


def test_no_new_node_is_cordoned_at_any_time():
    upgraded, cordoned = Upgraded(), {"1": set(), "2": set()}

    def look():
        versions = {member.id: member.template.version for member in upgraded.group.instances if member.template}
        for node in upgraded.world.cluster.store.each("nodes"):
            version = versions.get(instance_behind(node))
            if version is not None and node["spec"].get("unschedulable"):
                cordoned[version].add(instance_behind(node))

    upgraded.watch(look).start(launchTemplateVersion="2").run()
    assert (upgraded.ended(), upgraded.at_rest()) == ("Upgraded", True)
    assert (len(cordoned["1"]), cordoned["2"]) == (6, set())


def test_an_upgrade_whose_pods_never_leave_ends_and_leaves_no_node_cordoned():
    """The rules of the simulation look again half an hour after the failure."""
    fleet = a_fleet(workloads=(deployment("web", 8), budget("web", 0)))
    (policy,) = fleet.policies.policies
    policy = replace(policy, drain=replace(policy.drain, timeout=timedelta(minutes=1)))
    upgraded = Upgraded(replace(fleet, policies=replace(fleet.policies, policies=(policy,))))
    upgraded.start(launchTemplateVersion="2", override=["PdbNeverAllows"]).run(hours=1.0)
    assert (upgraded.ended(), upgraded.cordoned) == ("PodEvictionFailure", [])
