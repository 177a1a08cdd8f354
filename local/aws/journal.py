"""What became of each instance, word by word: EC2's own states and the lifecycle states of its group, in their order.

EC2's words are lower case (``running``), Auto Scaling's begin with a capital (``Terminating:Wait``). A state that lasts
a moment is in here too, where somebody who polls would miss it.
"""

from __future__ import annotations

from collections import OrderedDict

_KEPT_INSTANCES = 5_000


class Journal:
    """The words by instance id. All methods expect the caller to hold the model's lock."""

    def __init__(self) -> None:
        self._words: OrderedDict[str, list[str]] = OrderedDict()

    def note(self, instance_id: str, word: str) -> None:
        """Write one word; the same word again is none."""
        words = self._words.setdefault(instance_id, [])
        last = next((known for known in reversed(words) if known.islower() == word.islower()), None)
        if last != word:
            words.append(word)
        while len(self._words) > _KEPT_INSTANCES:
            self._words.popitem(last=False)

    def of(self, instance_id: str) -> list[str]:
        """Everything about one instance, oldest first."""
        return list(self._words.get(instance_id, ()))
