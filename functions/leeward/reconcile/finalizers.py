"""Finalizers in the minute reconciler: add ours, remove it, and carry out the termination that the deletion of a Node
requests. Every call is idempotent, and a Node that is gone by then counts as done."""

from collections.abc import Callable, Mapping
from functools import partial

from leeward.errors import LeewardError, ObjectGoneError
from leeward.isolation import isolate_errors
from leeward.model import well_known
from leeward.model.node import Node
from leeward.model.termination import Cause, CauseKind, Status
from leeward.ports import Ports
from leeward.reconcile.cluster_view import ClusterView, doubtful
from leeward.reconcile.finalizer_selection import carries, gone, to_carry_out, to_hold, to_release
from leeward.reconcile.result import ReconcileResult, apart
from leeward.termination.execution import start
from leeward.termination.subject import subject_of


def let_go_of_the_gone(
    cluster: str, nodes: Mapping[str, Node], ports: Ports, note: Callable[[str, LeewardError], object]
) -> list[str]:
    """Remove our finalizer from Nodes whose instances are gone; return their names. A Node that is being deleted then
    disappears. Calls EC2 only if a node that carries it is NotReady or being deleted. `note` takes a node that could
    not be released and why; the others are released.
    """
    carrying = {name: node for name, node in nodes.items() if carries(node)}
    instances = doubtful(carrying, ports.instances)
    left = [node for node in carrying.values() if gone(node, instances)]
    kubernetes = ports.clusters.kubernetes(cluster)
    released: list[str] = []
    for node in left:
        with isolate_errors(partial(note, node.name)):
            kubernetes.release(node, well_known.FINALIZER)
            released.append(node.name)
    return released


def keep_finalizers(view: ClusterView, ports: Ports, found: ReconcileResult) -> None:
    """Carry out deletions, then remove and add finalizers. Deleted nodes come first: a user waits for them."""
    kubernetes = ports.clusters.kubernetes(view.cluster)
    for node in to_carry_out(view):
        with apart(node.name, found):
            found.deleted += carry_out(node, view, ports)
    for node in to_release(view):
        with apart(node.name, found):
            kubernetes.release(node, well_known.FINALIZER)
            found.let_go.append(node.name)
    for node in to_hold(view):
        with apart(node.name, found):
            try:
                kubernetes.hold(node, well_known.FINALIZER)
            except ObjectGoneError:
                continue
            found.held.append(node.name)


def carry_out(node: Node, view: ClusterView, ports: Ports) -> list[str]:
    """Claim the instance and start its termination; return it. The group replaces it, unless another actor has scaled
    it down in between: a deleted Node requests the end of this machine, not a smaller group.

    The cause names the Node and the attempt before, so that the pass after a lost answer adds nothing, and a Node that
    was returned to service once is claimed again.
    """
    instance = ports.instances.describe([node.instance_id]).get(node.instance_id)
    if instance is None or instance.ended:
        return []
    group, now, record = view.group_of(instance.id), ports.clock.now(), ports.claims.read(instance.id)
    cause = Cause(
        id=f"deleted#{node.uid}#{record.attempt if record else 0}",
        kind=CauseKind.NODE_DELETED,
        at=now,
        reason=f"Node {node.name} was deleted: it is drained, then its instance is terminated",
    )
    subject = subject_of(instance, view.cluster, group=group.name if group else None, node=node.name)
    record = ports.claims.claim(subject, cause, now)
    if record.status is Status.CLOSED:
        return []
    start(record, ports)
    return [instance.id]
