"""Return of nodes to service that no termination has claimed.

Claims are in DynamoDB and the taint is on the Node, so no single write covers both: the record is read before the taint
is removed, and again afterwards."""

from leeward.model.node import Node, disruption_taint
from leeward.ports import Ports
from leeward.ports.kubernetes import Kubernetes
from leeward.termination.execution import is_open


def untaint_unclaimed(node: Node, kubernetes: Kubernetes, ports: Ports) -> bool:
    """Remove our taint and cordon unless a termination of the instance is open; True if they were removed. A
    termination that is claimed between the read of its record and the write of the node finds the taint put back: until
    its drain begins, the scheduler would otherwise bind pods to a node that is about to leave. Raises ObjectGoneError.
    """
    if is_open(node.instance_id, ports.claims):
        return False
    taint = disruption_taint(ports.deployment)
    kubernetes.untaint(node, taint)
    if is_open(node.instance_id, ports.claims):
        kubernetes.taint(node, taint)
        return False
    return True
