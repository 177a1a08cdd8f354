"""Processing of one batch of queue records from body to outcome: parse, look up, decide, claim and start, taint, write
Events.

A record has three outcomes: done; malformed, sent to the dead-letter queue at once; retry, delivered again alone.

Messages about different clusters are handled concurrently, and none of them waits for another's API server. Within a
cluster, claims and starts come before all writes to Kubernetes."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial

from leeward.errors import ClusterGoneError, ClusterUnreachableError, LeewardError
from leeward.interruption.decide import decide, malformed
from leeward.interruption.decision import Decision, NodeAction, NodeDecision, RecordOutcome
from leeward.interruption.effects import (
    Done,
    Effect,
    TaintResult,
    actions_of,
    claim_key,
    events_of,
    logged_for,
    taint_nodes,
)
from leeward.interruption.fields import MalformedMessageError
from leeward.interruption.lookup import Lookup, look_up_clusters, look_up_instances, named_or_failed
from leeward.interruption.parse import parse
from leeward.isolation import Executor, attempt, in_threads
from leeward.model.message import InterruptionMessage, Message
from leeward.model.termination import ABRUPT, Status, TerminationRecord
from leeward.ports import Ports
from leeward.ports.clock import Clock

WORKERS = 16  # calls at a time, in one cluster or to AWS
CLUSTERS = 16  # clusters at a time
READ_SECONDS = 4.0  # for the nodes of a cluster; without them the drain step looks up its node itself
WRITE_SECONDS = 3.0  # for taints and Events in a cluster; the drain taints nodes without a taint
TAKEN = "taken"  # counter of the instances that EC2 takes, of all clusters: they share the limits of AWS


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """Queue record. `received`: when it was sent to the queue; `receives`: how often it has been delivered; `queue`:
    the ARN of its queue, empty for the interruption queue.
    """

    id: str
    body: str
    received: datetime
    receipt: str = ""
    receives: int = 1
    queue: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordResult:
    """Result of one record, for the log; `warnings` name effects that were done only in part."""

    record: Record
    message: InterruptionMessage | None
    decision: Decision
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchResult:
    """Results in the order of the records. `tainted`: instance ids of the nodes that were tainted now."""

    results: tuple[RecordResult, ...] = ()
    tainted: tuple[str, ...] = ()

    @property
    def failures(self) -> tuple[str, ...]:
        """Records to be delivered again."""
        retried = (result for result in self.results if result.decision.outcome is RecordOutcome.RETRY)
        return tuple(result.record.id for result in retried)


@dataclass(slots=True)
class _Work:
    """Record in progress within the batch."""

    record: Record
    message: InterruptionMessage | None
    decision: Decision
    keys: tuple[str, ...] = ()


@dataclass(slots=True)
class _Part:
    """Messages that are about the same clusters, by their place in the batch."""

    clusters: frozenset[str]
    places: list[int] = field(default_factory=list)


def process_batch(
    records: Sequence[Record], ports: Ports, *, workers: int = WORKERS, each: Executor = in_threads
) -> BatchResult:
    """Handle every record. Raises nothing: a record that fails, with whatever error, does not affect the others.

    Redelivered records and duplicates in one batch repeat no effect: an effect carries the key of its cause.
    """
    read = [attempt(partial(parse, record.body, received=record.received)) for record in records]
    parsed = named_or_failed(read, ports.instances)
    lookup = attempt(lambda: look_up_instances([message for message in parsed if isinstance(message, Message)], ports))
    if isinstance(lookup, LeewardError):
        parsed, lookup = [lookup if isinstance(message, Message) else message for message in parsed], Lookup()
    batch = _Batch(records=records, parsed=parsed, lookup=lookup, ports=ports, workers=workers, each=each)
    parts = tuple(_parts(parsed, lookup))
    results: dict[int, RecordResult] = {}
    tainted: set[str] = set()
    for part, outcome in zip(
        parts, each(lambda part: attempt(lambda: batch.handle(part)), parts, CLUSTERS), strict=True
    ):
        if isinstance(outcome, LeewardError):
            results |= {place: batch.failed(place, outcome) for place in part.places}
        else:
            results |= dict(zip(part.places, outcome[0], strict=True))
            tainted |= outcome[1].fresh.keys()
    return BatchResult(results=tuple(results[place] for place in range(len(records))), tainted=tuple(sorted(tainted)))


def _parts(parsed: Sequence[InterruptionMessage | LeewardError], lookup: Lookup) -> Iterator[_Part]:
    """Put every record in one part. Those about no cluster of ours, and unreadable ones, share a part of their own."""
    parts: dict[frozenset[str], _Part] = {}
    for place, message in enumerate(parsed):
        named = attempt(partial(lookup.clusters_of, message)) if isinstance(message, Message) else frozenset[str]()
        clusters = frozenset[str]() if isinstance(named, LeewardError) else named
        parts.setdefault(clusters, _Part(clusters=clusters)).places.append(place)
    yield from parts.values()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Batch:
    """Inputs shared by the parts of one batch."""

    records: Sequence[Record]
    parsed: Sequence[InterruptionMessage | LeewardError]
    lookup: Lookup
    ports: Ports
    workers: int
    each: Executor

    def handle(self, part: _Part) -> tuple[list[RecordResult], TaintResult]:
        """Return the results of one part, in its order, and the nodes that it has tainted."""
        messages = [one for place in part.places if isinstance(one := self.parsed[place], Message)]
        reading = self.ports.for_seconds(READ_SECONDS)
        lookup = look_up_clusters(self.lookup, part.clusters, messages, reading, self.each)
        works = _counted([self._decide(place, lookup) for place in part.places], self.ports)
        actions: dict[str, Effect] = {}
        for work in works:
            effects = (*actions_of(work.decision, self.ports, lookup.recorded.open), *_dead_letter(work, self.ports))
            own = logged_for(work.record.id, work.message, effects)
            work.keys = tuple(own)
            actions.update(own)
        outcomes = self._run(actions)
        writing = self.ports.for_seconds(WRITE_SECONDS)
        tainting = taint_nodes(_to_taint(works, outcomes), lookup.world, writing, self.workers, self.each)
        outcomes |= self._write_events(works, outcomes, tainting, lookup, writing)
        return [_result(work, outcomes, lookup, tainting) for work in works], tainting

    def failed(self, place: int, error: LeewardError) -> RecordResult:
        """Return the result of a record whose part has failed as a whole."""
        message = self.parsed[place]
        known = message if isinstance(message, Message) else None
        return RecordResult(record=self.records[place], message=known, decision=_again(known, error))

    def _decide(self, place: int, lookup: Lookup) -> _Work:
        record, message = self.records[place], self.parsed[place]
        if isinstance(message, MalformedMessageError):
            return _Work(record=record, message=None, decision=malformed(str(message)))
        if isinstance(message, LeewardError):
            return _Work(record=record, message=None, decision=_again(None, message))
        decision = attempt(lambda: _decision(message, record, lookup, self.ports.clock))
        if isinstance(decision, LeewardError):
            decision = _again(message, decision)
        return _Work(record=record, message=message, decision=decision)

    def _run(self, effects: Mapping[str, Effect]) -> dict[str, Done | LeewardError]:
        """Run every effect once; the failure of one does not stop the others."""
        return dict(zip(effects, self.each(attempt, tuple(effects.values()), self.workers), strict=True))

    def _write_events(
        self,
        works: Sequence[_Work],
        outcomes: Mapping[str, Done | LeewardError],
        tainting: TaintResult,
        lookup: Lookup,
        ports: Ports,
    ) -> dict[str, Done | LeewardError]:
        """Write Events on nodes that were claimed or cordoned now; a node whose action failed gets its Event when the
        action has succeeded.
        """
        events: dict[str, Effect] = {}
        for work in works:
            nodes = [
                (node, _record(node, outcomes))
                for node in work.decision.nodes
                if (_is_open(node, outcomes) if node.cause else node.instance not in tainting.failed)
            ]
            effects = events_of(work.decision, work.message, nodes, lookup.world, ports)
            own = logged_for(work.record.id, work.message, effects)
            work.keys += tuple(own)
            events.update(own)
        return self._run(events)


def _counted(works: list[_Work], ports: Ports) -> list[_Work]:
    """Add to each cause by which EC2 takes an instance how many it takes within about a minute: a storm is paced
    differently, however its messages are cut into batches. A message that comes back was counted before. Where the
    table does not answer, those of this batch count.
    """
    nodes = [(node, work) for work in works for node in work.decision.nodes]
    found = [(node.instance, work) for node, work in nodes if node.cause and node.cause.kind in ABRUPT]
    taken, new = {instance for instance, _ in found}, {one for one, work in found if work.record.receives == 1}
    if not taken:
        return works
    counted = attempt(lambda: ports.claims.count(TAKEN, len(new), ports.clock.now()))
    together = max(counted, len(taken)) if isinstance(counted, int) else len(taken)
    for work in works:
        decided = tuple(
            replace(node, cause=replace(node.cause, together=together))
            if node.cause and node.cause.kind in ABRUPT
            else node
            for node in work.decision.nodes
        )
        work.decision = replace(work.decision, nodes=decided)
    return works


def _decision(message: InterruptionMessage, record: Record, lookup: Lookup, clock: Clock) -> Decision:
    error = lookup.error_for(message)
    if error is not None:
        return _again(message, error)
    now = clock.now()
    return decide(message, lookup.world, now=now, waited=now - record.received)


def _again(message: InterruptionMessage | None, error: LeewardError) -> Decision:
    return Decision(
        kind=message.kind if message else None,
        outcome=RecordOutcome.RETRY,
        action=NodeAction.NONE,
        reason=f"{type(error).__name__}: {error}",
        at=message.at if message else None,
    )


def _dead_letter(work: _Work, ports: Ports) -> Iterator[tuple[str, Effect]]:
    if work.decision.outcome is RecordOutcome.MALFORMED:
        yield f"dead letter {work.record.id}", partial(_bury, work.record, work.decision.reason, ports)


def _bury(record: Record, reason: str, ports: Ports) -> Done:
    ports.dead_letters.send(record.body, reason=reason, message_id=record.id)
    return Done()


def _to_taint(
    works: Sequence[_Work], outcomes: Mapping[str, Done | LeewardError]
) -> Iterator[tuple[Decision, NodeDecision]]:
    """Yield all nodes but those whose record had been closed. A claim that failed is retried in a second: its node
    takes no new pods until then.
    """
    for work in works:
        for node in work.decision.nodes:
            record = _record(node, outcomes)
            if record is None or record.status is Status.OPEN:
                yield work.decision, node


def _record(node: NodeDecision, outcomes: Mapping[str, Done | LeewardError]) -> TerminationRecord | None:
    """Return the termination record as the node's claim left it; None without a claim, or where it failed."""
    claim = outcomes.get(claim_key(node.cause)) if node.cause else None
    return claim.record if isinstance(claim, Done) else None


def _is_open(node: NodeDecision, outcomes: Mapping[str, Done | LeewardError]) -> bool:
    record = _record(node, outcomes)
    return record is not None and record.status is Status.OPEN


def _result(
    work: _Work, outcomes: Mapping[str, Done | LeewardError], lookup: Lookup, tainting: TaintResult
) -> RecordResult:
    mine = [outcomes[key] for key in work.keys]
    decision = work.decision
    failures = [outcome for outcome in mine if isinstance(outcome, LeewardError)]
    failures += [error for node in decision.nodes if (error := _not_cordoned(node, lookup, tainting)) is not None]
    if failures:
        why = f"{decision.reason}; {type(failures[0]).__name__}: {failures[0]}"
        decision = replace(decision, outcome=RecordOutcome.RETRY, reason=why)
    warnings = [outcome.warning for outcome in mine if isinstance(outcome, Done) and outcome.warning]
    warnings += [
        f"{node.instance} is not tainted yet, the drain will do it: {tainting.failed[node.instance]}"
        for node in decision.nodes
        if _is_open(node, outcomes) and node.instance in tainting.failed
    ]
    unseen = sorted({node.cluster for node in decision.nodes if node.cluster and node.cluster in lookup.unseen})
    warnings += [f"cluster {cluster} shows no nodes: {lookup.unseen[cluster]}" for cluster in unseen]
    return RecordResult(record=work.record, message=work.message, decision=decision, warnings=tuple(warnings))


def _not_cordoned(node: NodeDecision, lookup: Lookup, tainting: TaintResult) -> LeewardError | None:
    """Return the error of a cordon. A cordon is the only action, so a failed one fails the record; so does an API that
    listed no nodes. In a cluster that EKS has deleted there is nothing to cordon.
    """
    if node.action is not NodeAction.CORDON or isinstance(lookup.unseen.get(node.cluster or ""), ClusterGoneError):
        return None
    if node.cluster in lookup.world.unseen:
        return ClusterUnreachableError(f"cluster {node.cluster} shows no nodes")
    return tainting.failed.get(node.instance)
