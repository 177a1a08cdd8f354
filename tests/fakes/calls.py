"""What every fake shares: it remembers its calls, so that a test can count them, and fails where a test asks."""

from collections import Counter


class Calls:
    """`asked` counts calls by method. `fail("claim", error, times=1)` makes the next calls of a method raise."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self._failures: dict[str, list[Exception]] = {}
        self._broken: dict[str, Exception] = {}

    def fail(self, method: str, error: Exception, times: int | None = None) -> None:
        """`times` None: until `heal`."""
        if times is None:
            self._broken[method] = error
        else:
            self._failures.setdefault(method, []).extend([error] * times)

    def heal(self) -> None:
        """Everything works again."""
        self._failures.clear()
        self._broken.clear()

    def _call(self, method: str) -> None:
        self.asked[method] += 1
        planned = self._failures.get(method)
        if planned:
            raise planned.pop(0)
        if method in self._broken:
            raise self._broken[method]
