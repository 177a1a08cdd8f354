"""`ports.Alarms` in memory."""

from collections.abc import Iterable


class SimAlarms:
    """`known`: those that exist, `rings`: those in state ALARM. An alarm that is made to ring exists."""

    def __init__(self) -> None:
        self.known: set[str] = set()
        self.rings: set[str] = set()

    def ring(self, name: str) -> None:
        """From now on."""
        self.known.add(name)
        self.rings.add(name)

    def quiet(self, name: str) -> None:
        """From now on; it exists."""
        self.known.add(name)
        self.rings.discard(name)

    def ringing(self, names: Iterable[str]) -> tuple[str, ...]:
        """In the names' order; who does not exist rings."""
        return tuple(name for name in dict.fromkeys(names) if name in self.rings or name not in self.known)
