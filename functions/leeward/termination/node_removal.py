"""Steps after a drain that call Kubernetes: return the node to service, or remove its Node object."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from leeward.errors import ClusterGoneError, LeewardError
from leeward.model import well_known
from leeward.model.lifecycle import POOLED_AND_RUNNING
from leeward.model.node import Node, disruption_taint
from leeward.model.seen import GONE
from leeward.model.termination import CauseKind, TerminationRecord
from leeward.ports import Ports
from leeward.ports.kubernetes import Kubernetes
from leeward.termination import decisions, settling
from leeward.termination.capacity_ledger import only_surplus
from leeward.termination.drain_reports import withdraw
from leeward.termination.heartbeats import heartbeats_kept
from leeward.termination.replica_surge import put_back
from leeward.termination.run import Next, Run, carrying, current, later
from leeward.termination.situation import Freshness, find_node, survey

WHY = 430  # characters of an Event about pods, which leave room for its end


@heartbeats_kept
def return_to_service(run: Run, _: Mapping[str, Any], ports: Ports) -> Run:
    """Return the node to service: its pods did not leave in time, it was rebooted, or no cause requests its termination
    any more. A node that was drained alone stays cordoned, as by its operator. `finish` closes the record. A Node that
    a person or a controller has deleted keeps its taint, and so does a broken one: its termination is retried, and it
    takes no new pods.
    """
    run, record = current(run, ports, unless=lambda _: True)
    try:
        return _returned(run, record, ports)
    except ClusterGoneError as error:
        return replace(run, next=Next.CANCELLED, why=f"it stays, and its cluster is gone: {error}"[:500])


def _returned(run: Run, record: TerminationRecord, ports: Ports) -> Run:
    run = _cancelled_if_healthy(run, record, ports)
    cancelled, kept, rebooted = (run.next is ending for ending in (Next.CANCEL, Next.KEPT, Next.REBOOTED))
    kubernetes = ports.clusters.kubernetes(record.subject.cluster)
    node = find_node(record, kubernetes)
    why = "; ".join(record.blocked_by) or run.why or "pods did not leave in time"
    if record.surges:
        put_back(record.instance, kubernetes, ports.claims)
    if kept:
        _keep(node, run, kubernetes, ports)
        return run
    if node is not None:
        stays_out = not cancelled and (
            decisions.is_broken(record) or (node.deleting and record.has(CauseKind.NODE_DELETED))
        )
        if stays_out:
            why = f"{why[:WHY]}; it takes no new pods, and its drain is tried again"
        else:
            kubernetes.untaint(node, disruption_taint(ports.deployment))
            if node.tainted:
                withdraw(node, kubernetes)
        reason = "TerminationCancelled" if cancelled else "Rebooted" if rebooted else "PodEvictionFailure"
        message, warning = (run.why, False) if cancelled or rebooted else (why, True)
        if node.tainted or not only_surplus(record):  # a surplus that another node offsets was never drained
            kubernetes.event(node, reason=reason, message=message, warning=warning, now=ports.clock.now())
    if rebooted:
        return run
    return replace(
        run, next=Next.CANCELLED if cancelled else Next.RETURNED_TO_SERVICE, why=run.why if cancelled else why[:500]
    )


def _cancelled_if_healthy(run: Run, record: TerminationRecord, ports: Ports) -> Run:
    """Return the run as cancelled if only repair requests the termination, pods hold the node, and it is healthy again.
    In doubt it is not: a broken node takes no pods.
    """
    only_repair = decisions.is_broken(record) and all(cause.kind is CauseKind.UNHEALTHY for cause in record.causes)
    if run.next is not Next.FAILED or not only_repair:
        return run
    from leeward.reconcile.repair import is_healthy_now  # late: one read of the cluster for a whole drain

    node = find_node(record, ports.clusters.kubernetes(record.subject.cluster))
    with suppress(LeewardError):
        if node is not None and is_healthy_now(node, record.subject.cluster, ports):
            return replace(run, next=Next.CANCEL, why=f"it is healthy again, and pods hold it: {run.why}"[:500])
    return run


def _keep(node: Node | None, run: Run, kubernetes: Kubernetes, ports: Ports) -> None:
    """Remove the taint and leave the cordon. The note that the cordon is ours is removed first, so that it does not
    leave with the taint; run again after a crash between the two, it writes the same.
    """
    if node is None:
        return
    if node.taken_out:
        node = kubernetes.annotate(node, {well_known.CORDONED_BY_DRAIN: None})
        kubernetes.untaint(node, disruption_taint(ports.deployment))
    message = f"{run.why}; the instance is kept, and the node stays cordoned until: kubectl uncordon {node.name}"
    kubernetes.event(node, reason="Drained", message=message, warning=False, now=ports.clock.now())


@heartbeats_kept
def remove_node(run: Run, _: Mapping[str, Any], ports: Ports) -> Run:
    """Delete the Node object, and our finalizer if it carries it, only once EC2 reports that the instance has ended and
    its volumes are free. Raises ClusterUnreachableError, so that the state machine retries for a while. A hook of ours
    that joins meanwhile is answered first: the group launches no other instance until then, and its own time-out may be
    shorter than the retries. All hooks begin together: once ours are answered, only another team's can hold the ended
    instance, for as long as it likes, and nothing waits for it. The run keeps the version at which its hooks were
    answered, so that a hook that joins last causes one more pass.
    """
    run, record = current(run, ports)
    situation = survey(record, ports, Freshness.WORK)
    record = situation.record
    if situation.lifecycle == POOLED_AND_RUNNING:
        why = "it runs on in its warm pool: its Node stays tainted until the group takes it into service again"
        return replace(run, next=Next.FINISH, why=why)
    if not situation.ended:
        return replace(run, next=Next.WAIT, pause=decisions.SHORTEST_PAUSE, why=f"EC2 says {situation.state}")
    if situation.ours_hold and "answered" not in record.times:
        return replace(run, next=Next.WAIT, pause=decisions.SHORTEST_PAUSE, why="a hook of ours holds it")
    kubernetes = ports.clusters.kubernetes(record.subject.cluster)
    try:
        node = find_node(record, kubernetes)
    except ClusterGoneError as error:
        return replace(run, next=Next.FINISH, why=f"its Node is gone with its cluster: {error}"[:500])
    if record.surges:
        put_back(record.instance, kubernetes, ports.claims)
    if node is not None:
        waits = settling.volumes_before_removal(situation, node, kubernetes, ports.clock)
        if waits and situation.state != GONE and not situation.looked:
            situation = survey(situation.record, ports)
            waits = settling.volumes_before_removal(situation, node, kubernetes, ports.clock)
        if waits:
            return replace(run, next=Next.WAIT, pause=decisions.SHORTEST_PAUSE, why=waits[:500])
        kubernetes.remove_finalizer(node, well_known.FINALIZER)
        kubernetes.delete_node(node)
    run, record = later(run, record, removed=ports.clock.now())
    run = replace(run, next=Next.FINISH, why=f"removed {node.name}" if node else "its Node was gone already")
    return carrying(run, record, ports.claims)
