"""Effects of node group upgrades on the books: launches that an upgrade leaves to others who have scaled its group."""

from collections.abc import Mapping

from leeward.upgrade.record import UpgradeRecord
from simulation.aws.books import Book


class UpgradeBooks:
    """Observer of every write of an upgrade's record (`SimUpgrades`). `books` by group."""

    def __init__(self, books: Mapping[str, Book]) -> None:
        self._books = books
        self._written_off: dict[str, int] = {}  # by group: launches of its present upgrade

    def wrote(self, before: UpgradeRecord | None, after: UpgradeRecord) -> None:
        """Keep launches written off that the sizes of others have made theirs: when a later upgrade's record comes, and
        when a rollback measures the sizes again, which are those of others by then.
        """
        if after.group in self._books:
            self._books[after.group].upgrades(upgrading=after.launched > 0 and after.resumable)
        if before is None:
            return
        another = before.began != after.began
        if before.others_scaled is not None and (another or after.others_scaled is None):
            book, known = self._books[after.group], self._written_off.get(after.group, 0)
            book.written_off(before.launched - known)
            self._written_off[after.group] = before.launched
        if another:
            self._written_off.pop(after.group, None)
