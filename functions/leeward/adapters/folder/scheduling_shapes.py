"""Shapes of the snapshot data that pod placement reads: requests, affinity, spread, storage classes, attach limits."""

from collections.abc import Mapping

from leeward.adapters.folder.shapes import Shape, integer, list_of, mapping_of, name, quantity, record, text, word
from leeward.adapters.folder.template_shapes import number

_AMOUNTS = mapping_of(quantity)
_RESOURCES = record({}, {"requests": _AMOUNTS, "limits": _AMOUNTS})
_PORT = record({}, {"hostPort": integer, "containerPort": integer, "protocol": text, "hostIP": text})
CONTAINER = record({}, {"resources": _RESOURCES, "ports": list_of(_PORT), "restartPolicy": text})
_NODE_EXPRESSION = record(
    {"key": name, "operator": word("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")}, {"values": list_of(text)}
)
_NODE_TERM = record({}, {"matchExpressions": list_of(_NODE_EXPRESSION), "matchFields": list_of(_NODE_EXPRESSION)})
_NODE_AFFINITY = record(
    {},
    {
        "requiredDuringSchedulingIgnoredDuringExecution": record({}, {"nodeSelectorTerms": list_of(_NODE_TERM)}),
        "preferredDuringSchedulingIgnoredDuringExecution": list_of(
            record({"weight": integer, "preference": _NODE_TERM})
        ),
    },
)
_EXPRESSION = record(
    {"key": name, "operator": word("In", "NotIn", "Exists", "DoesNotExist")}, {"values": list_of(text)}
)
SELECTOR = record({}, {"matchLabels": mapping_of(text), "matchExpressions": list_of(_EXPRESSION)})
_TERM = record(
    {"topologyKey": name},
    {
        "labelSelector": SELECTOR,
        "namespaceSelector": SELECTOR,
        "namespaces": list_of(text),
        "matchLabelKeys": list_of(text),
        "mismatchLabelKeys": list_of(text),
    },
)
_POD_AFFINITY = record(
    {},
    {
        "requiredDuringSchedulingIgnoredDuringExecution": list_of(_TERM),
        "preferredDuringSchedulingIgnoredDuringExecution": list_of(
            record({"weight": integer, "podAffinityTerm": _TERM})
        ),
    },
)
_SPREAD = record(
    {"topologyKey": name},
    {
        "maxSkew": integer,
        "minDomains": integer,
        "whenUnsatisfiable": text,
        "labelSelector": SELECTOR,
        "matchLabelKeys": list_of(text),
        "nodeAffinityPolicy": text,
        "nodeTaintsPolicy": text,
    },
)
POD_NEEDS = {
    "containers": list_of(CONTAINER),
    "initContainers": list_of(CONTAINER),
    "overhead": _AMOUNTS,
    "resources": _RESOURCES,
    "priority": integer,
    "affinity": record(
        {}, {"nodeAffinity": _NODE_AFFINITY, "podAffinity": _POD_AFFINITY, "podAntiAffinity": _POD_AFFINITY}
    ),
    "topologySpreadConstraints": list_of(_SPREAD),
}
NODE_AMOUNTS = {"capacity": _AMOUNTS, "allocatable": _AMOUNTS}
CSI_NODE_SPEC = record(
    {}, {"drivers": list_of(record({"name": name}, {"allocatable": record({}, {"count": integer})}))}
)
_TOPOLOGY = record({}, {"matchLabelExpressions": list_of(record({"key": name, "values": list_of(text)}))})
STORAGE_CLASS = {"provisioner": text, "volumeBindingMode": text, "allowedTopologies": list_of(_TOPOLOGY)}
PRICES = record({}, {"on-demand": mapping_of(number), "spot": mapping_of(mapping_of(number))})


def pod_template(needs: Mapping[str, Shape]) -> Shape:
    """Return the shape of a DaemonSet's spec whose pods have these needs."""
    return record({}, {"template": record({}, {"spec": record({}, needs)})})
