"""Deregistration from load balancers: the targets that still send requests to a node, and until when a drain waits for
them.

The label that excludes the node makes the controller that registered it (AWS Load Balancer Controller, the cloud
provider) deregister it. Nothing is deregistered here, because that controller would put it back.
docs/designs/draining.md says what each kind of target means for a drain."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from leeward.errors import AwsUnreachableError, RetryableError, TerminalError
from leeward.model.load_balancing import Target, TargetKind
from leeward.model.node import Node
from leeward.model.termination import TerminationRecord
from leeward.model.times import format_instant
from leeward.ports import Ports
from leeward.ports.clock import Clock
from leeward.ports.kubernetes import Clusters
from leeward.ports.records import Claims
from leeward.termination import deadlines
from leeward.termination.situation import Situation

NOT_AWAITED = "DeregistrationNotAwaited"  # reason of an Event
UNREACHED = "unreached"  # a key in the record's times
UNREACHED_FOR = timedelta(seconds=30)  # about three calls with their retries
ENDPOINT = "an interface endpoint for elasticloadbalancing, or a NAT gateway (docs/deploy.md)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Awaited:
    """Conditions that a node waits for, one sentence each, and the latest time."""

    what: tuple[str, ...]
    until: datetime

    @property
    def sentences(self) -> tuple[str, ...]:
        """Sentences for people."""
        return tuple(f"{one}, until {format_instant(self.until)}" for one in self.what)


def before_eviction(situation: Situation, started: datetime, node: Node, ports: Ports) -> Awaited | None:
    """Return the targets that stand for the node itself (by instance id): requests arrive through it for pods anywhere,
    and those under way go on until it is deregistered. None: evict. Targets that were waited for once are not read
    again.
    """
    record, now = situation.record, ports.clock.now()
    if "evicting" in record.times:
        return None
    policy = situation.policy.drain
    until = deadlines.deregistered_by(record, policy, started, now, ours_hold=situation.ours_hold)
    running = situation.instance is not None and situation.instance.state == "running"
    if until is not None and now < until and running:
        awaited = _awaited(situation, node, until, lambda target: target.kind is TargetKind.INSTANCE, ports)
        if awaited is not None:
            return awaited
    return None


def before_the_end(situation: Situation, started: datetime, node: Node, ports: Ports) -> Awaited | None:
    """Return the targets at the node's addresses that are still draining: their pods are gone, and while requests may
    be sent to an address no other pod should get it. A pod that stays keeps its target, which is not waited for.
    """
    policy, now = situation.policy.drain, ports.clock.now()
    until = deadlines.held_by(
        situation.record, policy, policy.deregistration_timeout, started, now, ours_hold=situation.ours_hold
    )
    if now >= until:
        return None
    return _awaited(situation, node, until, lambda target: target.kind is TargetKind.IP and target.draining, ports)


def _awaited(
    situation: Situation, node: Node, until: datetime, counts: Callable[[Target], bool], ports: Ports
) -> Awaited | None:
    """Read the targets that count. Load balancers that answer with an error are read again until the time is over. A
    missing permission, or an API that is not reached for half a minute, must not make every drain wait for nothing: an
    Event reports it, and the drain goes on.
    """
    record, instance = situation.record, situation.instance
    if instance is None:
        return None
    try:
        there = [target for target in ports.load_balancers.targets(record.subject.cluster, instance) if counts(target)]
    except AwsUnreachableError as error:
        since = _unreached_since(record, ports.clock, ports.claims)
        if ports.clock.now() - since < UNREACHED_FOR:
            return Awaited(
                what=(f"the load balancers are not reached: {error}",), until=min(until, since + UNREACHED_FOR)
            )
        _give_notice(record, node, f"{error}; in a VPC a drain needs {ENDPOINT}", ports.clock, ports.clusters)
        return None
    except RetryableError as error:
        return Awaited(what=(f"the load balancers do not answer: {error}",), until=until)
    except TerminalError as error:
        _give_notice(record, node, str(error), ports.clock, ports.clusters)
        return None
    return Awaited(what=tuple(sorted(target.named for target in there)), until=until) if there else None


def _unreached_since(record: TerminationRecord, clock: Clock, claims: Claims) -> datetime:
    """Return when the API was first not reached in this termination, written once."""
    since = record.times.get(UNREACHED)
    if since is None:
        since = clock.now()
        claims.note_attempt(record.instance, record.attempt, times={UNREACHED: since})
    return since


def _give_notice(record: TerminationRecord, node: Node, why: str, clock: Clock, clusters: Clusters) -> None:
    kubernetes = clusters.kubernetes(record.subject.cluster)
    message = f"load balancers are not waited for: {why}"[:1000]
    kubernetes.event(node, reason=NOT_AWAITED, message=message, warning=True, now=clock.now())
