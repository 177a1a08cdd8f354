"""Recording of the AWS calls of each Lambda function, so that its policy can be compared with them."""

from __future__ import annotations

import threading
from collections import Counter

from local.aws.calls import Call


class Recording:
    """Counts of (function, service:Action); safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[tuple[str, str]] = Counter()

    def add(self, call: Call) -> None:
        """Count a call, if a function made it."""
        if call.function is not None:
            with self._lock:
                self._counts[call.function, call.name] += 1

    def by_function(self) -> dict[str, dict[str, int]]:
        """Return the counts, by function and call, in alphabetical order."""
        with self._lock:
            found = sorted(self._counts.items())
        table: dict[str, dict[str, int]] = {}
        for (function, name), count in found:
            table.setdefault(function, {})[name] = count
        return table

    def clear(self) -> None:
        """Reset the counts."""
        with self._lock:
            self._counts.clear()
