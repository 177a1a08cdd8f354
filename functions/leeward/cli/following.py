"""Following of work to its end: the loop that `leeward drain`, `upgrade` and `plan --apply` share.

Decides when the state is read again, and what an interruption or a failing call ends; the commands decide what is read
and shown."""

from collections.abc import Callable, Sequence

from leeward.cli.progress import Progress
from leeward.errors import RetryableError
from leeward.ports.clock import Clock

INTERRUPTED = 130  # exit code after Ctrl-C
POLL_SECONDS = 5.0


def follow(
    show: Callable[[], int | None],
    under_way: Callable[[], Sequence[str]],
    clock: Clock,
    progress: Progress,
    seconds: float = POLL_SECONDS,
) -> int:
    """Call `show`, which shows the state, until it returns an exit code, and return that. A call that fails for now is
    repeated. Return 130 after Ctrl-C, which stops nothing. `under_way`: names of the work that is not over.
    """
    try:
        while True:
            try:
                code = show()
            except RetryableError as error:
                progress.show(dict.fromkeys(under_way(), f"not known now: {error}"), clock.now())
            else:
                if code is not None:
                    return code
            clock.sleep(seconds)
    except KeyboardInterrupt:
        progress.say(f"not followed any more, and still under way: {', '.join(under_way())}")
        return INTERRUPTED
