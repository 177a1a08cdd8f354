"""The scheduling room and the local cluster's own scheduler, written apart from each other, over generated clusters.

Each is asked, step by step, which nodes would do for the pod that comes next: first in the order and with the choices
of the one, then of the other. What one places the other must find feasible.
"""

from collections import Counter
from dataclasses import dataclass, field

import pytest

from leeward.scheduling.fleet import numbers
from leeward.scheduling.nodes import NodeSpec
from leeward.scheduling.packing import pack
from leeward.scheduling.pods import PodReader
from leeward.scheduling.volumes import Storage
from leeward.scheduling.world import World
from local.cluster.model import Cluster
from local.cluster.objects import labels_of, name_of
from local.cluster.quantities import pod_requests
from local.cluster.scheduling.affinity import AffinityRules
from local.cluster.scheduling.feasibility import host_ports, ports_clash, refusal
from local.cluster.scheduling.spread import SpreadRules
from local.cluster.scheduling.usage import NodeUsage
from local.cluster.scheduling.volumes import VolumeRules
from local.cluster.volumes import provision
from tests.unit.scheduling.generated import generated
from tests.unit.scheduling.raw import ZONE

START = 1_767_600_000.0


class Ours:
    """The room, step by step."""

    def __init__(self, scene):
        self.scene = scene
        storage = Storage.from_json(scene.claims, scene.volumes, scene.classes)
        reader = PodReader(namespaces={"default": {"app": "red"}, "shop": {"app": "blue"}}, storage=storage)
        self.world = World([NodeSpec.from_json(node) for node in scene.nodes], reader.read_all(scene.pods))
        self.pods = {pod.key: pod for pod in self.world.pending}

    def feasible(self, key):
        kind = self.world.kind(self.pods[key])
        fleet = self.world.fleet
        return {fleet.nodes[number].name for number in numbers(self.world.feasible(kind, fleet.present))}

    def bind(self, key, node):
        pod = self.pods[key]
        self.world.put(pod, self.world.kind(pod), self.world.fleet.numbers[node])

    def choices(self):
        """Its own placements, in their order."""
        with self.world.trial():
            return list(pack(self.world, self.world.pending).placements.items())


class Theirs:
    """The local cluster, its scheduler's filters asked one by one."""

    def __init__(self, scene, *, scheduling):
        self.cluster = Cluster(clock=lambda: START)
        self.usage = NodeUsage()
        self.bound = []
        self.cluster.observe(self._observe)
        self.cluster.create("namespaces", {"metadata": {"name": "shop", "labels": {"app": "blue"}}})
        objects = {
            "StorageClass": scene.classes,
            "PersistentVolume": scene.volumes,
            "PersistentVolumeClaim": scene.claims,
            "Node": scene.nodes,
        }
        for kind, raws in objects.items():
            for raw in raws:
                self.cluster.install({"kind": kind, **raw})
        for raw in scene.pods:
            name = {} if scheduling else {"schedulerName": "nobody"}
            self.cluster.install({"kind": "Pod", **raw, "spec": {**raw["spec"], **name}})

    def _observe(self, change):
        if change.resource == "nodes":
            self.usage.observe_node(change)
        elif change.resource == "pods":
            self.usage.observe(change)
            node = change.obj["spec"].get("nodeName")
            if node and change.old is not None and not change.old["spec"].get("nodeName"):
                meta = change.obj["metadata"]
                self.bound.append((f"{meta['namespace']}/{meta['name']}", node))

    def choices(self):
        """Its own placements, in their order."""
        self.cluster.step(START)
        return self.bound

    def feasible(self, key):
        space, name = key.split("/")
        pod, store = self.cluster.store.find("pods", name, space), self.cluster.store
        volumes = VolumeRules(pod, store)
        if volumes.problem:
            return set()
        rules = [volumes, SpreadRules(pod, store, self.usage.placed)]
        rules.append(AffinityRules(pod, store, self.usage.placed, self.usage.repelling))
        return {name_of(node) for node in store.each("nodes") if not self._refusal(pod, node, rules)}

    def _refusal(self, pod, node, rules):
        name = name_of(node)
        if ports_clash(host_ports(pod), self.usage.ports(name)):
            return "ports"
        alone = refusal(pod, node, pod_requests(pod), self.usage.free(name))
        return alone or next((why for rule in rules if (why := rule.refusal(node))), None)

    def bind(self, key, node):
        space, name = key.split("/")
        pod, store = self.cluster.store.find("pods", name, space), self.cluster.store
        for claim in VolumeRules(pod, store).unbound:
            provision(self.cluster.world, claim, labels_of(store.find("nodes", node))[ZONE])
        self.cluster.bind(name, node, space)


@dataclass(slots=True)
class Findings:
    """What was compared, and where the two differ."""

    asked: int = 0
    placed: Counter = field(default_factory=Counter)
    impossible: list = field(default_factory=list)
    different: list = field(default_factory=list)

    def replay(self, seed, scene, placements):
        """Both take the same steps; each says before each of them which nodes would do."""
        ours, theirs = Ours(scene), Theirs(scene, scheduling=False)
        for key, node in placements:
            mine, others = ours.feasible(key), theirs.feasible(key)
            self.asked += 1
            if node not in mine & others:
                self.impossible.append((seed, key, node))
            if mine != others:
                self.different.append((seed, key, mine ^ others))
            ours.bind(key, node)
            theirs.bind(key, node)
        for key in ours.pods.keys() - dict(placements).keys():
            self.asked += 1
            if ours.feasible(key) != theirs.feasible(key):
                self.different.append((seed, key, "left over"))


def compared(count):
    found = Findings()
    for seed in range(count):
        scene = generated(seed)
        for who, placements in (
            ("ours", Ours(scene).choices()),
            ("theirs", Theirs(scene, scheduling=True).choices()),
        ):
            found.placed[who] += len(placements)
            found.replay(seed, scene, placements)
    return found


def check(found, clusters):
    assert found.placed["ours"] > 5 * clusters, "the generated clusters place next to nothing"
    assert found.impossible == []
    assert len(found.different) <= found.asked / 100, found.different[:5]


def test_the_two_schedulers_agree_on_fifty_clusters():
    check(compared(50), 50)


@pytest.mark.long
def test_the_two_schedulers_agree_on_a_thousand_clusters():
    check(compared(1000), 1000)
