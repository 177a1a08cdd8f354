"""Nodes that leave only because their zone is evacuated: the drain waits until the replacement elsewhere is Ready.

Nothing takes such a node, so it can wait, and without a replacement it stays in service: its pods would have no other
place, and its group would launch into the closed zone."""

from dataclasses import replace
from datetime import timedelta

from leeward.errors import ClusterUnreachableError, ThrottledError
from leeward.ports import Ports
from leeward.ports.records import Claims
from leeward.termination.decisions import only_evacuated
from leeward.termination.run import Next, Run
from leeward.termination.situation import Situation

JOINS_WITHIN = timedelta(minutes=15)  # as EKS gives a new node
PAUSE = 15  # seconds between two looks for the node


def before_drain(run: Run, situation: Situation, ports: Ports) -> Run | None:
    """Return the step that comes instead of the drain: a pause, or the return to service. None: the drain may begin. A
    drain that has begun continues, and so does one that another cause requires.
    """
    record = situation.record
    if not only_evacuated(record) or "begun" in record.times or record.replacement is None:
        return None
    try:  # first: a node that is returned to service needs the API as well
        nodes = ports.clusters.kubernetes(record.subject.cluster).nodes()
    except (ClusterUnreachableError, ThrottledError) as error:
        return replace(run, next=Next.WAIT, pause=PAUSE, why=f"waiting for an answer: {error}")
    if not record.replacement.launched:
        return _cancelled(run, f"no replacement in another zone: {record.replacement.reason}", ports.claims)
    launched = record.replacement.launched[0]
    if any(node.instance_id == launched and node.ready for node in nodes):
        return None
    now = ports.clock.now()
    if now - record.times.get("replacement", now) > JOINS_WITHIN:
        return _cancelled(run, f"its replacement {launched} has not become a Ready node in time", ports.claims)
    return replace(run, next=Next.WAIT, pause=PAUSE, why=f"its replacement {launched} is not Ready yet")


def _cancelled(run: Run, why: str, claims: Claims) -> Run:
    """Return the node to service; the record says why, for `leeward zone status`."""
    claims.failed(run.instance, why[:500])
    return replace(run, next=Next.CANCEL, why=why[:500])
