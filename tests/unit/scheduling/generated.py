"""Random clusters for comparing schedulers: every rule in use, rooms tight enough that much is refused."""

import random
from dataclasses import dataclass

from local.cluster.objects import name_of
from tests.unit.scheduling.raw import (
    HOST,
    PREFERRED,
    REQUIRED,
    ZONE,
    a_claim,
    a_class,
    a_line,
    a_node,
    a_pod,
    a_taint,
    a_term,
    a_volume,
    selecting,
)

ZONES, APPS, KEYS, SPACES = "abc", ("web", "db", "log"), (ZONE, HOST, "rack"), ("default", "shop")
READY = [{"type": "Ready", "status": "True"}]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """One generated cluster, raw."""

    nodes: list
    pods: list
    claims: list
    volumes: list

    @property
    def classes(self):
        return [a_class(), a_class("gp3-ab", zones=["a", "b"])]


def generated(seed):
    """The same seed, the same cluster."""
    dice = random.Random(seed)
    nodes = [_node(dice, at) for at in range(dice.randint(2, 10))]
    claims = [a_claim(f"bound-{zone}", volume=f"pv-{zone}") for zone in ZONES]
    pods = [_pod(dice, at, nodes, claims) for at in range(dice.randint(4, 30))]
    volumes = [a_volume(f"pv-{zone}", zone=zone) for zone in ZONES]
    return Scene(nodes=nodes, pods=pods, claims=claims, volumes=volumes)


def _node(dice, at):
    cordoned = dice.random() < 0.05
    taints = [a_taint(dice.choice(["team", "gpu"]), effect=dice.choice(["NoSchedule", "PreferNoSchedule"]))]
    taints = taints if dice.random() < 0.2 else []
    if cordoned:
        taints.append({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"})
    node = a_node(
        f"n{at}",
        zone=dice.choice(ZONES),
        cpu=str(dice.randint(1, 8)),
        pods=str(dice.randint(3, 12)),
        labels=dice.choice([{}, {"rack": "1"}, {"rack": "2", "gen": "5"}, {"gen": "4"}]),
        taints=taints,
        cordoned=cordoned,
    )
    node["status"]["conditions"] = READY
    return node


def _pod(dice, at, nodes, claims):
    pod = a_pod(
        f"p{at}",
        app=dice.choice(APPS),
        namespace=dice.choice(SPACES),
        node=dice.choice(nodes)["metadata"]["name"] if dice.random() < 0.25 else "",
        cpu=dice.choice(["500m", "1", "1500m", "0"]),
        labels={"revision": dice.choice("12")},
        priority=dice.choice([0, 0, 10]),
        tolerations=[{"key": "team", "operator": "Exists"}] if dice.random() < 0.2 else [],
        topologySpreadConstraints=[_constraint(dice) for _ in range(dice.choice([0, 0, 1, 1, 2]))],
    )
    pod["status"] = {"phase": "Pending"}
    pod["metadata"]["creationTimestamp"] = f"2026-01-05T08:00:{at:02}Z"
    pod["spec"]["affinity"] = _affinity(dice)
    if dice.random() < 0.2:
        pod["spec"]["nodeSelector"] = {"gen": dice.choice("45")}
    if dice.random() < 0.15:
        pod["spec"]["containers"][0]["ports"] = [{"containerPort": 1, "hostPort": dice.choice([80, 81])}]
    if dice.random() < 0.25:
        pod["spec"]["initContainers"] = [_init(dice), _init(dice)]
    if dice.random() < 0.25:
        _give_claim(dice, pod, claims)
    return pod


def _init(dice):
    always = {"restartPolicy": "Always"} if dice.random() < 0.5 else {}
    return {"name": "init", "resources": {"requests": {"cpu": dice.choice(["100m", "2"])}}, **always}


def _give_claim(dice, pod, claims):
    """A bound one of the default namespace, or one of its own that waits for its first pod."""
    name = f"bound-{dice.choice(ZONES)}"
    if pod["metadata"]["namespace"] != "default" or dice.random() < 0.4:
        name, space = f"own-{name_of(pod)}", pod["metadata"]["namespace"]
        claims.append(a_claim(name, namespace=space, storage_class=dice.choice(["gp3", "gp3-ab"])))
    pod["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]


def _constraint(dice):
    hard = dice.random() < 0.75
    found = {
        "topologyKey": dice.choice(KEYS),
        "maxSkew": dice.randint(1, 2),
        "whenUnsatisfiable": "DoNotSchedule" if hard else "ScheduleAnyway",
        "labelSelector": {} if dice.random() < 0.05 else selecting(dice.choice(APPS)),
    }
    if hard and dice.random() < 0.2:
        found["minDomains"] = dice.randint(1, 4)
    for policy in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        if dice.random() < 0.2:
            found[policy] = dice.choice(["Honor", "Ignore"])
    if dice.random() < 0.2:
        found["matchLabelKeys"] = ["revision"]
    return found


def _affinity(dice):
    found = {}
    if dice.random() < 0.2:
        line = dice.choice(
            [
                a_line(ZONE, "In", "a", "b"),
                a_line(ZONE, "NotIn", "a"),
                a_line("gen", "Gt", "4"),
                a_line("rack", "Exists"),
            ]
        )
        found["nodeAffinity"] = {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [line]}]}}
    for kind in ("podAffinity", "podAntiAffinity"):
        if dice.random() < 0.2:
            found[kind] = {REQUIRED: [_term(dice) for _ in range(dice.choice([1, 1, 2]))]}
        elif dice.random() < 0.1:
            found[kind] = {PREFERRED: [{"weight": 5, "podAffinityTerm": _term(dice)}]}
    return found


def _term(dice):
    more = dice.choice(
        [{}, {}, {}, {"namespaces": ["shop"]}, {"namespaceSelector": {}}, {"namespaceSelector": selecting("blue")}]
    )
    keys = {"matchLabelKeys": ["revision"]} if dice.random() < 0.2 else {}
    return a_term(dice.choice(KEYS), dice.choice(APPS), **more, **keys)
