"""First look of a drain that only a disruption run requests, behind the taint and before the first eviction.

A pod may have been bound between the last validation and the taint, and an opt-out written since. As long as no pod
has moved the termination is cancelled, and the node returns to service (docs/designs/disruption.md)."""

from collections.abc import Sequence
from datetime import datetime

from leeward.disruption.do_not_disrupt import why_node_stays, why_pod_stays
from leeward.model.node import Node
from leeward.model.pod import Pod
from leeward.model.termination import CauseKind, TerminationRecord
from leeward.policy.document import DrainPolicy

OVERRIDDEN = (CauseKind.EXPIRED, CauseKind.DRIFTED)  # their opt-outs, by a terminationGracePeriod (Karpenter)


def reason_to_cancel(
    record: TerminationRecord, policy: DrainPolicy, node: Node, pods: Sequence[Pod], now: datetime
) -> str:
    """Return why none of the record's voluntary causes takes the node any more; empty while one does."""
    in_order = sorted(pods, key=lambda pod: pod.key)
    opted_out = why_node_stays(node)
    kept = next((why for pod in in_order if (why := why_pod_stays(pod, now))), "")
    working = next((f"pod {pod.key} was bound to the empty node" for pod in in_order if pod.works), "")
    reasons: list[str] = []
    for cause in record.causes:
        if cause.kind in OVERRIDDEN:
            reasons.append(opted_out or ("" if policy.termination_grace_period is not None else kept))
        elif cause.kind is CauseKind.UNDERUTILIZED:
            reasons.append(opted_out or kept)
        elif cause.kind is CauseKind.EMPTY:
            reasons.append(opted_out or kept or working)
    return reasons[0] if reasons and all(reasons) else ""
