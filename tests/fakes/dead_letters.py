"""The dead-letter queue in memory."""

from dataclasses import dataclass

from tests.fakes.calls import Calls


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """One message as an operator finds it."""

    body: str
    reason: str
    message_id: str


class FakeDeadLetters(Calls):
    """`sent` in order."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[DeadLetter] = []

    def send(self, body: str, *, reason: str, message_id: str) -> None:
        """Keep it."""
        self._call("send")
        self.sent.append(DeadLetter(body=body, reason=reason, message_id=message_id))
