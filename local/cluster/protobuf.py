"""Kubernetes objects in protobuf, as kubectl 1.32 and later send them for `kubectl create KIND`.

Field numbers: the generated.proto files of k8s.io/api and k8s.io/apimachinery. A message or field that is not listed
here is refused with 415 instead of being dropped.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from typing import Any

from local.cluster.errors import bad_request, unsupported_media
from local.cluster.objects import Obj
from local.cluster.timestamps import rfc3339

MAGIC = b"k8s\x00"
TRUNCATED = "truncated protobuf message"
Value = bytes | int

# number, name, type; `*` after a type: repeated; `?`: a pointer, so that zero is a value; `-`: ignored
_MESSAGES = {
    "ObjectMeta": "1 name str, 2 generateName str, 3 namespace str, 4 selfLink -, 5 uid str, 6 resourceVersion str,"
    " 7 generation -, 8 creationTimestamp Time, 9 deletionTimestamp Time, 11 labels map, 12 annotations map,"
    " 14 finalizers str*",
    "ConfigMap": "1 metadata ObjectMeta, 2 data map, 3 binaryData bytemap, 4 immutable bool?",
    "Secret": "1 metadata ObjectMeta, 2 data bytemap, 3 type str, 4 stringData map, 5 immutable bool?",
    "Namespace": "1 metadata ObjectMeta, 2 spec -, 3 status -",
    "ServiceAccount": "1 metadata ObjectMeta, 4 automountServiceAccountToken bool?",
    "Deployment": "1 metadata ObjectMeta, 2 spec DeploymentSpec, 3 status -",
    "DeploymentSpec": "1 replicas int?, 2 selector LabelSelector, 3 template PodTemplateSpec, 4 strategy"
    " DeploymentStrategy, 5 minReadySeconds int, 6 revisionHistoryLimit int?, 7 paused bool,"
    " 9 progressDeadlineSeconds int?",
    "DeploymentStrategy": "1 type str, 2 rollingUpdate RollingUpdateDeployment",
    "RollingUpdateDeployment": "1 maxUnavailable IntOrString, 2 maxSurge IntOrString",
    "Job": "1 metadata ObjectMeta, 2 spec JobSpec, 3 status -",
    "JobSpec": "1 parallelism int?, 2 completions int?, 3 activeDeadlineSeconds int?, 4 selector LabelSelector,"
    " 5 manualSelector bool?, 6 template PodTemplateSpec, 7 backoffLimit int?, 8 ttlSecondsAfterFinished int?,"
    " 9 completionMode str, 10 suspend bool?",
    "LabelSelector": "1 matchLabels map, 2 matchExpressions LabelSelectorRequirement*",
    "LabelSelectorRequirement": "1 key str, 2 operator str, 3 values str*",
    "PodTemplateSpec": "1 metadata ObjectMeta, 2 spec PodSpec",
    "PodSpec": "2 containers Container*, 3 restartPolicy str, 4 terminationGracePeriodSeconds int?,"
    " 5 activeDeadlineSeconds int?, 6 dnsPolicy str, 7 nodeSelector map, 8 serviceAccountName str,"
    " 9 serviceAccount str, 10 nodeName str, 11 hostNetwork bool, 12 hostPID bool, 13 hostIPC bool,"
    " 16 hostname str, 17 subdomain str, 19 schedulerName str, 20 initContainers Container*, 24 priorityClassName str,"
    " 25 priority int?",
    "Container": "1 name str, 2 image str, 3 command str*, 4 args str*, 5 workingDir str, 6 ports ContainerPort*,"
    " 7 env EnvVar*, 8 resources ResourceRequirements, 13 terminationMessagePath str, 14 imagePullPolicy str,"
    " 16 stdin bool, 17 stdinOnce bool, 18 tty bool, 20 terminationMessagePolicy str",
    "ContainerPort": "1 name str, 2 hostPort int, 3 containerPort int, 4 protocol str, 5 hostIP str",
    "EnvVar": "1 name str, 2 value str",
    "ResourceRequirements": "1 limits quantities, 2 requests quantities",
    "Service": "1 metadata ObjectMeta, 2 spec ServiceSpec, 3 status -",
    "ServiceSpec": "1 ports ServicePort*, 2 selector map, 3 clusterIP str, 4 type str, 5 externalIPs str*,"
    " 7 sessionAffinity str, 8 loadBalancerIP str, 10 externalName str, 11 externalTrafficPolicy str,"
    " 12 healthCheckNodePort int, 13 publishNotReadyAddresses bool, 18 clusterIPs str*",
    "ServicePort": "1 name str, 2 protocol str, 3 port int, 4 targetPort IntOrString, 5 nodePort int,"
    " 6 appProtocol str",
    "PodDisruptionBudget": "1 metadata ObjectMeta, 2 spec PodDisruptionBudgetSpec, 3 status -",
    "PodDisruptionBudgetSpec": "1 minAvailable IntOrString, 2 selector LabelSelector, 3 maxUnavailable IntOrString,"
    " 4 unhealthyPodEvictionPolicy str",
    "Role": "1 metadata ObjectMeta, 2 rules PolicyRule*",
    "ClusterRole": "1 metadata ObjectMeta, 2 rules PolicyRule*",
    "PolicyRule": "1 verbs str*, 2 apiGroups str*, 3 resources str*, 4 resourceNames str*, 5 nonResourceURLs str*",
    "RoleBinding": "1 metadata ObjectMeta, 2 subjects Subject*, 3 roleRef RoleRef",
    "ClusterRoleBinding": "1 metadata ObjectMeta, 2 subjects Subject*, 3 roleRef RoleRef",
    "Subject": "1 kind str, 2 apiGroup str, 3 name str, 4 namespace str",
    "RoleRef": "1 apiGroup str, 2 kind str, 3 name str",
    "PriorityClass": "1 metadata ObjectMeta, 2 value int?, 3 globalDefault bool, 4 description str,"
    " 5 preemptionPolicy str",
    "HorizontalPodAutoscaler": "1 metadata ObjectMeta, 2 spec HorizontalPodAutoscalerSpec, 3 status -",
    "HorizontalPodAutoscalerSpec": "1 scaleTargetRef CrossVersionObjectReference, 2 minReplicas int?,"
    " 3 maxReplicas int, 4 metrics MetricSpec*",
    "CrossVersionObjectReference": "1 kind str, 2 name str, 3 apiVersion str",
    "MetricSpec": "1 type str, 4 resource ResourceMetricSource",
    "ResourceMetricSource": "1 name str, 2 target MetricTarget",
    "MetricTarget": "1 type str, 4 averageUtilization int?",
    "Eviction": "1 metadata ObjectMeta, 2 deleteOptions DeleteOptions",
    "DeleteOptions": "1 gracePeriodSeconds int?, 2 preconditions Preconditions, 3 orphanDependents bool?,"
    " 4 propagationPolicy str, 5 dryRun str*",
    "Preconditions": "1 uid str, 2 resourceVersion str",
}  # fmt: skip


def _table(text: str) -> dict[int, tuple[str, str]]:
    entries = (entry.split() for entry in text.split(","))
    return {int(number): (name, kind) for number, name, kind in entries}


_TABLES = {message: _table(text) for message, text in _MESSAGES.items()}


def decoded(body: bytes) -> Obj:
    """Return the object in its JSON form. `body` begins with MAGIC. Raises 400 if the rest is no protobuf message, 415
    for a message or field that is not listed.
    """
    wrapper = dict(fields(body.removeprefix(MAGIC)))
    type_meta = dict(fields(_bytes(wrapper.get(1, b""))))
    version, kind = _text(type_meta.get(1, b"")), _text(type_meta.get(2, b""))
    if kind not in _TABLES:
        raise unsupported_media(
            f"the local cluster reads no {kind} in protobuf: use kubectl create -f or kubectl apply"
        )
    return {"apiVersion": version, "kind": kind, **_message(kind, _bytes(wrapper.get(2, b"")))}


def fields(message: bytes) -> Iterator[tuple[int, Value]]:
    """Yield (field number, bytes or integer) of every field. Raises 400 for a truncated message, and for wire types
    other than varint and length-delimited.
    """
    position = 0
    while position < len(message):
        tag, position = _varint(message, position)
        if tag & 7 == 2:
            length, position = _varint(message, position)
            if position + length > len(message):
                raise bad_request(TRUNCATED)
            yield tag >> 3, message[position : position + length]
            position += length
        elif tag & 7 == 0:
            number, position = _varint(message, position)
            yield tag >> 3, number
        else:
            raise bad_request(f"unexpected protobuf wire type {tag & 7}")


def _varint(message: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while position < len(message):
        byte = message[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
    raise bad_request(TRUNCATED)


def _message(kind: str, data: bytes) -> Obj:
    result: Obj = {}
    for number, raw in fields(data):
        name, field_type = _TABLES[kind].get(number, ("", ""))
        if not name:
            raise unsupported_media(f"the local cluster does not read field {number} of {kind} in protobuf")
        if field_type.endswith("*"):
            result.setdefault(name, []).append(_value(field_type[:-1], raw))
        elif field_type in ("map", "bytemap", "quantities"):
            key, value = _entry(field_type, raw)
            result.setdefault(name, {})[key] = value
        elif field_type != "-":
            value = _value(field_type.rstrip("?"), raw)
            if value not in ("", None, 0) or field_type.endswith("?"):
                result[name] = value
    return result


def _entry(field_type: str, raw: Value) -> tuple[str, Any]:
    """Return key and value of one entry of a map, which is a message with the fields 1 and 2."""
    entry = dict(fields(_bytes(raw)))
    readers: dict[str, Callable[[Value], str]] = {
        "map": _text,
        "bytemap": lambda value: base64.b64encode(_bytes(value)).decode(),
        "quantities": _quantity,
    }
    return _text(entry.get(1, b"")), readers[field_type](entry.get(2, b""))


def _value(field_type: str, raw: Value) -> Any:
    reader = _SCALARS.get(field_type)
    return _message(field_type, _bytes(raw)) if reader is None else reader(raw)


def _time(raw: Value) -> str | None:
    """Return the time in RFC 3339; None for the zero time, which has no seconds."""
    seconds = dict(fields(_bytes(raw))).get(1)
    return None if seconds is None else rfc3339(float(_signed(seconds)))


def _quantity(raw: Value) -> str:
    return _text(dict(fields(_bytes(raw))).get(1, b""))


def _int_or_string(raw: Value) -> int | str:
    parts = dict(fields(_bytes(raw)))
    return _text(parts.get(3, b"")) if parts.get(1) else _signed(parts.get(2, 0))


def _text(raw: Value) -> str:
    try:
        return _bytes(raw).decode()
    except UnicodeDecodeError as error:
        raise bad_request("text in protobuf that is not UTF-8") from error


def _bytes(raw: Value) -> bytes:
    if isinstance(raw, int):
        raise bad_request("a number in protobuf where text or a message belongs")
    return raw


def _signed(raw: Value) -> int:
    if isinstance(raw, bytes):
        raise bad_request("text in protobuf where a number belongs")
    return raw - 2**64 if raw >= 2**63 else raw


_SCALARS: dict[str, Callable[[Value], Any]] = {
    "str": _text,
    "int": _signed,
    "bool": bool,
    "Time": _time,
    "Quantity": _quantity,
    "IntOrString": _int_or_string,
}
