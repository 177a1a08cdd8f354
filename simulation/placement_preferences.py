"""Placement constraints of pods: rules among pods, ties to zones. Sized so that they stay schedulable.

Required rules must still be met after any zone has lost a node, so they leave a node or a zone to spare."""

from collections.abc import Sequence
from random import Random
from typing import Any

from local.cluster.objects import Obj

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def preference(random: Random, app: str, replicas: int, nodes: int, zones: Sequence[str]) -> Obj:
    """Return fields of a pod spec for a Deployment of that name; often none, soft ones more often than hard ones."""
    kinds: list[Obj] = [{}] * 11 + [even(app, ZONE, "ScheduleAnyway")] * 5 + [apart(app, HOST, weight=50)]
    kinds += [_together("web-0", weight=50), _together("web-0")]
    if replicas <= nodes // 2:
        kinds += [apart(app, HOST), even(app, HOST, "DoNotSchedule")]
    if replicas < len(zones):
        kinds.append({**apart(app, ZONE), **even(app, HOST, "ScheduleAnyway")})
    if len(zones) > 1:
        tied = even(app, ZONE, "DoNotSchedule", matchLabelKeys=["pod-template-hash"])
        kinds.append({**tied, "affinity": in_zones(zones)})
    return random.choice(kinds)


def in_zones(zones: Sequence[str]) -> Obj:
    """Return an affinity that keeps a pod in these zones."""
    expression = {"key": ZONE, "operator": "In", "values": list(zones)}
    return {"nodeAffinity": {_REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}}


def apart(app: str, key: str, *, weight: int = 0) -> Obj:
    """Return a rule for no two pods of the app in one domain; with a weight only a preference."""
    return {"affinity": {"podAntiAffinity": _terms(app, key, weight)}}


def even(app: str, key: str, unsatisfiable: str, **more: Any) -> Obj:
    """Return a rule for as many pods of the app in each domain, give or take one."""
    selector = {"matchLabels": {"app": app}}
    rule = {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": unsatisfiable, "labelSelector": selector, **more}
    return {"topologySpreadConstraints": [rule]}


def _together(app: str, *, weight: int = 0) -> Obj:
    return {"affinity": {"podAffinity": _terms(app, ZONE, weight)}}


def _terms(app: str, key: str, weight: int) -> Obj:
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}
    return {_PREFERRED: [{"weight": weight, "podAffinityTerm": term}]} if weight else {_REQUIRED: [term]}
