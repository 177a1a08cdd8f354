"""Retry of a read a moment later: one throttled call is no reason to skip a whole cluster for a minute."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from leeward.errors import RetryableError
from leeward.ports.clock import Clock

PAUSES = (1.0, 2.0, 4.0)  # seconds between two reads

Seen = TypeVar("Seen")


def retry(look: Callable[[], Seen], clock: Clock, pauses: Sequence[float] = PAUSES) -> Seen:
    """Return the result of `look`, retried after each pause. Raises the last error; an error that a retry does not
    change is raised at once.
    """
    for pause in pauses:
        try:
            return look()
        except RetryableError:
            clock.sleep(pause)
    return look()
