"""Deferral of maintenance that lies far ahead, until the disruption budgets of its node's policy allow it."""

from datetime import datetime

from leeward.budgets.disruption_budgets import allowance_among, tightest, why_disrupted
from leeward.model.deadlines import detach_deadline
from leeward.model.termination import CauseKind, TerminationRecord
from leeward.ports import Ports
from leeward.termination import decisions
from leeward.termination.drain_step import mark
from leeward.termination.instance_state import survey
from leeward.termination.reconcile_result import ReconcileResult


def paced(record: TerminationRecord, now: datetime) -> bool:
    """Return whether the termination can wait: its only causes are maintenance, and that is more than a day away."""
    only_far = all(cause.kind is CauseKind.SCHEDULED_CHANGE for cause in record.causes)
    date = detach_deadline(record, now)
    return only_far and date is not None and date - now > decisions.FAR_AHEAD


def budget_left(record: TerminationRecord, ports: Ports, found: ReconcileResult, now: datetime) -> bool:
    """Return whether the budgets of the node's policy, and those of its zone, allow one more disruption. If so, taint
    the node at once, so that the next one is counted against it. A node that is tainted already (the reconciler died
    before the start) has its place. An instance that has ended needs no budget: its record is only to be closed.
    """
    situation = survey(record, ports)
    if situation.listing is None or situation.ended:
        return True
    members = {member.id: member.zone for member in situation.listing.instances}
    kubernetes = ports.clusters.kubernetes(record.subject.cluster)
    nodes = [node for node in kubernetes.nodes() if node.instance_id in members]
    disrupting = {node.instance_id for node in nodes if why_disrupted(node)} | (set(found.restarted) & members.keys())
    left = tightest(
        allowance_among(
            situation.policy.disruption.budgets,
            [members[node.instance_id] for node in nodes],
            [members[name] for name in disrupting - {record.instance}],
            reason=None,
            zone=zone,
            now=now,
        )
        for zone in (None, record.subject.zone)
    )
    if left is not None and left <= 0:
        return False
    for node in nodes:
        if node.instance_id == record.instance:
            mark(node, record, kubernetes, ports)
    return True
