"""Other managers of nodes in the same cluster, recognized by labels and taints: Leeward leaves such nodes to them."""

from leeward.model import well_known
from leeward.model.node import Node

KARPENTER_TAINT = "karpenter.sh/disrupted"
AUTOSCALER_TAINT = "ToBeDeletedByClusterAutoscaler"
DISRUPTION_TAINTS = frozenset({well_known.DISRUPTED_TAINT, KARPENTER_TAINT, AUTOSCALER_TAINT})
"""Taints of a node that is terminating, whichever controller requested it."""
VIRTUAL_KUBELET, VIRTUAL_TAINT = "virtual-kubelet", "virtual-kubelet.io/provider"
FOREIGN = (
    ("eks.amazonaws.com/compute-type", "fargate", "it is a Fargate node"),
    ("eks.amazonaws.com/compute-type", "hybrid", "it is a hybrid node"),
    ("eks.amazonaws.com/compute-type", "auto", "EKS Auto Mode manages it"),
    ("karpenter.sh/nodepool", None, "Karpenter manages it"),
    ("karpenter.sh/provisioner-name", None, "Karpenter manages it"),
)  # label, value (None: any), why


def foreign(node: Node) -> str:
    """Return which other manager owns the node, as a sentence; empty: none."""
    for label, value, why in FOREIGN:
        if label in node.labels and value in {None, node.labels[label]}:
            return why
    return ""


def is_virtual(node: Node) -> bool:
    """Return whether the node has no machine of its own (Fargate, virtual kubelets) and so no free capacity."""
    labels = node.labels
    fargate = labels.get("eks.amazonaws.com/compute-type") == "fargate"
    return fargate or labels.get("type") == VIRTUAL_KUBELET or any(t.key == VIRTUAL_TAINT for t in node.taints)


def disruption_taint_of(node: Node) -> str:
    """Return the taint that says the node is terminating, ours first; empty without one."""
    taints = {taint.key for taint in node.taints} & DISRUPTION_TAINTS
    return well_known.DISRUPTED_TAINT if well_known.DISRUPTED_TAINT in taints else min(taints, default="")
