"""The scheduling room and the local cluster's own scheduler, written apart from each other, over generated clusters.

Each is asked, step by step, which nodes would do for the pod that comes next: first in the order and with the choices
of the one, then of the other. What one places the other must find feasible. Left to themselves they may place other
pods than each other; each such pod belongs to a class that docs/designs/scheduling.md explains.
"""

import sys
from collections import Counter
from dataclasses import dataclass, field

import pytest

from leeward.scheduling.fleet import numbers
from leeward.scheduling.nodes import NodeSpec
from leeward.scheduling.packing import Packer, Way, pack
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
from tests.unit.scheduling.raw import PREFERRED, ZONE

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

    def as_scheduled(self):
        """What it would place if it went kube-scheduler's way from the start."""
        with self.world.trial():
            packer = Packer(self.world, (), None, Way.AS_SCHEDULED)
            packer.run(packer.ordered(self.world.pending), whole=False)
            return list(packer.result().placements.items())


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
            name = {} if scheduling else {"schedulerName": "absent"}
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


FITS_ALL = "gathering the pods finds a place for every one"
NO_WAY = "gathered; what is left over fits in no way"
WISHES = "wishes (ScheduleAnyway, preferred affinity) are followed one by one; theirs are one sum of points"


@dataclass(slots=True)
class Findings:
    """What was compared, and where the two differ. `more` and `fewer`: pods that only ours and only theirs places."""

    asked: int = 0
    placed: Counter = field(default_factory=Counter)
    impossible: list = field(default_factory=list)
    different: list = field(default_factory=list)
    more: Counter = field(default_factory=Counter)
    fewer: Counter = field(default_factory=Counter)
    unexplained: list = field(default_factory=list)

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

    def classify(self, seed, scene, ours, theirs):
        """Each pod that only one of them places."""
        mine, others = dict(ours), dict(theirs)
        scheduled = Ours(scene).as_scheduled()
        gathered = FITS_ALL if len(mine) == len(Ours(scene).pods) else NO_WAY
        why = WISHES if scheduled == ours else gathered
        self.more[why] += len(mine.keys() - others.keys())
        self.fewer[why] += len(others.keys() - mine.keys())
        parted = next((a for a, b in zip(scheduled, theirs, strict=False) if a != b), None)
        if parted is not None and not has_preferences(scene, parted[0]):
            self.unexplained.append((seed, parted))

    def lines(self):
        """The counts by class, for people."""
        yield f"{self.asked:,} questions, {len(self.different)} answered otherwise; placed: {dict(self.placed)}"
        for why in (WISHES, FITS_ALL, NO_WAY):
            yield f"  only ours {self.more[why]}, only theirs {self.fewer[why]}: {why}"


def has_preferences(scene, key):
    """Whether the pod has wishes of its own: ScheduleAnyway, preferred affinity or anti-affinity."""
    spec = next(pod for pod in scene.pods if "/".join((pod["metadata"]["namespace"], name_of(pod))) == key)["spec"]
    soft = any(one["whenUnsatisfiable"] == "ScheduleAnyway" for one in spec["topologySpreadConstraints"])
    return soft or any(PREFERRED in kind for kind in spec["affinity"].values())


def compared(count):
    found = Findings()
    for seed in range(count):
        scene = generated(seed)
        ours, theirs = Ours(scene).choices(), Theirs(scene, scheduling=True).choices()
        found.placed.update(ours=len(ours), theirs=len(theirs))
        for placements in (ours, theirs):
            found.replay(seed, scene, placements)
        found.classify(seed, scene, ours, theirs)
    return found


def check(found, clusters):
    assert found.placed["ours"] > 5 * clusters, "the generated clusters place next to nothing"
    assert found.impossible == []
    assert found.different == []
    assert found.unexplained == []
    assert found.placed["ours"] >= found.placed["theirs"]
    differing = found.more.total() + found.fewer.total()
    assert differing <= found.placed.total() / 100, list(found.lines())


def test_the_two_schedulers_agree_on_fifty_clusters():
    check(compared(50), 50)


@pytest.mark.long
def test_the_two_schedulers_agree_on_a_thousand_clusters(capsys):
    found = compared(1000)
    with capsys.disabled():
        sys.stdout.write("\n".join(("", *found.lines(), "")))
    check(found, 1000)
