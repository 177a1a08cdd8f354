"""Who else looks after nodes of the same cluster, told by labels and taints: Leeward leaves such nodes to them."""

from leeward.model import well_known
from leeward.model.node import Node

KARPENTER_TAINT = "karpenter.sh/disrupted"
AUTOSCALER_TAINT = "ToBeDeletedByClusterAutoscaler"
MARKS = frozenset(
    {well_known.DISRUPTED_TAINT, KARPENTER_TAINT, AUTOSCALER_TAINT}
)  # the node is on its way out, by whomever
VIRTUAL_KUBELET, VIRTUAL_TAINT = "virtual-kubelet", "virtual-kubelet.io/provider"
FOREIGN = (
    ("eks.amazonaws.com/compute-type", "fargate", "it is a Fargate node"),
    ("eks.amazonaws.com/compute-type", "hybrid", "it is a hybrid node"),
    ("eks.amazonaws.com/compute-type", "auto", "EKS Auto Mode looks after it"),
    ("karpenter.sh/nodepool", None, "Karpenter looks after it"),
    ("karpenter.sh/provisioner-name", None, "Karpenter looks after it"),
)  # label, value (None: any), why


def foreign(node: Node) -> str:
    """Who else looks after the node, as a sentence; empty: nobody."""
    for label, value, why in FOREIGN:
        if label in node.labels and value in {None, node.labels[label]}:
            return why
    return ""


def is_virtual(node: Node) -> bool:
    """Whether no machine of its own stands behind the node (Fargate, virtual kubelets): it has no free capacity."""
    labels = node.labels
    fargate = labels.get("eks.amazonaws.com/compute-type") == "fargate"
    return fargate or labels.get("type") == VIRTUAL_KUBELET or any(t.key == VIRTUAL_TAINT for t in node.taints)


def mark_of(node: Node) -> str:
    """The taint that says the node is on its way out, ours first; empty without one."""
    marks = {taint.key for taint in node.taints} & MARKS
    return well_known.DISRUPTED_TAINT if well_known.DISRUPTED_TAINT in marks else min(marks, default="")
