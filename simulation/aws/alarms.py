"""`ports.monitoring.Alarms` in memory."""

from collections.abc import Iterable


class SimAlarms:
    """Alarms of the simulated account. `known`: those that exist, `rings`: those in state ALARM. An alarm that is made
    to ring exists.
    """

    def __init__(self) -> None:
        self.known: set[str] = set()
        self.rings: set[str] = set()

    def ring(self, name: str) -> None:
        """Put the alarm into state ALARM from now on."""
        self.known.add(name)
        self.rings.add(name)

    def quiet(self, name: str) -> None:
        """Take the alarm out of state ALARM from now on; it exists."""
        self.known.add(name)
        self.rings.discard(name)

    def ringing(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return the names in state ALARM, in the order of `names`; an alarm that does not exist counts as ringing."""
        return tuple(name for name in dict.fromkeys(names) if name in self.rings or name not in self.known)
