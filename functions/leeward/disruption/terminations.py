"""Terminations of a run's nodes: the taint, the request, the return of nodes that stay to service, and the result.

The run's record names every action before anything here is called; the causes' names derive from it, so requesting
the same termination twice is idempotent. A node is gone when its end shrank its group, or that was written off; it
stayed when it was returned to service, or when its group replaced it because another controller had ended it first."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace

from leeward.disruption.command import Command
from leeward.disruption.record import GONE, STAYED, DisruptionRecord, cause_id, surge_of
from leeward.errors import LeewardError, ObjectGoneError, UnexpectedError
from leeward.model.capacity import NoOffset
from leeward.model.instance import Instance
from leeward.model.node import disruption_taint
from leeward.model.termination import Cause, Outcome, Status, TerminationRecord
from leeward.ports import Ports
from leeward.ports.compute import Instances
from leeward.ports.kubernetes import Clusters
from leeward.termination import capacity_ledger
from leeward.termination.requests import request, subject_of, untaint_unclaimed


def taint_nodes(record: DisruptionRecord, clusters: Clusters, deployment: str) -> int:
    """Taint and cordon the nodes to be terminated; from then on budgets count them. A node that is gone is skipped."""
    kubernetes = clusters.kubernetes(record.cluster)
    taint = disruption_taint(deployment)
    count = 0
    for name, instance in record.to_terminate.items():
        node = kubernetes.node(name)
        if node is None or node.instance_id != instance:
            continue
        try:
            kubernetes.taint(node, taint)
        except ObjectGoneError:
            continue
        count += 1
    return count


def return_to_service(record: DisruptionRecord, nodes: Mapping[str, str], ports: Ports) -> None:
    """Remove our taint from nodes of the run that stay. A node with another open termination keeps it."""
    kubernetes = ports.clusters.kubernetes(record.cluster)
    for name, instance in nodes.items():
        node = kubernetes.node(name)
        if node is None or node.instance_id != instance or not node.tainted:
            continue
        with suppress(ObjectGoneError):
            untaint_unclaimed(node, kubernetes, ports)


def request_terminations(record: DisruptionRecord, ports: Ports, only: Iterable[str] | None = None) -> None:
    """Claim each node for its method and for a decrement, then start its termination. `only`: these instances."""
    instances = ports.instances.describe(record.to_terminate.values() if only is None else only)
    for command in record.active_commands.values():
        for name in command.nodes:
            instance = instances.get(record.nodes[name])
            if instance is not None:
                _request_one(record, command, name, instance, ports)


def is_requested(record: DisruptionRecord, instance: str, termination: TerminationRecord | None) -> bool:
    """Return whether both causes have joined the termination."""
    if termination is None:
        return False
    surge = surge_of(record, instance)
    return termination.knows(cause_id(record, instance)) and capacity_ledger.is_requested(termination, surge)


def _request_one(record: DisruptionRecord, command: Command, node: str, instance: Instance, ports: Ports) -> None:
    now = ports.clock.now()
    subject = subject_of(instance, record.cluster, group=record.members[node], node=node)
    why = f"{record.method.value}: {command.reason}"
    said = "its group shrinks by it: it is not needed, or what replaces it was launched ahead"
    causes = (
        Cause(id=cause_id(record, instance.id), kind=record.cause, at=now, reason=why),
        capacity_ledger.surplus(surge_of(record, instance.id), now, said),
    )
    request(subject, causes, ports)


def with_results(record: DisruptionRecord, terminations: Mapping[str, TerminationRecord]) -> DisruptionRecord:
    """Return the record with the ends that are known. Idempotent: run again on the result, it changes nothing."""
    ends = dict(record.ends)
    for instance in record.to_terminate.values():
        termination = terminations.get(instance)
        if instance not in ends and termination is not None and is_requested(record, instance, termination):
            end = _end(record, instance, termination)
            if end:
                ends[instance] = end
    return replace(record, ends=ends) if ends != record.ends else record


def without_unreadable(
    record: DisruptionRecord, unreadable: Mapping[str, LeewardError], instances: Instances
) -> DisruptionRecord:
    """Return the record with the end of those whose termination record is malformed and whose instance EC2 has ended:
    gone, so that what was launched for it stays. A newer version's record is waited for: newer functions read it.
    """
    malformed = [name for name in record.under_way if isinstance(unreadable.get(name), UnexpectedError)]
    known = instances.describe(malformed) if malformed else {}
    ended = {name: GONE for name in malformed if name not in known or known[name].ended}
    return replace(record, ends={**record.ends, **ended}) if ended else record


def _end(record: DisruptionRecord, instance: str, termination: TerminationRecord) -> str:
    settlement = termination.offsets.get(surge_of(record, instance))
    if termination.status is Status.OPEN:  # waits for a future maintenance, with the request of this run returned
        waits = settlement is NoOffset.RETURNED and termination.times.get("retry") is not None
        return STAYED if waits else ""
    if settlement is NoOffset.RETURNED or (settlement is None and termination.outcome is Outcome.RETURNED_TO_SERVICE):
        return STAYED
    return GONE
