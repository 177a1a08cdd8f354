"""Raw Kubernetes objects through the parsers of lists: fields missing, null, empty, of another type, as text.

Each input is a list of a good object and a changed one. What is held: the good one is read as ever, the changed one is
read or refused in one sentence that names it, and each field of the result has the type that it declares."""

import copy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from fuzz.mutations import odd_value
from fuzz.reduction import smaller_json
from fuzz.target import Disagreement, Target
from leeward.adapters.kubernetes import bodies
from leeward.disruption.do_not_disrupt import pod_opt_outs
from leeward.errors import InvalidInputError
from leeward.model.attachment import VolumeAttachment, claims_of
from leeward.model.load_balancing import Service
from leeward.model.node import Node
from leeward.model.node_condition import NodeCondition
from leeward.model.pod import Deployment, Pod, PodDisruptionBudget
from leeward.scheduling.nodes import NodeSpec
from leeward.scheduling.pods import PodReader
from leeward.upgrade.terminations import Slice

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
BORN = "2026-04-01T08:00:00Z"
META = {"name": "web-1", "namespace": "shop", "uid": "u", "resourceVersion": "1", "creationTimestamp": BORN}
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_LINE = {"key": "app", "operator": "In", "values": ["web"]}
_SELECTOR = {"matchLabels": {"app": "web"}, "matchExpressions": [_LINE]}
_TERM = {"labelSelector": _SELECTOR, "topologyKey": "zone", "namespaces": ["shop"], "namespaceSelector": {}}
_OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "r", "controller": True}
_CONDITION = {"type": "Ready", "status": "False", "reason": "KubeletNotReady", "lastTransitionTime": BORN}
_AMOUNTS = {"cpu": "500m", "memory": "1Gi"}
OBJECTS: Mapping[str, dict[str, Any]] = {
    "pod": {
        "metadata": {
            **META,
            "labels": {"app": "web"},
            "annotations": {"karpenter.sh/do-not-disrupt": "1h", "leeward.dev/disruption-window": "0 1 * * */1h"},
            "ownerReferences": [_OWNER],
            "finalizers": ["a/b"],
            "deletionTimestamp": BORN,
        },
        "spec": {
            "nodeName": "n1",
            "priority": 5,
            "priorityClassName": "high",
            "terminationGracePeriodSeconds": 30,
            "hostNetwork": False,
            "nodeSelector": {"arch": "amd64"},
            "schedulingGates": [{"name": "g"}],
            "overhead": {"cpu": "1m"},
            "containers": [{"name": "c", "resources": {"requests": _AMOUNTS}, "ports": [{"hostPort": 1}]}],
            "initContainers": [{"name": "i", "restartPolicy": "Always", "resources": {"requests": _AMOUNTS}}],
            "tolerations": [{"key": "a", "operator": "Exists", "effect": "NoSchedule"}],
            "affinity": {
                "nodeAffinity": {
                    _REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [_LINE], "matchFields": [_LINE]}]},
                    _PREFERRED: [{"weight": 1, "preference": {"matchExpressions": [_LINE]}}],
                },
                "podAffinity": {_REQUIRED: [_TERM], _PREFERRED: [{"weight": 1, "podAffinityTerm": _TERM}]},
                "podAntiAffinity": {_REQUIRED: [_TERM]},
            },
            "topologySpreadConstraints": [
                {"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": _SELECTOR}
            ],
            "volumes": [
                {"name": "v", "persistentVolumeClaim": {"claimName": "c"}},
                {"name": "e", "ephemeral": {}},
                {"name": "d", "emptyDir": {}},
            ],
        },
        "status": {"phase": "Running", "startTime": BORN, "conditions": [{"type": "Ready", "status": "True"}]},
    },
    "node": {
        "metadata": {**META, "labels": {"zone": "a"}, "annotations": {"a": "b"}, "finalizers": ["a/b"]},
        "spec": {
            "providerID": "aws:///us-east-1a/i-0a",
            "unschedulable": True,
            "taints": [{"key": "a", "value": "b", "effect": "NoSchedule", "timeAdded": BORN}],
        },
        "status": {
            "capacity": {"cpu": "2", "memory": "8Gi", "pods": "58"},
            "allocatable": {"cpu": "1930m", "memory": "7Gi", "pods": "58"},
            "conditions": [_CONDITION, {**_CONDITION, "type": "DiskPressure", "status": "True"}],
            "nodeInfo": {"kubeletVersion": "v1.31.4-eks-0a1b2c3", "bootID": "b"},
        },
    },
    "budget": {
        "metadata": META,
        "spec": {"selector": _SELECTOR, "minAvailable": "50%", "unhealthyPodEvictionPolicy": "AlwaysAllow"},
        "status": {"disruptionsAllowed": 1, "currentHealthy": 3, "desiredHealthy": 2, "expectedPods": 3},
    },
    "attachment": {
        "metadata": {**META, "deletionTimestamp": BORN},
        "spec": {"nodeName": "n1", "source": {"persistentVolumeName": "pv-1"}},
        "status": {"attached": True, "detachError": {"message": "m"}},
    },
    "deployment": {
        "metadata": {**META, "generation": 2},
        "spec": {"replicas": 1, "strategy": {"type": "Recreate"}},
        "status": {"observedGeneration": 2, "updatedReplicas": 1, "replicas": 1, "availableReplicas": 1},
    },
    "volume": {
        "metadata": {**META, "labels": {"topology.kubernetes.io/zone": "a"}},
        "spec": {"claimRef": {"namespace": "shop", "name": "c"}, "csi": {"driver": "ebs.csi.aws.com"}},
        "status": {"phase": "Bound"},
    },
    "service": {"metadata": META, "spec": {"type": "LoadBalancer"}},
    "slice": {
        "metadata": {**META, "labels": {"kubernetes.io/service-name": "web"}},
        "endpoints": [{"nodeName": "n1", "conditions": {"ready": True}}],
    },
}
_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "str": str,
    "int": int,
    "bool": bool,
    "datetime": datetime,
    "datetime | None": (datetime, type(None)),
    "Mapping[str, str]": dict,
    "tuple[str, ...]": tuple,
    "int | str | None": (int, str, type(None)),
}


class Objects(Target[dict[str, Any]]):
    """Raw object of a kind, some of its fields changed."""

    name = "objects"
    goal = 1_000_000
    short = 6_000

    def generate(self, chance: Random) -> dict[str, Any]:
        """Return a kind and an object of it."""
        kind = chance.choice((*("pod", "node") * 3, *OBJECTS))
        raw: Any = copy.deepcopy(OBJECTS[kind])
        for _ in range(chance.choice((1, 1, 2, 3))):
            places = list(_places(raw))
            if places:
                _change(chance, *chance.choice(places))
        return {"kind": kind, "raw": raw}

    def check(self, value: dict[str, Any]) -> None:
        """Parse the object beside a good one, and ask what decisions ask of it."""
        kind, parse = value["kind"], _PARSERS[value["kind"]]
        items = []
        for raw in (OBJECTS[kind], value["raw"]):
            try:
                items.append(parse(raw))
            except InvalidInputError as error:
                if _named(raw) or "\n" in str(error):
                    raise Disagreement(f"refusal: found {str(error)[:200]!r} for an object with a name") from error
        if not items or items[0] != parse(OBJECTS[kind]):
            raise Disagreement(f"{kind}: found {items[:1]}, expected the good object as ever")
        for item in items:
            _hold_types(item)

    def smaller(self, value: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield objects with one part less."""
        return ({**value, "raw": raw} for raw in smaller_json(value["raw"]) if isinstance(raw, dict))


def _pod(raw: Mapping[str, Any]) -> Pod:
    pod, reader = Pod.from_json(raw), PodReader()
    list(pod_opt_outs(pod, NOW))
    pod.tolerates("a", "b", "NoSchedule")
    PodDisruptionBudget.from_json(OBJECTS["budget"]).selects(pod)
    try:
        spec = reader.read(raw)
    except InvalidInputError as error:
        spec = reader.unread(raw, error)
    if (spec.namespace, spec.name, spec.node) != (pod.namespace, pod.name, pod.node):
        raise Disagreement(f"pod: found {spec.key} on {spec.node!r}, expected {pod.key} on {pod.node!r}")
    if spec.identity.leaving != bool(raw["metadata"].get("deletionTimestamp")):
        raise Disagreement(f"leaving: found {spec.identity.leaving}, expected otherwise")
    return pod


def _node(raw: Mapping[str, Any]) -> Node:
    node = Node.from_json(raw)
    bodies.node_patch(node, node)
    try:
        spec = NodeSpec.from_json(raw)
    except InvalidInputError:
        spec = NodeSpec.unread(raw)
    if spec.name != node.name or spec.labels != node.labels:
        raise Disagreement(f"node: found {spec.name} {spec.labels}, expected {node.name} {node.labels}")
    if node.ready == (node.not_ready_since is not None):
        raise Disagreement(f"ready: found {node.ready} and not ready since {node.not_ready_since}")
    _ = node.instance_id, node.not_ready_since is not None and NOW - node.not_ready_since > timedelta(minutes=1)
    return node


def _budget(raw: Mapping[str, Any]) -> PodDisruptionBudget:
    budget = PodDisruptionBudget.from_json(raw)
    budget.selects(Pod.from_json(OBJECTS["pod"]))
    _ = budget.never_allows
    return budget


def _volume(raw: Mapping[str, Any]) -> dict[str, Any]:
    claims_of([raw])
    return bodies.volume(raw)


_PARSERS: Mapping[str, Callable[[Mapping[str, Any]], Any]] = {
    "pod": _pod,
    "node": _node,
    "budget": _budget,
    "attachment": VolumeAttachment.from_json,
    "deployment": Deployment.from_json,
    "volume": _volume,
    "service": Service.from_json,
    "slice": Slice.from_json,
}


def _named(raw: Any) -> bool:
    meta = raw.get("metadata") if isinstance(raw, dict) else None
    return isinstance(meta, dict) and isinstance(meta.get("name"), str) and meta["name"] != ""


def _hold_types(item: Any) -> None:
    if not is_dataclass(item):
        return
    for field in fields(item):
        value, declared = getattr(item, field.name), str(field.type if isinstance(field.type, str) else "")
        declared = declared or getattr(field.type, "__name__", str(field.type))
        expected = _TYPES.get(declared)
        if expected is not None and not isinstance(value, expected):
            raise Disagreement(f"{type(item).__name__}.{field.name}: found {value!r:.80}, expected {declared}")
        if declared == "Mapping[str, str]" and not all(isinstance(one, str) for one in value.values()):
            raise Disagreement(f"{type(item).__name__}.{field.name}: found {value!r:.80}, expected texts")
        for one in value if isinstance(value, tuple) else ():
            if isinstance(one, NodeCondition):
                _hold_types(one)


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield (container, key) of every part."""
    for key in list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield value, key
        yield from _places(value[key])


def _change(chance: Random, container: Any, key: Any) -> None:
    value = container[key]
    match chance.randrange(9):
        case 0:
            del container[key]
        case 1 | 2:
            container[key] = None
        case 3:
            container[key] = type(value)() if value is not None else ""
        case 4:
            container[key] = str(value)
        case 5:
            container[key] = chance.choice(([], {}, "", 0, -1, True, 1.5, 10**30, [None], {"": None}, "x", [[]], [""]))
        case 6:
            container[key] = [value, None, 5]
        case _:
            container[key] = odd_value(chance, value)
