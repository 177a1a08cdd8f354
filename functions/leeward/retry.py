"""Looking again a moment later: one throttled call is no reason to leave a whole cluster alone for a minute."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from leeward.errors import RetryableError
from leeward.ports import Clock

PAUSES = (1.0, 2.0, 4.0)  # seconds between two looks

Seen = TypeVar("Seen")


def patiently(look: Callable[[], Seen], clock: Clock, pauses: Sequence[float] = PAUSES) -> Seen:
    """What `look` answers, asked again after each pause. Raises what it raises at last, and at once whatever another
    try does not change.
    """
    for pause in pauses:
        try:
            return look()
        except RetryableError:
            clock.sleep(pause)
    return look()
