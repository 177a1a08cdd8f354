"""Unhealthy nodes are replaced, and deleted Nodes carried out, on the deployed system."""

import pytest

from local import fleet
from local.demo import ledger

pytestmark = pytest.mark.local

FINALIZER = "leeward.dev/termination"


def finalizers(stack, instance):
    node = ledger.nodes(stack).get(instance)
    return None if node is None else node["metadata"].get("finalizers", [])


@pytest.mark.long
def test_a_silent_node_and_an_impaired_instance_are_replaced(stack, crew, swept_by_schedule):
    """At second sight: the schedule's own reconciliations find them."""
    team = crew(4, name="ill")
    silent, impaired, *others = team.instances
    team.run_pods(fleet.deployment("ill-app", 2, grace=1), instance=impaired)
    stack.cluster_control("PUT", f"nodes/{team.node_name(silent)}/ready", {"status": "Unknown"})
    stack.control("PUT", f"status-checks/{impaired}", {"impaired": ["system"], "secondsAgo": 60})
    for victim in (silent, impaired):
        record = team.closed(victim)
        assert record.outcome == "terminated"
        assert "unhealthy" in record.causes
        assert len(record.launched) == 1
        assert victim not in ledger.nodes(stack)
    assert team.record(impaired).evicted == 2
    team.until(lambda: ledger.group_size(stack, team.group) == (4, 4), "the group at its size")
    assert all(team.record(other) is None for other in others)


def test_an_api_server_that_fails_ends_nothing(stack, crew):
    team = crew(4, name="ill")
    silent = team.instances[0]
    stack.cluster_control("PUT", f"nodes/{team.node_name(silent)}/ready", {"status": "Unknown"})
    team.reconcile()
    stack.cluster_control("POST", "faults", {"status": 500, "seconds": 3600})
    assert team.reconcile()["repaired"] == []
    stack.cluster_control("DELETE", "faults")
    stack.cluster_control("PUT", f"nodes/{team.node_name(silent)}/ready", {"status": "True"})
    assert silent not in team.reconcile()["repaired"]
    assert team.record(silent) is None


def test_a_deleted_node_is_drained_and_ended_before_it_goes(stack, crew):
    team = crew(2, name="kept", hook=True)
    victim, other = team.instances
    team.run_pods(fleet.deployment("kept-app", 2, grace=3), instance=victim)
    team.reconcile()
    team.until(lambda: finalizers(stack, victim) == [FINALIZER], "the finalizer")
    stack.kubectl("delete", "node", team.node_name(victim), "--wait=false")
    assert victim in ledger.nodes(stack)
    assert len(team.pods_on(team.node_name(victim))) == 2
    team.reconcile()
    record = team.closed(victim)
    assert record.outcome == "terminated"
    assert "node_deleted" in record.causes
    assert (record.evicted, record.launched) == (2, ())
    assert victim not in ledger.nodes(stack)
    team.until(lambda: ledger.group_size(stack, team.group) == (2, 2), "the group at its size")
    assert other in ledger.nodes(stack)


def test_the_node_of_an_instance_that_is_gone_does_not_stay_behind(stack, crew):
    team = crew(1, name="kept")
    victim = team.instances[0]
    team.reconcile()
    team.until(lambda: finalizers(stack, victim) == [FINALIZER], "the finalizer")
    stack.client("ec2").terminate_instances(InstanceIds=[victim])
    team.until(lambda: victim not in ledger.nodes(stack), "its Node gone")
