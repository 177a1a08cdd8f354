"""The rolls of whole groups on the deployed stack: which nodes drain together, in which order, and in which steps."""

import json
from collections import Counter
from datetime import timedelta
from hashlib import blake2b

import pytest

from leeward.model import well_known
from local import fleet
from local.demo import ledger
from tests.local.chain.conftest import NEVER_JOIN, called
from tests.local.chain.pod_watch import watched_nodes
from tests.local.chain.upgrades.story import Story, most_together

pytestmark = [pytest.mark.local, pytest.mark.long]

PAIRS = ("rolled-a", "rolled-b", "rolled-c")
SETTLE = timedelta(seconds=6)


def balanced(name):
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"type": "LoadBalancer", "selector": {"app": name}, "ports": [{"port": 80}]},
    }


def endpoint_on(name, node):
    labels = {"kubernetes.io/service-name": name}
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": f"{name}-1", "namespace": "default", "labels": labels},
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["10.0.0.1"], "nodeName": node, "conditions": {"ready": True}}],
    }


@pytest.fixture(scope="module")
def rolled():
    """Keep what the first test has rolled for those that read it."""
    return {}


def test_nodes_of_three_pairs_drain_three_at_a_time_and_no_pair_together(stack, story, rolled):
    """34 % of six nodes are three. Each node has a pod of one of three pairs, of which one may be away: three nodes
    drain together, and no budget ever refuses an eviction. One new node joins late: until then nothing is cordoned.
    """
    story = story(6, "rolled", maximum=6)
    pods = [story.workload(name, 2, cpu="1200m", grace=60) for name in PAIRS]
    story.apply(*pods, *(fleet.budget(name, maxUnavailable=1) for name in PAIRS), balanced("front"))
    called(stack, "sync")
    story.team.keep_from_joining()
    with watched_nodes(stack) as watch:
        story.to_another_image()
        new = story.team.until(lambda: sorted(story.members - story.old) if len(story.members) == 12 else None, "surge")
        *first, late = new
        story.let_join(first)
        story.team.until(lambda: len(ledger.nodes(stack).keys() & set(new)) == 5, "five new nodes")
        stack.kubectl("apply", "-f", "-", stdin=fleet.manifests([endpoint_on("front", story.team.node_name(first[0]))]))

        def only_the_late_one_is_missing():
            gate = story.status()["gate"]
            return [line for line in gate["missing"] if late in line] if len(gate["missing"]) == 1 else None

        (missing,) = story.team.until(only_the_late_one_is_missing, "the gate closed by one node")
        assert "it has not joined the cluster" in missing
        assert not story.facts("node-cordoned", "eviction-accepted")
        story.let_join([late])
        story.succeeded()
    story.is_as_before(version="2")
    assert not story.old & story.members
    facts = story.facts()
    assert not [fact for fact in facts if fact.kind == "eviction-refused"]
    assert not [one for one in ledger.budget_violations(stack) if one["pdb"].split("/")[1] in PAIRS]
    assert most_together(facts) == 3
    rolled.update(story=story, watch=watch, late=late)


def test_it_left_load_balancers_with_all_old_nodes_before_the_first_eviction(rolled):
    """A new node serves the Service, so that no old node has to wait for its turn."""
    story, watch = rolled["story"], rolled["watch"]
    left = {
        seen.instance: seen.at
        for seen in reversed(watch.events)
        if seen.unschedulable and seen.labels.get(well_known.EXCLUDE_LABEL) == "true"
    }
    first_eviction = min(fact.at for fact in story.facts("eviction-accepted"))
    assert story.old <= left.keys()
    assert max(left[one] for one in story.old) < first_eviction
    joined = next(fact.at for fact in story.all_facts("node-ready") if fact.instance == rolled["late"])
    assert min(fact.at for fact in story.facts("node-cordoned")) > joined


def test_each_empty_node_stayed_cordoned_until_it_had_settled(rolled):
    story = rolled["story"]
    emptied = {fact.instance: fact.at for fact in story.facts("pod-deleted") if fact.of_workload}
    ended = story.terminations()
    assert emptied.keys() == story.old
    assert all(ended[one] - emptied[one] >= SETTLE for one in story.old)
    assert not [fact for fact in story.facts("node-uncordoned") if fact.at < ended[fact.instance]]


def test_its_report_draws_the_nodes_and_what_the_budgets_allowed(rolled, leeward, tmp_path):
    story, kept = rolled["story"], tmp_path / "record.json"
    code, _, err = leeward("report", story.execution, "--to", str(tmp_path / "page.html"), "--record", str(kept))
    assert code == 0, err
    document = json.loads(kept.read_text())
    drained = {lane["name"] for lane in document["nodes"] if any(span["phase"] == "draining" for span in lane["spans"])}
    names = {fact.object for fact in story.facts("node-tainted")}
    assert drained == names
    assert {lane["name"] for lane in document["workloads"]} >= {f"default/{name}" for name in PAIRS}


def test_rolled_back_every_node_is_of_the_version_before(rolled, leeward):
    before = rolled["story"]
    story = Story(team=before.team, leeward=leeward)
    story.old = before.members
    story.stack.client("autoscaling").delete_tags(
        Tags=[{"Key": NEVER_JOIN, "ResourceId": story.group, "ResourceType": "auto-scaling-group"}]
    )
    story.request("rollback")
    story.succeeded()
    story.is_as_before(version="1")
    assert not story.old & story.members
    assert most_together(story.facts()) <= 3
    assert not story.facts("eviction-refused")


@pytest.fixture(scope="module")
def side_by_side(stack, story):
    """Four groups that are upgraded at the same time, by name of their policy. The first launch of `stepwise` in the
    zone with two nodes is refused for lack of capacity.
    """
    own = fleet.build_network(stack)
    stories = {
        "chance": story(6, "chance"),
        "zoned": story(6, "zoned"),
        "stepwise": story(5, "stepwise", within=own),
        "requested": story(2, "requested", hook=True),
    }
    for name, grace in {"chance": 30, "zoned": 200, "stepwise": 1, "requested": 30}.items():
        one = stories[name]
        one.apply(one.workload(name, 2 * len(one.old), grace=grace))
    called(stack, "sync")
    stepwise = stories["stepwise"]
    zones = Counter(one["AvailabilityZone"] for one in stepwise.described["Instances"])
    subnets = stack.client("ec2").describe_subnets(SubnetIds=list(own.subnets))["Subnets"]
    (subnet, *_) = [one["SubnetId"] for one in subnets if zones[one["AvailabilityZone"]] == 2]
    stack.control("POST", "capacity", {"subnet": subnet, "times": 1})
    return {name: one.to_another_image() for name, one in stories.items()}


def test_in_random_order_two_nodes_drain_at_a_time_as_the_seed_has_drawn_them(side_by_side):
    story = side_by_side["chance"].succeeded()
    story.is_as_before(version="2")
    assert not story.old & story.members
    assert most_together(story.facts()) == 2
    names = {fact.instance: fact.object for fact in story.facts("node-created")}
    seed = int(story.recorded().began.timestamp())
    drawn = sorted(story.old, key=lambda one: blake2b(f"{seed}/{names[one]}".encode(), digest_size=8).digest())
    for place, one in enumerate(story.requested()):
        assert one in drawn[max(place - 1, 0) : place + 2], (drawn, story.requested())  # two begin in one turn


def test_a_zone_loses_one_node_at_a_time_where_its_budget_says_so(side_by_side):
    """Six nodes in three zones, all of which may drain at once but for the budget of the first zone."""
    story = side_by_side["zoned"].succeeded()
    zones = {str(one["InstanceId"]): str(one["AvailabilityZone"]) for one in story.before["Instances"]}
    story.is_as_before(version="2")
    facts = story.facts()
    together = {
        zone: most_together(fact for fact in facts if zones[fact.instance] == zone) for zone in set(zones.values())
    }
    assert together == {"us-east-1a": 1, "us-east-1b": 2, "us-east-1c": 2}
    assert Counter(zones[one] for one in story.requested()) == dict.fromkeys(together, 2)


def test_incremental_launches_one_node_a_zone_and_then_one_by_one_until_each_zone_has_one(side_by_side):
    """The launch that was refused is the last one before the gate opens, and the only one after the first turn."""
    story = side_by_side["stepwise"].succeeded()
    story.is_as_before(version="2")
    opened = min(fact.at for fact in story.facts("node-cordoned"))
    *first, last = [one for one in story.launched() if one.at < opened]
    zones = {str(one["AvailabilityZone"]) for one in story.before["Instances"]}
    (lacking,) = story.zones_of([last.instance])
    assert story.zones_of(one.instance for one in first) == sorted(zones - {lacking})


def test_the_group_is_asked_first_and_its_hook_holds_each_instance_while_it_drains(stack, side_by_side):
    story = side_by_side["requested"].succeeded()
    story.is_as_before(version="2")
    evicted = {fact.instance: fact.at for fact in reversed(story.facts("eviction-accepted"))}
    emptied = {fact.instance: fact.at for fact in story.facts("pod-deleted") if fact.of_workload}
    asked = story.terminations()
    gone = {fact.instance: fact.at for fact in story.facts("node-deleted")}
    assert evicted.keys() == emptied.keys() == gone.keys() == story.old
    assert all(asked[one] < evicted[one] < emptied[one] < gone[one] for one in story.old)
    for one in story.old:
        journal = stack.control("GET", f"journal/{one}")
        assert journal.index("Terminating:Wait") < journal.index("Terminating:Proceed") < journal.index("shutting-down")
