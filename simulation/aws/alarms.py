"""`ports.monitoring.Alarms` in memory."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from leeward.model.alarm import Alarm


class SimAlarms:
    """Alarms of the simulated account. `known`: those that exist, `rings`: those in state ALARM and since when, in
    seconds. An alarm that is made to ring exists.
    """

    def __init__(self) -> None:
        self.known: set[str] = set()
        self.rings: dict[str, float] = {}

    def ring(self, name: str, now: float = 0.0) -> None:
        """Put the alarm into state ALARM, unless it is in it already."""
        self.known.add(name)
        self.rings.setdefault(name, now)

    def quiet(self, name: str) -> None:
        """Take the alarm out of state ALARM from now on; it exists."""
        self.known.add(name)
        self.rings.pop(name, None)

    def describe(self, names: Iterable[str]) -> Mapping[str, Alarm]:
        """Return those that exist, by name."""
        return {name: self._alarm(name) for name in dict.fromkeys(names) if name in self.known}

    def _alarm(self, name: str) -> Alarm:
        since = self.rings.get(name)
        at = datetime.fromtimestamp(since, UTC) if since is not None else None
        return Alarm(name=name, ringing=since is not None, since=at)
