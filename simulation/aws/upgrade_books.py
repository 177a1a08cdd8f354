"""Effects of node group upgrades on the books: launches that an upgrade leaves to others who have scaled its group."""

from collections.abc import Mapping

from leeward.upgrade.record import UpgradeRecord
from simulation.aws.books import Book


class UpgradeBooks:
    """Observer of every write of an upgrade's record (`SimUpgrades`). `books` by group."""

    def __init__(self, books: Mapping[str, Book]) -> None:
        self._books = books

    def wrote(self, before: UpgradeRecord | None, after: UpgradeRecord) -> None:
        """Keep launches written off that the sizes of others have made theirs, when a later upgrade's record comes."""
        if before is None or before.began == after.began or before.others_scaled is None:
            return
        book = self._books[after.group]
        book.least = max(book.least - before.launched, 0)
