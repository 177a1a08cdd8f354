"""Shapes of the Kubernetes fields that are read, as `kubectl get -o json` prints them."""

from leeward.adapters.folder.place_shapes import POD_PLACE
from leeward.adapters.folder.scheduling_shapes import NODE_AMOUNTS, POD_NEEDS, pod_template
from leeward.adapters.folder.shapes import (
    Shape,
    anything,
    boolean,
    instant,
    integer,
    list_of,
    mapping_of,
    name,
    record,
    seconds,
    text,
    word,
)
from leeward.adapters.folder.template_shapes import every
from leeward.adapters.folder.upgrade_shapes import BUDGET_SPEC, BUDGET_STATUS, KUBELET

_TEXTS = mapping_of(text)
_META = record(
    {"name": name},
    {
        "namespace": name,
        "uid": text,
        "resourceVersion": text,
        "labels": _TEXTS,
        "annotations": _TEXTS,
        "creationTimestamp": instant,
        "deletionTimestamp": instant,
        "finalizers": list_of(text),
        "ownerReferences": list_of(record({"kind": name, "name": name}, {"apiVersion": text, "controller": boolean})),
    },
)
_CONDITIONS = list_of(record({}, {"type": text, "status": text}))
_TAINT = record({"key": name}, {"effect": text, "value": text})
_TOLERATION = record({}, {"key": text, "operator": text, "value": text, "effect": text})
_VOLUME = record({}, {"persistentVolumeClaim": record({"claimName": name})})
_EXPRESSION = record(
    {"key": name, "operator": word("In", "NotIn", "Exists", "DoesNotExist")}, {"values": list_of(text)}
)
_LABEL_SELECTOR = record({}, {"matchLabels": _TEXTS, "matchExpressions": list_of(_EXPRESSION)})


def kubernetes_object(kind: str, spec: Shape = anything, status: Shape = anything) -> Shape:
    """Return the shape of an object of the kind, with the fields that every object has."""
    return record({"metadata": _META}, {"kind": word(kind), "spec": spec, "status": status})


NODE = kubernetes_object(
    "Node",
    record({}, {"providerID": text, "unschedulable": boolean, "taints": list_of(_TAINT)}),
    record({}, {"conditions": _CONDITIONS, "nodeInfo": KUBELET, **NODE_AMOUNTS}),
)
POD = kubernetes_object(
    "Pod",
    record(
        {},
        {
            "nodeName": text,
            "priorityClassName": text,
            "terminationGracePeriodSeconds": seconds,
            "tolerations": list_of(_TOLERATION),
            "volumes": list_of(_VOLUME),
            **POD_PLACE,
            **POD_NEEDS,
        },
    ),
    record({}, {"phase": text, "startTime": instant, "conditions": _CONDITIONS}),
)
BUDGET = kubernetes_object(
    "PodDisruptionBudget",
    every(record({}, {"selector": _LABEL_SELECTOR, "unhealthyPodEvictionPolicy": text}), BUDGET_SPEC),
    every(
        record({}, {"disruptionsAllowed": integer, "currentHealthy": integer, "desiredHealthy": integer}),
        BUDGET_STATUS,
    ),
)
POD_TEMPLATE = pod_template({**POD_NEEDS, "tolerations": list_of(_TOLERATION)})
