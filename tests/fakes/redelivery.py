"""The queue's redelivery in memory."""

from collections.abc import Mapping

from tests.fakes.calls import Calls


class FakeRedelivery(Calls):
    """`delays` by receipt handle, in seconds."""

    def __init__(self) -> None:
        super().__init__()
        self.delays: dict[str, int] = {}

    def after(self, delays: Mapping[str, int]) -> None:
        """Remember."""
        self._call("after")
        self.delays |= dict(delays)
