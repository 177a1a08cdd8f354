"""One batch of queue records from body to outcome: parse, look up, decide, mark, then act.

Three outcomes a record: done; poison, sent to the dead-letter queue at once; retry, delivered again alone."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

from leeward.errors import LeewardError
from leeward.interruption.decide import decide, poison
from leeward.interruption.decision import Action, Decision, RecordOutcome
from leeward.interruption.effects import Effect, effects_of
from leeward.interruption.fields import MalformedMessageError
from leeward.interruption.lookup import Lookup, look_up
from leeward.interruption.marking import mark_nodes
from leeward.interruption.parse import parse
from leeward.interruption.side_by_side import Each, in_threads
from leeward.model.message import Message
from leeward.ports import Ports

WORKERS = 16  # calls at a time, in one cluster or to AWS


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One queue record. `received`: when it was sent to the queue; `receives`: how often it has been delivered."""

    id: str
    body: str
    received: datetime
    receipt: str = ""
    receives: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordResult:
    """What became of one record, for the log; `warnings` are what was done only in part."""

    record: Record
    message: Message | None
    decision: Decision
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchResult:
    """In the order of the records. `marked`: instance ids of the nodes that got their mark now."""

    results: tuple[RecordResult, ...] = ()
    marked: tuple[str, ...] = ()

    @property
    def failures(self) -> tuple[str, ...]:
        """Records to be delivered again."""
        retried = (result for result in self.results if result.decision.outcome is RecordOutcome.RETRY)
        return tuple(result.record.id for result in retried)


@dataclass(slots=True)
class _Work:
    """A record on its way through the batch."""

    record: Record
    message: Message | None
    decision: Decision
    keys: tuple[str, ...] = ()


def process_batch(
    records: Sequence[Record], ports: Ports, *, workers: int = WORKERS, each: Each = in_threads
) -> BatchResult:
    """Handle every record; raises nothing that is Leeward's own: a record that fails fails alone.

    Redelivered records and duplicates in one batch do nothing twice: an effect carries the key of its cause.
    """
    parsed = [_parse(record) for record in records]
    lookup = look_up([message for message in parsed if isinstance(message, Message)], ports)
    works = [_decide(record, found, lookup, ports) for record, found in zip(records, parsed, strict=True)]
    marking = mark_nodes((work.decision for work in works), lookup.world, ports, workers, each)
    effects: dict[str, Effect] = {}
    for work in works:
        own = dict(effects_of(work.decision, lookup.world, marking, ports)) | _dead_letter(work, ports)
        work.keys = tuple(own)
        effects.update(own)
    outcomes = _run(effects, workers, each)
    unseen = {cluster: f"cluster {cluster} shows no nodes: {error}" for cluster, error in lookup.unseen.items()}
    return BatchResult(
        results=tuple(_result(work, outcomes, unseen) for work in works), marked=tuple(sorted(marking.fresh))
    )


def _parse(record: Record) -> Message | MalformedMessageError:
    try:
        return parse(record.body, received=record.received)
    except MalformedMessageError as error:
        return error


def _decide(record: Record, found: Message | MalformedMessageError, lookup: Lookup, ports: Ports) -> _Work:
    if isinstance(found, MalformedMessageError):
        return _Work(record=record, message=None, decision=poison(str(found)))
    error = lookup.error_for(found)
    if error is not None:
        return _Work(record=record, message=found, decision=_again(found, error))
    return _Work(record=record, message=found, decision=decide(found, lookup.world, now=ports.clock.now()))


def _again(message: Message, error: LeewardError) -> Decision:
    return Decision(
        kind=message.kind,
        outcome=RecordOutcome.RETRY,
        action=Action.NONE,
        reason=f"{type(error).__name__}: {error}",
        at=message.at,
    )


def _dead_letter(work: _Work, ports: Ports) -> dict[str, Effect]:
    if work.decision.outcome is not RecordOutcome.POISON:
        return {}
    record, reason = work.record, work.decision.reason
    return {f"dead letter {record.id}": partial(_bury, record, reason, ports)}


def _bury(record: Record, reason: str, ports: Ports) -> None:
    ports.dead_letters.send(record.body, reason=reason, message_id=record.id)


def _run(effects: Mapping[str, Effect], workers: int, each: Each) -> Mapping[str, str | LeewardError | None]:
    """Every effect once, whatever becomes of the others."""
    if not effects:
        return {}
    return dict(zip(effects, each(_attempt, tuple(effects.values()), workers), strict=True))


def _attempt(effect: Callable[[], str | None]) -> str | LeewardError | None:
    try:
        return effect()
    except LeewardError as error:
        return error


def _result(work: _Work, outcomes: Mapping[str, str | LeewardError | None], unseen: Mapping[str, str]) -> RecordResult:
    mine = [outcomes[key] for key in work.keys]
    error = next((outcome for outcome in mine if isinstance(outcome, LeewardError)), None)
    decision = work.decision
    if error is not None:
        why = f"{decision.reason}; {type(error).__name__}: {error}"
        decision = replace(decision, outcome=RecordOutcome.RETRY, reason=why)
    warnings = [outcome for outcome in mine if isinstance(outcome, str)]
    warnings += sorted({unseen[node.cluster] for node in decision.nodes if node.cluster and node.cluster in unseen})
    return RecordResult(record=work.record, message=work.message, decision=decision, warnings=tuple(warnings))
