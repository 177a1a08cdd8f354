"""The queue's redelivery in memory."""

from collections.abc import Mapping

from tests.fakes.calls import Calls


class FakeRedelivery(Calls):
    """`delays` by receipt handle, in seconds; `queues` that were asked."""

    def __init__(self) -> None:
        super().__init__()
        self.delays: dict[str, int] = {}
        self.queues: set[str] = set()

    def after(self, delays: Mapping[str, int], *, queue: str = "") -> None:
        """Remember."""
        self._call("after")
        self.delays |= dict(delays)
        self.queues.add(queue)
