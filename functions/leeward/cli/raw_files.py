"""The files of a snapshot folder: their names, the command each one comes from, and the shape of what is read of it.

Decides how a file is opened and taken apart; what the objects mean is the models' business."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leeward.cli.attachment_shapes import ATTACHMENT_SPEC, ATTACHMENT_STATUS, VOLUME_SPEC
from leeward.cli.place_shapes import CLAIM_SPEC, DAEMON_SET_SPEC, POD_PLACE, SUBNET
from leeward.cli.scheduling_shapes import CSI_NODE_SPEC, NODE_AMOUNTS, POD_NEEDS, PRICES, STORAGE_CLASS, pod_template
from leeward.cli.shapes import (
    Shape,
    ShapeError,
    anything,
    boolean,
    inside,
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
from leeward.cli.template_shapes import (
    GROUP_LAUNCH,
    INSTANCE_TYPE,
    LAUNCH_CONFIGURATION,
    LAUNCH_TEMPLATE_VERSION,
    NODEGROUP,
    every,
)
from leeward.cli.upgrade_shapes import BUDGET_SPEC, BUDGET_STATUS, CLUSTER, GROUP_RECORD, KUBELET
from leeward.errors import InvalidInputError
from leeward.policy.fields import shown

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
_TAGS = list_of(record({"Key": name}, {"Value": text}))


def _object(kind: str, spec: Shape = anything, status: Shape = anything) -> Shape:
    return record({"metadata": _META}, {"kind": word(kind), "spec": spec, "status": status})


_NODE = _object(
    "Node",
    record({}, {"providerID": text, "unschedulable": boolean, "taints": list_of(_TAINT)}),
    record({}, {"conditions": _CONDITIONS, "nodeInfo": KUBELET, **NODE_AMOUNTS}),
)
_POD = _object(
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
_BUDGET = _object(
    "PodDisruptionBudget",
    every(record({}, {"selector": _LABEL_SELECTOR, "unhealthyPodEvictionPolicy": text}), BUDGET_SPEC),
    every(
        record({}, {"disruptionsAllowed": integer, "currentHealthy": integer, "desiredHealthy": integer}),
        BUDGET_STATUS,
    ),
)
_INSTANCE = record(
    {"InstanceId": name},
    {
        "State": record({"Name": name}),
        "InstanceType": text,
        "Placement": record({}, {"AvailabilityZone": text}),
        "SubnetId": text,
        "InstanceLifecycle": text,
        "Tags": _TAGS,
        "LaunchTime": instant,
    },
)
_SPREAD = record({}, {"OnDemandPercentageAboveBaseCapacity": integer, "OnDemandBaseCapacity": integer})
_GROUP = record(
    {"AutoScalingGroupName": name},
    {
        "Tags": _TAGS,
        "MinSize": integer,
        "MaxSize": integer,
        "DesiredCapacity": integer,
        "AvailabilityZones": list_of(text),
        "VPCZoneIdentifier": text,
        "Instances": list_of(record({"InstanceId": name}, {"AvailabilityZone": text, "LifecycleState": text})),
        "CapacityRebalance": boolean,
        "MixedInstancesPolicy": record({}, {"InstancesDistribution": _SPREAD}),
    },
)
_HOOK = record(
    {"LifecycleHookName": name, "AutoScalingGroupName": name},
    {
        "LifecycleTransition": text,
        "HeartbeatTimeout": seconds,
        "NotificationTargetARN": text,
        "NotificationMetadata": text,
    },
)
_LAUNCHING_GROUP = every(_GROUP, GROUP_LAUNCH, GROUP_RECORD)
_POD_TEMPLATE = pod_template({**POD_NEEDS, "tolerations": list_of(_TOLERATION)})
_OBJECT = record({})


@dataclass(frozen=True, slots=True, kw_only=True)
class RawFile:
    """One file: `NAME.json`, the output of `command`; `keys` lead to its elements, lists at every step."""

    name: str
    command: str
    keys: tuple[str, ...] = ("items",)
    shape: Shape = _OBJECT


FILES: Mapping[str, RawFile] = {
    file.name: file
    for file in (
        RawFile(name="nodes", command="kubectl get nodes -o json", shape=_NODE),
        RawFile(name="pods", command="kubectl get pods -A -o json", shape=_POD),
        RawFile(name="pdbs", command="kubectl get pdb -A -o json", shape=_BUDGET),
        RawFile(
            name="daemonsets",
            command="kubectl get daemonsets -A -o json",
            shape=_object("DaemonSet", every(DAEMON_SET_SPEC, _POD_TEMPLATE)),
        ),
        RawFile(name="pvs", command="kubectl get pv -o json", shape=_object("PersistentVolume", VOLUME_SPEC)),
        RawFile(name="pvcs", command="kubectl get pvc -A -o json", shape=_object("PersistentVolumeClaim", CLAIM_SPEC)),
        RawFile(
            name="volumeattachments",
            command="kubectl get volumeattachments -o json",
            shape=_object("VolumeAttachment", ATTACHMENT_SPEC, ATTACHMENT_STATUS),
        ),
        RawFile(
            name="auto-scaling-groups",
            command="aws autoscaling describe-auto-scaling-groups",
            keys=("AutoScalingGroups",),
            shape=_LAUNCHING_GROUP,
        ),
        RawFile(
            name="lifecycle-hooks",
            command="aws autoscaling describe-lifecycle-hooks",
            keys=("LifecycleHooks",),
            shape=_HOOK,
        ),
        RawFile(
            name="launch-configurations",
            command="aws autoscaling describe-launch-configurations",
            keys=("LaunchConfigurations",),
            shape=LAUNCH_CONFIGURATION,
        ),
        RawFile(
            name="launch-template-versions",
            command="aws ec2 describe-launch-template-versions",
            keys=("LaunchTemplateVersions",),
            shape=LAUNCH_TEMPLATE_VERSION,
        ),
        RawFile(
            name="instances", command="aws ec2 describe-instances", keys=("Reservations", "Instances"), shape=_INSTANCE
        ),
        RawFile(
            name="instance-types",
            command="aws ec2 describe-instance-types",
            keys=("InstanceTypes",),
            shape=INSTANCE_TYPE,
        ),
        RawFile(name="instance-status", command="aws ec2 describe-instance-status", keys=("InstanceStatuses",)),
        RawFile(name="subnets", command="aws ec2 describe-subnets", keys=("Subnets",), shape=SUBNET),
        RawFile(name="cluster", command="aws eks describe-cluster", keys=(), shape=CLUSTER),
        RawFile(name="nodegroups", command="aws eks describe-nodegroup", keys=(), shape=NODEGROUP),
        RawFile(name="prices", command="prices", keys=(), shape=PRICES),
        RawFile(
            name="storageclasses",
            command="kubectl get storageclasses -o json",
            shape=every(_object("StorageClass"), record({}, STORAGE_CLASS)),
        ),
        RawFile(name="csinodes", command="kubectl get csinodes -o json", shape=_object("CSINode", CSI_NODE_SPEC)),
        RawFile(name="namespaces", command="kubectl get namespaces -o json", shape=_object("Namespace")),
    )
}


def read_elements(directory: Path, file: RawFile) -> tuple[Mapping[str, Any], ...]:
    """The file's elements in their order; none when it is missing.

    A command that asks about one group at a time gives several outputs: a list of them is taken, and one after
    the other in the file. Raises InvalidInputError naming file, path, found and expected.
    """
    path = directory / f"{file.name}.json"
    found: list[Mapping[str, Any]] = []
    try:
        for place, document in _documents(path, file):
            for inner, element in _descend(place, document, file.keys):
                file.shape(element, inner)
                found.append(element)
    except ShapeError as error:
        raise InvalidInputError(f"{path}: {error} (the output of: {file.command})") from error
    return tuple(found)


def _documents(path: Path, file: RawFile) -> list[tuple[str, Any]]:
    """Every JSON document of the file with its place, lists taken apart."""
    documents = load_json(path, file.command)
    places = [("" if len(documents) == 1 else f"document {n}: ", value) for n, value in enumerate(documents, 1)]
    flat: list[tuple[str, Any]] = []
    for place, value in places:
        several = isinstance(value, list)
        flat += [(f"{place}[{n}]", item) for n, item in enumerate(value)] if several else [(place, value)]
    return flat


def _descend(path: str, value: Any, keys: tuple[str, ...]) -> list[tuple[str, Any]]:
    if not keys:
        return [(path, value)]
    if not isinstance(value, Mapping) or keys[0] not in value:
        raise ShapeError(path, shown(value), f"a mapping with {keys[0]}")
    inner = inside(path, keys[0])
    items = value[keys[0]]
    if not isinstance(items, list):
        raise ShapeError(inner, shown(items), "a list")
    return [found for index, item in enumerate(items) for found in _descend(f"{inner}[{index}]", item, keys[1:])]


def load_json(path: Path, command: str) -> list[Any]:
    """The JSON documents of a file, none when it is missing; keys whose value is null are left out, as Kubernetes
    takes null for absent. Raises InvalidInputError.
    """
    try:
        content = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInputError(f"{path}: found a file that cannot be read ({error}), expected JSON") from error
    expected = f"JSON, the output of: {command}"
    if not content.strip():
        raise InvalidInputError(f"{path}: document: found an empty file, expected {expected}")
    try:
        return _decode_all(content)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno} column {error.colno}"
        near = shown(error.doc[error.pos : error.pos + 20])
        raise InvalidInputError(f"{path}: {place}: found {near} ({error.msg}), expected {expected}") from error
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(f"{path}: document: found JSON out of all proportion, expected {expected}") from error


def _decode_all(content: str) -> list[Any]:
    decoder = json.JSONDecoder(object_pairs_hook=_without_nulls)
    documents: list[Any] = []
    position = 0
    while position < len(content):
        while position < len(content) and content[position].isspace():
            position += 1
        if position == len(content):
            break
        value, position = decoder.raw_decode(content, position)
        documents.append(value)
    return documents


def _without_nulls(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    return {key: value for key, value in pairs if value is not None}
