"""Who asks not to be disrupted, by annotation: Karpenter's keys, our own, and Cluster Autoscaler's.

They hold back voluntary methods alone (docs/features.md, K17, K18)."""

from datetime import datetime

from leeward.model.node import Node
from leeward.model.pod import Pod
from leeward.policy.durations import parse_duration

DO_NOT_DISRUPT = ("leeward.dev/do-not-disrupt", "karpenter.sh/do-not-disrupt")
DO_NOT_EVICT = "karpenter.sh/do-not-evict"  # Karpenter's older key, without durations
DO_NOT_CONSOLIDATE = "karpenter.sh/do-not-consolidate"
SCALE_DOWN_DISABLED = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"
TRUE, FALSE = "true", "false"


def why_pod_stays(pod: Pod, now: datetime) -> str:
    """Which annotation of a running pod forbids disrupting its node, empty when none does.

    A duration counts from the pod's start; a value that is neither `true` nor a duration is ignored, as in Karpenter
    (pkg/utils/pod, IsDisruptable). DaemonSet and static pods count too, but for Cluster Autoscaler's key, which skips
    them (its drainability rules).
    """
    if pod.finished or pod.deletion is not None:
        return ""
    for key in (*DO_NOT_DISRUPT, DO_NOT_EVICT):
        value = pod.annotations.get(key, "")
        if value == TRUE:
            return f"pod {pod.key} asks to be left alone ({key})"
        if value and key != DO_NOT_EVICT and _lasts(pod, value, now):
            return f"pod {pod.key} asks to be left alone for {value} from its start ({key})"
    if pod.annotations.get(SAFE_TO_EVICT) == FALSE and not (pod.of_daemon_set or pod.mirror):
        return f'pod {pod.key} is not safe to evict ({SAFE_TO_EVICT}: "false")'
    return ""


def _lasts(pod: Pod, text: str, now: datetime) -> bool:
    """A pod that has not started has all its time before it."""
    try:
        span = parse_duration(text)
    except ValueError:
        return False
    return pod.started is None or now - pod.started < span


def why_node_stays(node: Node) -> str:
    """Which annotation of the node forbids every voluntary method, empty when none does."""
    key = next((key for key in DO_NOT_DISRUPT if node.annotations.get(key) == TRUE), "")
    return f"the node asks to be left alone ({key})" if key else ""


def why_node_is_kept(node: Node) -> str:
    """Which annotation of the node forbids shrinking the cluster by it, empty when none does."""
    if node.annotations.get(DO_NOT_CONSOLIDATE) == TRUE:
        return f"the node asks not to be consolidated ({DO_NOT_CONSOLIDATE})"
    if node.annotations.get(SCALE_DOWN_DISABLED) == TRUE:
        return f"the node is not to be scaled down ({SCALE_DOWN_DISABLED})"
    return ""
