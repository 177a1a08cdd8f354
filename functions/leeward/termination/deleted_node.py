"""Instances without a Node in the cluster: one that never joined, or one whose Node was deleted while it drains.

The second kind still has pods. Their kubelet stops them in their grace period, the Eviction API still takes requests
for them, and the pod garbage collector deletes the rest within about a minute. So the drain goes on by the name that
the record has noted, and the empty instance keeps its settle time (docs/designs/draining.md)."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from leeward.model.node import LONG_AGO, Node, disruption_taint
from leeward.model.termination import TerminationRecord
from leeward.ports.clock import Clock
from leeward.ports.kubernetes import Kubernetes
from leeward.termination import deadlines
from leeward.termination.drain_pause import pause_drain
from leeward.termination.run import Next, Run
from leeward.termination.situation import Situation

INITIALIZED_WITHIN = timedelta(seconds=60)  # a Node that has registered; the cloud controller takes seconds


def last_known(situation: Situation, started: datetime, kubernetes: Kubernetes, now: datetime) -> Node | None:
    """Return the deleted Node of the instance by its noted name, for a drain whose time is not over. None: no Node was
    noted, or another instance has its name.
    """
    record = situation.record
    name = record.subject.node
    over = deadlines.out_of_time(record, replace(situation.policy.drain, force=False), started, now)
    if not name or over is not None or kubernetes.node(name) is not None:
        return None
    return _deleted(name, record)


def without_node(run: Run, situation: Situation, started: datetime, uninitialized: Sequence[Node], clock: Clock) -> Run:
    """Wait for the cloud controller where it has not initialized a Node yet: it may be the instance's, and take pods
    between this look and the termination. Otherwise there is nothing to drain.
    """
    end = started + INITIALIZED_WITHIN
    if uninitialized and clock.now() < end:
        names = ", ".join(node.name for node in uninitialized)
        why = f"no Node of the cluster stands for it yet; the cloud controller has to initialize {names}"
        return pause_drain(run, situation, started, why, clock, hint=5, moments=[end])
    return replace(run, next=Next.DRAINED, pause=0, why="no Node of the cluster stands for it: nothing to drain")


def _deleted(name: str, record: TerminationRecord) -> Node:
    """Build the Node as far as a drain needs it. It is not Ready: no volume is waited for that no Node can release."""
    return Node(
        name=name,
        uid=name,  # tells its Events apart
        resource_version="",
        provider_id=f"aws:///{record.subject.zone}/{record.instance}",
        labels={},
        annotations={},
        taints=(disruption_taint(record.deployment),),
        unschedulable=True,
        ready=False,
        deleting=True,
        created=LONG_AGO,
    )
