"""Invariants of the scheduling room over generated clusters, against an independent slow check of every placement."""

import os

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from leeward.scheduling.nodes import NodeSpec
from leeward.scheduling.packing import attempt, pack
from leeward.scheduling.pods import PodReader
from leeward.scheduling.volumes import Storage
from leeward.scheduling.world import World
from tests.unit.scheduling.raw import (
    HOST,
    REQUIRED,
    ZONE,
    a_claim,
    a_csi_node,
    a_daemon_set,
    a_line,
    a_node,
    a_pod,
    a_taint,
    a_template,
    a_term,
    a_volume,
    selecting,
)
from tests.unit.scheduling.slow_scheduler import SlowScheduler

EXAMPLES = int(os.environ.get("EXAMPLES", "80"))  # make test-long asks for more
THOROUGH = settings(
    max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)

ZONES, APPS, KEYS = ["a", "b", "c"], ["web", "db", "log"], [ZONE, HOST, "rack"]
CLAIMS = [a_claim(f"c-{zone}", volume=f"pv-{zone}") for zone in ZONES]
VOLUMES = [a_volume(f"pv-{zone}", zone=zone) for zone in ZONES]

taints = st.lists(
    st.builds(a_taint, st.sampled_from(["team", "gpu"]), st.just("x"), st.sampled_from(["NoSchedule", "NoExecute"])),
    max_size=1,
)
tolerations = st.lists(
    st.sampled_from([{"key": "team", "operator": "Exists"}, {"key": "gpu", "value": "x"}, {"operator": "Exists"}]),
    max_size=1,
)
terms = st.lists(
    st.builds(
        lambda key, app, more: a_term(key, app, **more),
        st.sampled_from(KEYS),
        st.sampled_from(APPS),
        st.sampled_from([{}, {}, {"namespaces": ["shop"]}, {"namespaceSelector": {}}]),
    ),
    max_size=1,
)
constraints = st.lists(
    st.fixed_dictionaries(
        {
            "topologyKey": st.sampled_from(KEYS),
            "maxSkew": st.integers(1, 2),
            "whenUnsatisfiable": st.sampled_from(["DoNotSchedule", "DoNotSchedule", "ScheduleAnyway"]),
            "labelSelector": st.sampled_from(APPS).map(selecting),
        },
        optional={
            "minDomains": st.integers(1, 4),
            "nodeAffinityPolicy": st.sampled_from(["Honor", "Ignore"]),
            "nodeTaintsPolicy": st.sampled_from(["Honor", "Ignore"]),
        },
    ),
    max_size=2,
)
node_lines = st.sampled_from(
    [
        None,
        None,
        a_line(ZONE, "In", "a", "b"),
        a_line(ZONE, "NotIn", "a"),
        a_line("gen", "Gt", "4"),
        a_line("rack", "Exists"),
    ]
)


@st.composite
def raw_nodes(draw):
    found = []
    for at in range(draw(st.integers(1, 6))):
        extra = draw(st.sampled_from([{}, {"rack": "1"}, {"rack": "2", "gen": "5"}, {"gen": "4"}]))
        node = a_node(
            f"n{at}",
            zone=draw(st.sampled_from(ZONES)),
            cpu=str(draw(st.integers(1, 6))),
            pods=str(draw(st.integers(3, 8))),
            labels=extra,
            taints=draw(taints),
            cordoned=draw(st.integers(0, 9)) == 0,
        )
        found.append(node)
    return found


@st.composite
def raw_pods(draw, names):
    found = []
    for at in range(draw(st.integers(1, 14))):
        pod = a_pod(
            f"p{at}",
            app=draw(st.sampled_from(APPS)),
            namespace=draw(st.sampled_from(["default", "default", "shop"])),
            node="" if draw(st.integers(0, 3)) else draw(st.sampled_from(names)),
            cpu=draw(st.sampled_from(["500m", "1", "1500m", "0"])),
            owner=draw(st.sampled_from(["", "", "", "DaemonSet"])),
            priority=draw(st.sampled_from([0, 0, 10])),
            tolerations=draw(tolerations),
            topologySpreadConstraints=draw(constraints),
        )
        pod["spec"]["affinity"] = {
            "podAffinity": {REQUIRED: draw(terms) if draw(st.booleans()) else []},
            "podAntiAffinity": {REQUIRED: draw(terms) if draw(st.booleans()) else []},
        }
        line = draw(node_lines)
        if line:
            pod["spec"]["affinity"]["nodeAffinity"] = {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [line]}]}}
        if pod["metadata"]["namespace"] == "default" and draw(st.integers(0, 5)) == 0:
            claim = draw(st.sampled_from(CLAIMS))["metadata"]["name"]
            pod["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]
        if draw(st.integers(0, 5)) == 0:
            pod["spec"]["containers"][0]["ports"] = [{"containerPort": 1, "hostPort": draw(st.sampled_from([80, 81]))}]
        if draw(st.integers(0, 9)) == 0:
            pod["metadata"]["deletionTimestamp"] = "2026-03-01T08:00:00Z"
        found.append(pod)
    return found


class Drawn:
    """A generated cluster: raw for the slow check, parsed for the room."""

    def __init__(self, draw):
        self.nodes = draw(raw_nodes())
        names = [node["metadata"]["name"] for node in self.nodes]
        self.pods = draw(raw_pods(names))
        self.limits = dict.fromkeys(draw(st.sets(st.sampled_from(names), max_size=2)), 1)
        self.templates = [
            a_template("small", zones=("a", "b"), cpu="2", price=0.1, max_nodes=2),
            a_template("large", zones=("c",), cpu="6", price=0.3, labels={"rack": "9"}),
        ]
        self.at_most = draw(st.integers(0, 3))
        self.daemons = draw(st.sampled_from([[], [a_daemon_set(cpu="500m")]]))
        self.removed = draw(st.sets(st.sampled_from(names), max_size=2))
        self.most_moved = draw(st.sampled_from([0, 2, 8]))

    def world(self, shuffle=None, *, counting=False, most_moved=None):
        """`counting`: every counter is there from the start and has to follow what happens; `most_moved`: the counters
        that a placement moves, while the others are deferred."""
        nodes, pods = list(self.nodes), list(self.pods)
        if shuffle is not None:
            shuffle.shuffle(nodes)
            shuffle.shuffle(pods)
        reader = PodReader(storage=Storage.from_json(CLAIMS, VOLUMES))
        specs = []
        for node in nodes:
            name = node["metadata"]["name"]
            specs.append(NodeSpec.from_json(node, a_csi_node(self.limits[name]) if name in self.limits else None))
        parsed = reader.read_all(pods)
        world = World(specs, parsed, daemons=[reader.daemon(one) for one in self.daemons])
        world._kinds.deferred.most_moved = self.most_moved if most_moved is None else most_moved
        for pod in parsed if counting else ():
            world.kind(pod)
        return world

    def slow(self, without=()):
        nodes = [node for node in self.nodes if node["metadata"]["name"] not in without]
        placed = [(pod, pod["spec"].get("nodeName")) for pod in self.pods if pod["spec"].get("nodeName")]
        return SlowScheduler(nodes, placed, claims=CLAIMS, volumes=VOLUMES, limits=self.limits)

    def raw(self, key):
        return next(p for p in self.pods if f"{p['metadata']['namespace']}/{p['metadata']['name']}" == key)


def as_raw(node):
    taints_ = [{"key": one.key, "value": one.value, "effect": one.effect} for one in node.taints]
    offers = {name: f"{value}m" if name == "cpu" else str(value) for name, value in node.allocatable.items()}
    return {
        "metadata": {"name": node.name, "labels": dict(node.labels)},
        "spec": {"taints": taints_, "unschedulable": node.unschedulable},
        "status": {"allocatable": offers},
    }


def recheck(drawn, slow, world, packing):
    """Each placement in its order, then every pod without a place on every node. A new node is there from the first
    pod on that goes to it."""
    present = {node.name: node for node in world.nodes}
    for key, name in packing.placements.items():
        pod = drawn.raw(key)
        if name not in slow.nodes:
            slow.nodes[name] = as_raw(present[name])
            slow.placed += [(daemon_pod(one), name) for one in drawn.daemons]
        assert slow.refusal(pod, name) == "", (key, name)
        slow.placed.append((pod, name))
    for one in packing.unplaced:
        for name in slow.nodes:
            assert slow.refusal(drawn.raw(one.pod), name), (one, name)


def daemon_pod(daemon_set):
    spec = daemon_set["spec"]["template"]["spec"]
    return {"metadata": {"namespace": "kube-system", "name": "agent", "labels": {"app": "agent"}}, "spec": spec}


def state(world):
    """Everything that decides what comes next, whatever has been tried: present nodes only."""
    fleet, kinds = world.fleet, world._kinds
    there = fleet.present

    def named(counts, topology):
        values = {domain: value for value, domain in topology.domains.items()}
        return {values[domain]: count for domain, count in counts.items()}

    return {
        "nodes": [
            (node.name, [pod.key for pod in world.pods_on(node.name)], world.free(node.name)) for node in world.nodes
        ],
        "masks": {
            name: {mark: capacity.at_least(mark) & there for mark in capacity.marks}
            for name, capacity in kinds.capacities.items()
        },
        "placed": {profile.identity: dict(profile.placed) for profile in kinds._profiles.values()},
        "presences": {
            key: (one.total(), named(one.counts, one.topology), one.nodes() & there)
            for group in (kinds._presences, kinds._avoided, kinds._holders)
            for key, one in group.items()
        },
        "tallies": {
            key: (
                [one.allowed(k, 1, d) & there for k in (1, 2) for d in (1, 3)],
                named(one.counts, one.topology),
                one._sizes,
            )
            for key, one in kinds._tallies.items()
        },
        "ports": [kinds.ports._counts, {k: v & there for k, v in kinds.ports._masks.items() if v & there}],
        "stamp": world.stamp,
    }


@THOROUGH
@given(st.data())
def test_every_placement_is_feasible_and_every_refusal_is_right(data):
    drawn = Drawn(data.draw)
    world = drawn.world()
    packing = pack(world, world.pending)
    recheck(drawn, drawn.slow(), world, packing)


@THOROUGH
@given(st.data())
def test_pods_on_new_nodes_are_feasible_too(data):
    drawn = Drawn(data.draw)
    world = drawn.world()
    packing = pack(world, world.pending, templates=drawn.templates, at_most=drawn.at_most)
    assert len(packing.new_nodes) <= drawn.at_most
    recheck(drawn, drawn.slow(), world, packing)


@THOROUGH
@given(st.data())
def test_pods_of_removed_nodes_go_only_where_the_rules_let_them(data):
    drawn = Drawn(data.draw)
    world, slow = drawn.world(counting=data.draw(st.booleans())), drawn.slow(without=drawn.removed)
    displaced = [pod for name in sorted(drawn.removed) for pod in world.remove(name)]
    packing = pack(world, displaced, templates=drawn.templates, at_most=drawn.at_most)
    recheck(drawn, slow, world, packing)


@THOROUGH
@given(st.data())
def test_a_try_leaves_the_world_exactly_as_it_was(data):
    drawn = Drawn(data.draw)
    world = drawn.world(counting=True)
    attempt(world, drawn.removed, pods=world.pending, templates=drawn.templates)
    before = state(world)
    first = attempt(world, drawn.removed, pods=world.pending, templates=drawn.templates, at_most=drawn.at_most)
    assert state(world) == before
    other = drawn.world(most_moved=8)
    again = attempt(other, drawn.removed, pods=other.pending, templates=drawn.templates, at_most=drawn.at_most)
    assert again == first


@THOROUGH
@given(st.data(), st.randoms(use_true_random=False))
def test_the_order_of_what_is_given_makes_no_difference(data, shuffle):
    drawn = Drawn(data.draw)
    found = []
    for world in (drawn.world(), drawn.world(shuffle)):
        templates = drawn.templates if not found else drawn.templates[::-1]
        found.append(attempt(world, drawn.removed, pods=world.pending, templates=templates, at_most=drawn.at_most))
    assert found[0] == found[1]
