"""Disruption rounds as the books see them: sizes that a round means to change are its owners' wish, and no debt.

A round that tells nodes to go may shrink their groups by as many; when it has ended, what it launched and kept is meant
to stay. Anything else that it launched is owed, as every launch is."""

from collections import Counter
from collections.abc import Mapping

from leeward.disruption.record import GONE, RoundRecord
from simulation.aws.books import Book


class RoundBooks:
    """Told of every write of a round's record (`SimRounds`). `books` by group."""

    def __init__(self, books: Mapping[str, Book]) -> None:
        self._books = books

    def wrote(self, before: RoundRecord | None, after: RoundRecord) -> None:
        """`told` allows, `ended` settles; each happens once in a round."""
        same = before is not None and before.number == after.number
        if after.told and not (before is not None and same and before.told):
            for group, count in _shrinks(after).items():
                self._books[group].most += count
        if after.ended is not None and not (before is not None and same and before.ended is not None):
            self._settle(after)

    def _settle(self, record: RoundRecord) -> None:
        """`gone` took what was allowed, and what was launched for it is meant to stay where it is."""
        launched, gone = Counter[str](), Counter[str]()
        for number, command in record.standing.items():
            ended = [name for name in command.nodes if record.ends.get(record.nodes[name]) == GONE]
            gone.update(_group(record, name) for name in ended)
            if ended:
                launched.update(record.places[new].split("/")[0] for new in record.new_of(number))
        allowed = _shrinks(record) if record.told else Counter[str]()
        for group in {*launched, *gone, *allowed} & self._books.keys():
            book = self._books[group]
            grown = max(launched[group] - gone[group], 0)
            unused = max(allowed[group] - max(gone[group] - launched[group], 0), 0)
            book.least = max(book.least - grown, 0)
            book.most = max(book.most - grown - unused, book.least)


def _shrinks(record: RoundRecord) -> Counter[str]:
    """Nodes told to go less those launched, by group; only groups that become smaller."""
    found = Counter(_group(record, name) for name in record.going)
    found.subtract(record.places[new].split("/")[0] for number in record.standing for new in record.new_of(number))
    return Counter({group: count for group, count in found.items() if count > 0})


def _group(record: RoundRecord, node: str) -> str:
    return record.members.get(node, "")
