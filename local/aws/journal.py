"""Journal of each instance's states: EC2's own states and the lifecycle states of its group, in their order.

EC2's states are lower case (``running``), Auto Scaling's begin with a capital (``Terminating:Wait``). Even a state that
lasts only a moment is recorded, which a poller would miss.
"""

from __future__ import annotations

from collections import OrderedDict

_KEPT_INSTANCES = 5_000


class Journal:
    """States by instance id. All methods expect the caller to hold the model's lock."""

    def __init__(self) -> None:
        self._words: OrderedDict[str, list[str]] = OrderedDict()

    def note(self, instance_id: str, word: str) -> None:
        """Write one state; a repeated state is not written."""
        words = self._words.setdefault(instance_id, [])
        last = next((known for known in reversed(words) if known.islower() == word.islower()), None)
        if last != word:
            words.append(word)
        while len(self._words) > _KEPT_INSTANCES:
            self._words.popitem(last=False)

    def of(self, instance_id: str) -> list[str]:
        """Return all states of an instance, oldest first."""
        return list(self._words.get(instance_id, ()))
