"""Recording of the AWS calls of each Lambda function, so that its policy can be compared with them."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterable
from typing import Any

from local.aws.calls import Call
from local.aws.requested import Requested


class Recording:
    """Counts of (function, service:Action), and the different requests behind them; safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[tuple[str, str]] = Counter()
        self._requests: set[tuple[str, str, str]] = set()  # function, call, resource and context as JSON

    def add(self, call: Call, resources: Iterable[Requested]) -> None:
        """Count a call and note its resources, if a function made it."""
        if call.function is not None:
            with self._lock:
                self._counts[call.function, call.name] += 1
                self._requests |= {(call.function, call.name, json.dumps(one.as_json())) for one in resources}

    def by_function(self) -> dict[str, dict[str, int]]:
        """Return the counts, by function and call, in alphabetical order."""
        with self._lock:
            found = sorted(self._counts.items())
        table: dict[str, dict[str, int]] = {}
        for (function, name), count in found:
            table.setdefault(function, {})[name] = count
        return table

    def requests(self) -> list[dict[str, Any]]:
        """Return each different request once: function, action, resource, context."""
        with self._lock:
            found = sorted(self._requests)
        return [{"function": function, "action": name, **json.loads(one)} for function, name, one in found]

    def clear(self) -> None:
        """Reset counts and requests."""
        with self._lock:
            self._counts.clear()
            self._requests.clear()
