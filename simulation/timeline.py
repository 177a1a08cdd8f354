"""Virtual time: what happens when, and the named streams of chance. Decides nothing about what happens."""

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from random import Random

START = datetime(2026, 3, 2, tzinfo=UTC).timestamp()  # a Monday, at midnight


FEWEST = 1024  # entries before the heap is searched for cancelled ones


@dataclass(slots=True, eq=False)
class Entry:
    """Entry of the timeline. `cancel()` is cheap: the entry stays in the heap for a while and does nothing."""

    when: float
    sequence: int
    callback: Callable[[], None] | None
    name: str

    def cancel(self) -> None:
        """Prevent the callback."""
        self.callback = None


class Timeline:
    """Heap of due entries; entries of the same moment happen in the order in which they were added.

    `afterwards` runs after each entry, with its name: the invariants hang there.
    """

    def __init__(self, start: float = START) -> None:
        self._now = start
        self._instant = start, datetime.fromtimestamp(start, UTC)
        self._sequence = 0
        self._heap: list[tuple[float, int, Entry]] = []
        self._reconcile_at = FEWEST
        self.happened = 0
        self.stopped = False  # nothing more happens, even if entries are due
        self.afterwards: Callable[[str], None] = lambda _name: None

    def now(self) -> float:
        """Return the seconds since 1970."""
        return self._now

    def instant(self) -> datetime:
        """Return the same as an aware datetime in UTC."""
        if self._instant[0] != self._now:
            self._instant = self._now, datetime.fromtimestamp(self._now, UTC)
        return self._instant[1]

    def at(self, when: float, callback: Callable[[], None], name: str) -> Entry:
        """Schedule the callback then; a moment in the past happens at once, after everything already due."""
        self._sequence += 1
        entry = Entry(max(when, self._now), self._sequence, callback, name)
        heapq.heappush(self._heap, (entry.when, entry.sequence, entry))
        if len(self._heap) > self._reconcile_at:
            self._sweep()
        return entry

    def _sweep(self) -> None:
        """Drop cancelled entries, or time-outs of years pile up. Once for each doubling, so it costs little."""
        self._heap = [item for item in self._heap if item[2].callback is not None]
        heapq.heapify(self._heap)
        self._reconcile_at = max(FEWEST, 2 * len(self._heap))

    def after(self, seconds: float, callback: Callable[[], None], name: str) -> Entry:
        """Schedule the callback so many seconds from now."""
        return self.at(self._now + seconds, callback, name)

    def every(self, seconds: float, callback: Callable[[], None], name: str) -> None:
        """Schedule the callback repeatedly, first in `seconds`."""

        def again() -> None:
            self.after(seconds, again, name)
            callback()

        self.after(seconds, again, name)

    def run_until(self, when: float) -> None:
        """Run everything that is due up to `when`, each at its moment."""
        while self._heap and self._heap[0][0] <= when and not self.stopped:
            entry = heapq.heappop(self._heap)[2]
            if entry.callback is None:
                continue
            self._now = entry.when
            callback, entry.callback = entry.callback, None
            callback()
            self.happened += 1
            self.afterwards(entry.name)
        self._now = max(self._now, when)


class Streams:
    """Random numbers by name: taking one more from one stream moves no other."""

    def __init__(self, seed: int | str) -> None:
        self._seed = seed
        self._streams: dict[str, Random] = {}

    def stream(self, name: str) -> Random:
        """Return the stream; the same seed and name give the same numbers in every process."""
        if name not in self._streams:
            self._streams[name] = Random(f"{self._seed}/{name}")
        return self._streams[name]
