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
            for number in after.active_commands:
                for group, count in _shrinks(after, number).items():
                    self._books[group].most += count
        if after.ended is not None and not (before is not None and same and before.ended is not None):
            self._settle(after)

    def _settle(self, record: DisruptionRecord) -> None:
        """Settle an ended run: `gone` took what was allowed, and what was launched for it is meant to stay. What is
        certainly owed is judged by all commands of a group together: one that shrinks it has offset what another made
        grow.
        """
        by_group, settled = Counter[str](), Counter[str]()
        for number, command in record.active_commands.items():
            ended = [name for name in command.nodes if record.ends.get(record.nodes[name]) == GONE]
            gone = Counter(_group(record, name) for name in ended)
            launched = _launched(record, number) if ended else Counter[str]()
            allowed = _shrinks(record, number) if record.requested else Counter[str]()
            for group in {*launched, *gone, *allowed}:
                grown = launched[group] - gone[group]
                by_group[group] += grown
                settled[group] += max(grown, 0) + max(allowed[group] - max(-grown, 0), 0)
        for group in {*by_group, *settled} & self._books.keys():
            book = self._books[group]
            book.written_off(max(by_group[group], 0))
            book.most = max(book.most - settled[group], book.least)


def _shrinks(record: DisruptionRecord, number: int) -> Counter[str]:
    """Return the nodes of a command whose termination is requested less those launched for it, by group; only groups
    that become smaller. Each command by itself: one that fails leaves its launches to be offset, and the others shrink
    their groups all the same.
    """
    nodes = Counter(_group(record, name) for name in record.active_commands[number].nodes)
    nodes.subtract(_launched(record, number))
    return Counter({group: count for group, count in nodes.items() if count > 0})


def _launched(record: DisruptionRecord, number: int) -> Counter[str]:
    return Counter(record.launched[new].group for new in record.new_of(number))


def _group(record: DisruptionRecord, node: str) -> str:
    return record.members.get(node, "")
