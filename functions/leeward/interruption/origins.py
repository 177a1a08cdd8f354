"""Split of a batch by the account and Region in which its messages were written.

A deployment with clusters in several accounts handles the messages of each with ports that know the clusters there
alone: a message acts on nothing in another account, and waits for none that does not answer."""

from collections.abc import Sequence

from leeward.errors import LeewardError
from leeward.interruption.batch import CLUSTERS, WORKERS, BatchResult, Record, RecordResult, process_batch
from leeward.interruption.parse import parse
from leeward.isolation import Executor, attempt, in_threads
from leeward.model.message import ExecutionEnded, NoOp
from leeward.ports import Ports

Origin = tuple[str, str]


def process_by_origin(
    records: Sequence[Record], ports: Ports, *, workers: int = WORKERS, each: Executor = in_threads
) -> BatchResult:
    """Handle every record as `process_batch` does, those of each account and Region apart and at the same time."""
    if not ports.places:
        return process_batch(records, ports, workers=workers, each=each)
    places: dict[Origin | None, list[int]] = {}
    for number, record in enumerate(records):
        places.setdefault(origin_of(record), []).append(number)

    def process(origin: Origin | None) -> BatchResult:
        there = ports.at(*origin) if origin else ports
        return process_batch([records[number] for number in places[origin]], there, workers=workers, each=each)

    results: dict[int, RecordResult] = {}
    tainted: set[str] = set()
    for numbers, result in zip(places.values(), each(process, tuple(places), CLUSTERS), strict=True):
        results |= dict(zip(numbers, result.results, strict=True))
        tainted.update(result.tainted)
    return BatchResult(results=tuple(results[number] for number in sorted(results)), tainted=tuple(sorted(tainted)))


def origin_of(record: Record) -> Origin | None:
    """Return the account and Region that EventBridge or Auto Scaling has written into the message; None for a message
    about no instance.
    """
    message = attempt(lambda: parse(record.body, received=record.received))
    if isinstance(message, LeewardError | ExecutionEnded | NoOp):
        return None
    return message.account, message.region
