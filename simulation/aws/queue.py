"""SQS with its Lambda event source: batches, visibility, redelivery, redrive to the dead-letter queue.

Two queues lead to fn interruption, one of them with the state changes and lifecycle actions of the whole account; they
share a dead-letter queue."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from simulation.invocations import Ended, Invocations
from simulation.journal import Journal
from simulation.timeline import Entry, Timeline

BATCH = 100
WINDOW = 1.0  # seconds that the event source collects
RECEIVES = 60
FUNCTION_TIMEOUT = 30.0
VISIBILITY = 2 * FUNCTION_TIMEOUT
AT_ONCE = 10  # batches: MaximumConcurrency of the event source, as infra sets it
STATE_CHANGES_AT_ONCE = 2
AGAIN = 5.0  # seconds between two polls of a queue that is away
SIZES = (1, 3, 10, 30, BATCH, BATCH)  # of batches, while few messages wait: how Lambda cuts them is not documented
READ_AT_ONCE = 5  # batches that Lambda reads when messages become available ("Using Lambda with Amazon SQS")


@dataclass(slots=True, kw_only=True)
class Queued:
    """One message. `receipt` names its latest delivery; `visible` is when it may be delivered."""

    id: str
    body: str
    sent: float
    visible: float
    receives: int = 0
    receipt: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """Dead letter that an operator finds."""

    body: str
    reason: str
    message_id: str


Consumer = Callable[[Sequence[Queued]], Sequence[str]]
Batches = Sequence[Sequence[Queued]]


def filled(ready: Sequence[Queued]) -> Batches:
    """Return batches each of which is filled before the next: the kindest cut."""
    return [ready[first : first + BATCH] for first in range(0, len(ready), BATCH)]


def split(ready: Sequence[Queued], *, pollers: int, most: int = BATCH) -> Batches:
    """Return a batch for each poller: the messages in turn, at most so many."""
    return [part for place in range(pollers) if (part := ready[place::pollers][:most])]


def drawn(ready: Sequence[Queued], random: Random) -> Batches:
    """Draw how many pollers get how many messages each. While many messages wait, Lambda's pollers find theirs full."""
    if not ready or len(ready) > 2 * BATCH:
        return filled(ready)
    pollers = random.randint(1, READ_AT_ONCE)
    return split(ready, pollers=pollers, most=random.choice(SIZES))


class Queue:
    """One queue. `consumer` runs in an invocation and returns the ids of messages that failed. Acknowledged, redriven
    and dead messages are recorded in the journals of the queue `beside`, where there is one.
    """

    def __init__(
        self,
        timeline: Timeline,
        invocations: Invocations,
        *,
        prefix: str = "m",
        at_once: int = AT_ONCE,
        beside: "Queue | None" = None,
    ) -> None:
        self._timeline, self._invocations = timeline, invocations
        self._prefix, self._at_once = prefix, at_once
        self.consumer: Consumer = lambda _: ()
        self.cut: Callable[[Sequence[Queued]], Batches] = filled  # messages that wait into batches
        self.messages: dict[str, Queued] = {}
        self.dead_letters: Journal[DeadLetter] = beside.dead_letters if beside else Journal[DeadLetter]()
        self.redriven: Journal[str] = beside.redriven if beside else Journal[str]()
        self.acknowledged: Journal[tuple[str, str]] = (
            beside.acknowledged if beside else Journal[tuple[str, str]]()
        )  # (message id, body)
        self.is_away: Callable[[], bool] = lambda: False  # delivers nothing
        self.has_no_consumer: Callable[[], bool] = lambda: False  # Lambda starts none
        self.handled = 0
        self._numbers = 0
        self._busy = 0
        self._poll: Entry | None = None

    @property
    def depth(self) -> int:
        """Number of messages not handled yet, in flight or not."""
        return len(self.messages)

    def send(self, body: str) -> None:
        """Put a message into the queue."""
        self._numbers += 1
        now = self._timeline.now()
        message = Queued(id=f"{self._prefix}-{self._numbers:08}", body=body, sent=now, visible=now)
        self.messages[message.id] = message
        self._look(now + WINDOW)

    def change_visibility(self, receipt: str, seconds: float) -> None:
        """Set when the message may be delivered; an expired or unknown receipt is ignored."""
        for message in self.messages.values():
            if message.receipt == receipt:
                message.visible = self._timeline.now() + seconds
                self._look(message.visible)

    def _look(self, when: float) -> None:
        if self._poll is not None and self._poll.callback is not None:
            if self._poll.when <= when:
                return
            self._poll.cancel()
        self._poll = self._timeline.at(when, self._deliver, "queue polled")

    def _deliver(self) -> None:
        now = self._timeline.now()
        if self.is_away():
            self._look(now + AGAIN)
            return
        self._redrive(now)
        ready = [message for message in self.messages.values() if message.visible <= now][: READ_AT_ONCE * BATCH]
        for batch in self.cut(ready):
            if self._busy < self._at_once:
                self._hand_over(batch, now)
        if self.messages:
            self._look(max(now + WINDOW, min(message.visible for message in self.messages.values())))

    def _hand_over(self, batch: Sequence[Queued], now: float) -> None:
        for message in batch:
            message.receives += 1
            message.receipt = f"{message.id}/{message.receives}"
            message.visible = now + VISIBILITY
        if self.has_no_consumer():
            return
        self._busy += 1
        self._invocations.start(
            lambda: self.consumer(batch),
            lambda ended: self._ended(batch, ended),
            name="interruption",
            timeout=FUNCTION_TIMEOUT,
        )

    def _redrive(self, now: float) -> None:
        worn = [m for m in self.messages.values() if m.visible <= now and m.receives >= RECEIVES]
        for message in worn:
            del self.messages[message.id]
            self.redriven.append(message.id)
            self.dead_letters.append(DeadLetter(body=message.body, reason="redriven", message_id=message.id))

    def _ended(self, batch: Sequence[Queued], ended: Ended) -> None:
        self._busy -= 1
        if ended.error:
            return  # the whole batch comes back when its visibility time-out has passed
        failed = set(ended.result)
        for message in batch:
            if message.id not in failed and message.receipt == f"{message.id}/{message.receives}":
                self.messages.pop(message.id, None)
                self.acknowledged.append((message.id, message.body))
                self.handled += 1


class SimDeadLetters:
    """`ports.queues.DeadLetters`."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue

    def send(self, body: str, *, reason: str, message_id: str) -> None:
        """Keep the body."""
        self._queue.dead_letters.append(DeadLetter(body=body, reason=reason, message_id=message_id))


class SimRedelivery:
    """`ports.queues.Redelivery`."""

    def __init__(self, queue: Queue, others: Mapping[str, Queue] | None = None) -> None:
        """Take the queue, and `others` by ARN."""
        self._queue, self._others = queue, dict(others or {})

    def after(self, delays: Mapping[str, int], *, queue: str = "") -> None:
        """Delay redelivery; receipt handle -> seconds."""
        asked = self._others.get(queue, self._queue)
        for receipt, seconds in delays.items():
            asked.change_visibility(receipt, seconds)
