"""Pods of which planning cannot tell where they may run: kube-scheduler follows rules that planning does not know.

Such a pod counts as unmovable for plans, as one beyond the limits (`pod_limits`): "it fits" would be a guess, and the
pod would stay pending. Evictions do not ask: an interruption, a termination or an upgrade drains it like any other."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

RESOURCE_CLAIMS = "resource claims (DRA), and planning does not know which nodes have the devices"
POD_GROUP = "a pod group, and the eviction of one member may cost the others"
RESTART_RULES = "a rule that restarts all containers (RestartAllContainers), and planning does not know which nodes can"
_GROUPS = ("schedulingGroup", "workloadRef")  # since Kubernetes 1.36, and its name in 1.35


def not_judged(spec: Mapping[str, Any]) -> str:
    """Return what a raw pod `spec` has that planning does not follow, empty where there is nothing."""
    if spec.get("resourceClaims"):
        return RESOURCE_CLAIMS
    if any(spec.get(name) is not None for name in _GROUPS):
        return POD_GROUP
    with suppress(TypeError, AttributeError):  # their reader names the error
        for part in ("containers", "initContainers"):
            for container in spec.get(part) or ():
                rules = container.get("restartPolicyRules") or ()
                if rules and any(rule.get("action") == "RestartAllContainers" for rule in rules):
                    return RESTART_RULES
    return ""
