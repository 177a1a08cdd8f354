"""Nodes that are rebooted instead of replaced, on the deployed system."""

import pytest

from local import fleet
from local.demo import ledger

pytestmark = pytest.mark.local


def boot_of(stack, instance):
    node = ledger.nodes(stack).get(instance)
    return None if node is None else node["status"]["nodeInfo"]["bootID"]


def taints_of(stack, instance):
    return [taint["key"] for taint in ledger.nodes(stack)[instance]["spec"].get("taints") or ()]


def is_in_service(stack, instance):
    spec = ledger.nodes(stack)[instance]["spec"]
    return not spec.get("unschedulable") and "leeward.dev/disrupted" not in taints_of(stack, instance)


@pytest.mark.long
def test_a_node_with_broken_hardware_is_drained_rebooted_and_back_in_service(stack, crew, swept_by_schedule):
    team = crew(3, name="reboot")
    victim = team.instances[0]
    node, before = team.node_name(victim), boot_of(stack, victim)
    team.run_pods(fleet.deployment("reboot-app", 2, grace=1), instance=victim)
    broken = {"type": "AcceleratedHardwareReady", "status": "False", "reason": "NvidiaXID79Error"}
    stack.cluster_control("PUT", f"nodes/{node}/condition", broken)
    record = team.closed(victim)
    assert (record.outcome, record.evicted, record.launched) == ("rebooted", 2, ())
    assert boot_of(stack, victim) not in {None, before}
    assert is_in_service(stack, victim)
    assert {"UnhealthyNode", "Rebooting", "Rebooted"} <= {event["reason"] for event in team.reported_about(node)}
    assert ledger.group_size(stack, team.group) == (3, 3)
    assert all(team.record(other) is None for other in team.instances[1:])


@pytest.mark.long
def test_a_node_waits_drained_for_the_reboot_that_ec2_has_scheduled(stack, crew):
    """No message of AWS Health comes: the minute reconciler finds the event at EC2."""
    team = crew(2, name="reboot")
    victim = team.instances[0]
    node, before = team.node_name(victim), boot_of(stack, victim)
    team.run_pods(fleet.deployment("waiting-app", 2, grace=1), instance=victim)
    stack.control("PUT", f"scheduled-events/{victim}", {"code": "system-reboot", "inSeconds": 120})
    team.reconcile()
    team.until(lambda: "leeward.dev/disrupted" in taints_of(stack, victim), "the taint")
    team.until(lambda: not team.pods_on(node), "an empty node")
    stack.client("ec2").reboot_instances(InstanceIds=[victim])
    done = {"code": "system-reboot", "description": "[Completed] The instance was rebooted"}
    stack.control("PUT", f"scheduled-events/{victim}", done)
    record = team.closed(victim)
    assert (record.outcome, record.evicted, record.launched) == ("rebooted", 2, ())
    assert "scheduled_change" in record.causes
    assert boot_of(stack, victim) not in {None, before}
    assert is_in_service(stack, victim)
    assert team.reconcile()["repaired"] == []
    assert team.record(victim).status == "closed"


def test_a_node_whose_root_volume_its_group_replaces_is_drained_and_back_in_service(stack, crew):
    team = crew(1, name="reboot", hook=True)
    victim = team.instances[0]
    node, before = team.node_name(victim), boot_of(stack, victim)
    team.run_pods(fleet.deployment("root-volume-app", 2, grace=1), instance=victim)
    stack.client("autoscaling").start_instance_refresh(AutoScalingGroupName=team.group, Strategy="ReplaceRootVolume")
    team.until(lambda: team.record(victim) is not None, "its hook announced")
    record = team.closed(victim)
    assert (record.outcome, record.evicted, record.launched) == ("rebooted", 2, ())
    assert "replace_root_volume" in record.causes
    assert boot_of(stack, victim) not in {None, before}
    assert is_in_service(stack, victim)
    assert {"RootVolumeReplacement", "Rebooted"} <= {event["reason"] for event in team.reported_about(node)}
    assert ledger.group_size(stack, team.group) == (1, 1)
