"""Annotations by which pods and nodes ask not to be disrupted; they hold up voluntary methods alone (docs/features.md,
K17, K18).

The keys and the rules are those of `leeward.disruption.opt_outs`, which answers whether a node may be taken; here each
annotation is told on its own, with its end. Interruptions, drains by hand and upgrades ask none of them."""

from dataclasses import dataclass
from datetime import datetime

from leeward.disruption.opt_outs import (
    DO_NOT_CONSOLIDATE,
    DO_NOT_DISRUPT,
    DO_NOT_EVICT,
    SAFE_TO_EVICT,
    SCALE_DOWN_DISABLED,
)
from leeward.model.node import Node
from leeward.model.pod import Pod
from leeward.policy.durations import parse_duration


@dataclass(frozen=True, slots=True, kw_only=True)
class OptOut:
    """An annotation that holds now. `until` None: for as long as it is there."""

    key: str
    value: str
    until: datetime | None = None


def pod_opt_outs(pod: Pod, now: datetime) -> tuple[OptOut, ...]:
    """Those of a pod that hold now.

    Karpenter asks every pod that is neither finished nor being deleted, those of DaemonSets and static ones too; a
    duration counts from the pod's start, one that cannot be read is as if it were not there. Cluster Autoscaler asks
    no static pods and none of DaemonSets.
    """
    if pod.finished or pod.deletion:
        return ()
    found = [one for key in DO_NOT_DISRUPT if (one := _do_not_disrupt(key, pod, now))]
    if pod.annotations.get(DO_NOT_EVICT) == "true":
        found.append(OptOut(key=DO_NOT_EVICT, value="true"))
    if pod.annotations.get(SAFE_TO_EVICT) == "false" and not (pod.mirror or pod.of_daemon_set):
        found.append(OptOut(key=SAFE_TO_EVICT, value="false"))
    return tuple(found)


def node_opt_outs(node: Node) -> tuple[OptOut, ...]:
    """Those of a node: all voluntary methods, consolidation alone, and Cluster Autoscaler's."""
    keys = (*DO_NOT_DISRUPT, DO_NOT_CONSOLIDATE, SCALE_DOWN_DISABLED)
    return tuple(OptOut(key=key, value="true") for key in keys if node.annotations.get(key) == "true")


def _do_not_disrupt(key: str, pod: Pod, now: datetime) -> OptOut | None:
    value = pod.annotations.get(key)
    if value is None:
        return None
    if value == "true":
        return OptOut(key=key, value=value)
    try:
        span = parse_duration(value)
    except ValueError:
        return None
    until = pod.started + span if pod.started else None  # not started yet: all of it lies ahead
    return OptOut(key=key, value=value, until=until) if until is None or until > now else None
