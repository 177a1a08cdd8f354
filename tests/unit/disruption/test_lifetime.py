"""The spread of `expireAfter: 720h±10%` over the nodes of a policy."""

from datetime import datetime, timedelta
from itertools import pairwise

from leeward.disruption.annotations import annotation_changes
from leeward.disruption.candidates import expires, lifetime, lifetime_left
from leeward.disruption.command import MethodName
from leeward.disruption.plan import plan_disruption
from leeward.model.node import Node
from leeward.policy.document import DisruptionPolicy
from tests.unit.disruption.fleet import NOON, a_fleet, a_policy, rules

MONTH = timedelta(hours=720)
SPREAD = rules(expire_after=MONTH, expire_jitter=10)


def a_node(instance, name="n"):
    raw = {"metadata": {"name": name, "creationTimestamp": "2026-04-01T12:00:00Z"}}
    return Node.from_json(raw | {"spec": {"providerID": f"aws:///us-east-1a/{instance}"}})


def test_nodes_launched_together_expire_over_the_whole_spread_and_not_beyond():
    ages = sorted(lifetime(a_node(f"i-{number:017x}"), SPREAD) for number in range(2000))
    assert timedelta(hours=648) <= ages[0] < timedelta(hours=650)
    assert timedelta(hours=790) < ages[-1] <= timedelta(hours=792)
    assert max(later - earlier for earlier, later in pairwise(ages)) < timedelta(hours=1)
    by_quarter = [sum(low <= age.total_seconds() / 3600 < low + 36 for age in ages) for low in (648, 684, 720, 756)]
    assert all(400 < nodes < 600 for nodes in by_quarter)


def test_the_age_follows_from_the_instance_id_alone():
    assert lifetime(a_node("i-0123456789abcdef0", "old"), SPREAD) == lifetime(a_node("i-0123456789abcdef0"), SPREAD)
    assert str(lifetime(a_node("i-0123456789abcdef0"), SPREAD)) == "29 days, 1:25:42.523224"


def test_without_a_spread_every_node_expires_at_the_same_age_or_never():
    assert lifetime(a_node("i-1"), rules(expire_after=MONTH)) == MONTH
    assert lifetime(a_node("i-1"), DisruptionPolicy()) is None
    assert expires(a_node("i-1"), DisruptionPolicy()) is None
    assert expires(a_node("i-1"), rules(expire_after=timedelta.max)) == datetime.max.replace(tzinfo=NOON.tzinfo)


def test_the_fraction_of_the_life_that_is_left_counts_to_the_nodes_own_age():
    node, half = a_node("i-1"), lifetime(a_node("i-1"), SPREAD) / 2
    assert abs(lifetime_left(node, SPREAD, node.created + half) - 0.5) < 1e-6


def test_plan_and_annotations_agree_on_which_nodes_of_one_launch_have_expired():
    fleet = a_fleet(a_policy(disruption=SPREAD))  # NOON is 724 hours after their creation: half of them have expired
    for number in range(40):
        fleet.node(f"n{number}", created="2026-04-01T08:00:00Z").pod(f"p{number}", f"n{number}", cpu="1500m")
    snapshot = fleet.snapshot()
    old = {node.name for node in snapshot.nodes if lifetime(node, SPREAD) <= timedelta(hours=724)}
    plan = plan_disruption(snapshot)
    assert 10 < len(old) < 30
    assert {node for command in plan.commands for node in command.nodes} == old
    annotated = {
        change.node.name for change in annotation_changes(snapshot, NOON) if "leeward.dev/expired" in change.set
    }
    assert annotated == old
    young = next(name for name in sorted(verdict for verdict in plan.verdicts if verdict not in old))
    reason = plan.verdicts[young][MethodName.EXPIRATION].reason
    assert reason.startswith("it expires in ")
    assert reason.endswith("old: its share of expireAfter 720h+-10%")
