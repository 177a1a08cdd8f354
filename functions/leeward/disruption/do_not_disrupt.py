"""Who asks not to be disrupted, by annotation: Karpenter's keys, our own, and Cluster Autoscaler's.

They hold back voluntary methods alone (docs/features.md, K17, K18): interruptions, drains by hand and upgrades ask none
of them. Whether a node may be taken is read from the first that holds; `leeward.blockers` tells each with its end."""

from dataclasses import dataclass
from datetime import datetime

from leeward.model.node import Node
from leeward.model.pod import Pod
from leeward.model.well_known import SAFE_TO_EVICT, SCALE_DOWN_DISABLED
from leeward.policy.durations import parse_duration

DO_NOT_DISRUPT = ("leeward.dev/do-not-disrupt", "karpenter.sh/do-not-disrupt")
DO_NOT_EVICT = "karpenter.sh/do-not-evict"  # Karpenter's older key, without durations
DO_NOT_CONSOLIDATE = "karpenter.sh/do-not-consolidate"
TRUE, FALSE = "true", "false"
_KEPT = {
    DO_NOT_CONSOLIDATE: "the node asks not to be consolidated",
    SCALE_DOWN_DISABLED: "the node is not to be scaled down",
}  # against shrinking the cluster by the node


@dataclass(frozen=True, slots=True, kw_only=True)
class OptOut:
    """An annotation that holds now. `until` None: for as long as it is there, or as its pod has not started."""

    key: str
    value: str
    until: datetime | None = None


def pod_opt_outs(pod: Pod, now: datetime) -> tuple[OptOut, ...]:
    """Those of a pod that hold now.

    Karpenter (pkg/utils/pod, IsDisruptable) asks every pod that is neither finished nor being deleted, those of
    DaemonSets and static ones too; a duration counts from the pod's start; a value that is neither `true` nor a
    duration is as if it were not there. Cluster Autoscaler (its drainability rules) asks no static pods and none of
    DaemonSets.
    """
    if pod.finished or pod.deletion is not None or not pod.annotations:
        return ()
    found = [one for key in DO_NOT_DISRUPT if (one := _do_not_disrupt(key, pod, now))]
    if pod.annotations.get(DO_NOT_EVICT) == TRUE:
        found.append(OptOut(key=DO_NOT_EVICT, value=TRUE))
    if pod.annotations.get(SAFE_TO_EVICT) == FALSE and not (pod.of_daemon_set or pod.mirror):
        found.append(OptOut(key=SAFE_TO_EVICT, value=FALSE))
    return tuple(found)


def node_opt_outs(node: Node) -> tuple[OptOut, ...]:
    """Those of a node: first against every voluntary method, then against shrinking the cluster by it."""
    keys = (*DO_NOT_DISRUPT, *_KEPT)
    return tuple(OptOut(key=key, value=TRUE) for key in keys if node.annotations.get(key) == TRUE)


def why_pod_stays(pod: Pod, now: datetime) -> str:
    """Which annotation of a running pod forbids disrupting its node, empty when none does."""
    for one in pod_opt_outs(pod, now):
        if one.key == SAFE_TO_EVICT:
            return f'pod {pod.key} is not safe to evict ({one.key}: "{one.value}")'
        span = "" if one.value == TRUE else f" for {one.value} from its start"
        return f"pod {pod.key} asks to be left alone{span} ({one.key})"
    return ""


def why_node_stays(node: Node) -> str:
    """Which annotation of the node forbids every voluntary method, empty when none does."""
    key = next((one.key for one in node_opt_outs(node) if one.key in DO_NOT_DISRUPT), "")
    return f"the node asks to be left alone ({key})" if key else ""


def why_node_is_kept(node: Node) -> str:
    """Which annotation of the node forbids shrinking the cluster by it, empty when none does."""
    key = next((one.key for one in node_opt_outs(node) if one.key in _KEPT), "")
    return f"{_KEPT[key]} ({key})" if key else ""


def _do_not_disrupt(key: str, pod: Pod, now: datetime) -> OptOut | None:
    value = pod.annotations.get(key)
    if value is None or value == TRUE:
        return OptOut(key=key, value=value) if value else None
    try:
        span = parse_duration(value)
    except ValueError:
        return None
    until = pod.started + span if pod.started else None  # not started yet: all of it lies ahead
    return OptOut(key=key, value=value, until=until) if until is None or until > now else None
