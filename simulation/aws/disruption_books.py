"""Effects of disruption runs on the books: sizes that a run means to change are intended, and no debt.

A run that requests terminations may shrink its nodes' groups by as many; when it has ended, launches that it made and
kept are meant to stay. Any other launch of it is owed, as every launch is."""

from collections import Counter
from collections.abc import Mapping

from leeward.disruption.record import GONE, DisruptionRecord
from simulation.aws.books import Book


class DisruptionBooks:
    """Observer of every write of a run's record (`SimDisruptions`). `books` by group."""

    def __init__(self, books: Mapping[str, Book]) -> None:
        self._books = books

    def wrote(self, before: DisruptionRecord | None, after: DisruptionRecord) -> None:
        """Update the books: `requested` allows, `ended` settles; each happens once in a run."""
        same = before is not None and before.number == after.number
        if after.requested and not (before is not None and same and before.requested):
            for group, count in _shrinks(after).items():
                self._books[group].most += count
        if after.ended is not None and not (before is not None and same and before.ended is not None):
            self._settle(after)

    def _settle(self, record: DisruptionRecord) -> None:
        """Settle an ended run: `gone` took what was allowed, and what was launched for it is meant to stay."""
        launched, gone = Counter[str](), Counter[str]()
        for number, command in record.active_commands.items():
            ended = [name for name in command.nodes if record.ends.get(record.nodes[name]) == GONE]
            gone.update(_group(record, name) for name in ended)
            if ended:
                launched.update(record.launched[new].group for new in record.new_of(number))
        allowed = _shrinks(record) if record.requested else Counter[str]()
        for group in {*launched, *gone, *allowed} & self._books.keys():
            book = self._books[group]
            grown = max(launched[group] - gone[group], 0)
            unused = max(allowed[group] - max(gone[group] - launched[group], 0), 0)
            book.least = max(book.least - grown, 0)
            book.most = max(book.most - grown - unused, book.least)


def _shrinks(record: DisruptionRecord) -> Counter[str]:
    """Return the nodes whose termination is requested less those launched, by group; only groups that
    become smaller.
    """
    found = Counter(_group(record, name) for name in record.to_terminate)
    found.subtract(record.launched[new].group for number in record.active_commands for new in record.new_of(number))
    return Counter({group: count for group, count in found.items() if count > 0})


def _group(record: DisruptionRecord, node: str) -> str:
    return record.members.get(node, "")
