"""Consolidation on the deployed stack: what it may not do to a workload that demands to be spread over zones."""

import json

import pytest

from local import fleet
from local.demo import ledger
from tests.local.chain.conftest import called
from tests.local.chain.groups.test_disruption import closed_disruption, decided
from tests.local.chain.pod_watch import watched_pods

pytestmark = pytest.mark.local

ZONES = 3
SHORT = 20.0  # seconds: a pod that waits for the Node object of a drained node to be deleted waits for longer
SPREAD = "node(s) didn't match pod topology spread constraints"


def spread_over_zones(name, group):
    """A Deployment of one replica a zone that demands `maxSkew: 1`."""
    found = fleet.deployment(name, ZONES, grace=5, on={"group": group})
    constraint = {
        "topologyKey": "topology.kubernetes.io/zone",
        "maxSkew": 1,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": name}},
    }
    found["spec"]["template"]["spec"]["topologySpreadConstraints"] = [constraint]
    return found


def kept_for_their_spread(leeward, nodes):
    """Whether a live plan consolidates none of these nodes because their pods could not be spread elsewhere."""
    code, out, _ = leeward("plan", "--method", "consolidation")
    plan = json.loads(out)
    assert (code, plan["commands"]) == (0, [])
    reasons = {
        one["node"]: [verdict["reason"] for verdict in one["verdicts"] if verdict["method"] == "consolidation"]
        for one in plan["nodes"]
    }
    return all(any(SPREAD in reason for reason in reasons[name]) for name in nodes)


def test_replicas_that_are_spread_over_zones_stay_spread_while_their_neighbour_is_consolidated(stack, crew, leeward):
    """Two nodes in one zone and one in each other: the fourth node has a pod of another workload, which any node has
    room for. Each of the nodes would do for all pods.
    """
    team = crew(ZONES + 1, name="thin")
    called(stack, "sync")
    nodes = ledger.nodes(stack)
    zone_of = {one: nodes[one]["metadata"]["labels"]["topology.kubernetes.io/zone"] for one in team.instances}
    first = {zone: one for one, zone in zone_of.items()}
    (neighbour,) = set(team.instances) - set(first.values())
    for one in first.values():
        stack.kubectl("label", "node", team.node_name(one), f"group={team.group}")
    workload = spread_over_zones("spread", team.group)
    with watched_pods(stack, "spread") as pods:
        stack.kubectl("apply", "-f", "-", stdin=fleet.manifests([workload]))
        team.until(lambda: all(team.pods_on(team.node_name(one)) for one in first.values()), "one replica a zone")
        lone = fleet.deployment("beside", 1, grace=1, on={"group": team.group})
        team.run_pods(lone, instance=neighbour)

        decided(stack, team)
        record = closed_disruption(stack, team)

        team.until(lambda: ledger.group_size(stack, team.group) == (ZONES, ZONES), "one node less")
        left = set(team.instances) & set(ledger.nodes(stack))
        kept = [team.node_name(one) for one in left]
        team.until(lambda: kept_for_their_spread(leeward, kept), "a plan after the cooldown that keeps the other nodes")
        assert called(stack, "disruption-planner")["disruptions"] == []
    assert (record.groups, len(record.nodes), record.launched) == ((team.group,), 1, {}), record
    assert {zone_of[one] for one in left} == set(first)
    assert pods.longest_pending() < SHORT
    per_zone = list(pods.per_zone())
    assert max(max(found.values()) - min(found.values()) for found in per_zone) == 1
    assert set(per_zone[-1].values()) == {1}
