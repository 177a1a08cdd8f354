"""Other managers of nodes in the same cluster, recognized by labels and taints: Leeward leaves such nodes to them."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from leeward.model import well_known
from leeward.model.node import Node, Taint
from leeward.model.node_condition import first_seen
from leeward.model.raw_fields import instant

KARPENTER_TAINT = "karpenter.sh/disrupted"
AUTOSCALER_TAINT = "ToBeDeletedByClusterAutoscaler"
FOREIGN_TAINTS = {KARPENTER_TAINT: "karpenter", AUTOSCALER_TAINT: "cluster-autoscaler"}  # taint -> its controller
DISRUPTION_TAINTS = frozenset({well_known.DISRUPTED_TAINT, *FOREIGN_TAINTS})
"""Taints of a node that is terminating, whichever controller requested it."""
FORGOTTEN_AFTER = timedelta(hours=2)  # from then on the controller that put the taint there has left it behind
LATEST = 253_402_300_799  # Unix time of the last second of the year 9999
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


def disruption_taint_of(node: Node, now: datetime) -> str:
    """Return the taint that says the node is terminating, ours first; empty without one. A forgotten one says nothing
    any more.
    """
    taints = {taint.key for taint in node.taints} & DISRUPTION_TAINTS - forgotten_taints(node, now).keys()
    return well_known.DISRUPTED_TAINT if well_known.DISRUPTED_TAINT in taints else min(taints, default="")


def forgotten_taints(node: Node, now: datetime) -> Mapping[str, datetime]:
    """Return the taints of other controllers that are older than `FORGOTTEN_AFTER` on a Node that nothing deletes, with
    the moment since which they are there. Otherwise such a taint would use up a budget without an end. Karpenter's own
    nodes are left out: their NodeClaims, which are not read, may be under deletion.
    """
    if node.deleting or foreign(node):
        return {}
    known = ((taint.key, taint_since(node, taint, now)) for taint in node.taints if taint.key in FOREIGN_TAINTS)
    return {key: since for key, since in known if since is not None and now - since > FORGOTTEN_AFTER}


def taint_since(node: Node, taint: Taint, now: datetime) -> datetime | None:
    """Return since when the taint is there: by its value (Cluster Autoscaler writes the Unix time), its `timeAdded`, or
    the reconciler's first sight of it; None while none of them says.
    """
    if taint.key == AUTOSCALER_TAINT and taint.value.isascii() and taint.value.isdecimal():
        seconds = int(taint.value[:20])
        if 0 < seconds <= LATEST:
            return datetime.fromtimestamp(seconds, UTC)
    return instant(taint.added) or first_seen(node, now).get(taint.key)
