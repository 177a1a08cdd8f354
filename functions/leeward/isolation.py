"""Boundary that keeps one record's, node's, group's or cluster's failure from stopping the others.

Every exception is caught here and, as the last net of the command line, in `cli/main.py`: a shape that no parser
expected (KeyError, TypeError, RecursionError) concerns one item alone, as does an API that does not answer. It becomes
an UnexpectedError, which names the line that raised it, so that it is retried, counted and seen like any other
failure."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Protocol, TypeVar

from leeward.errors import LeewardError, UnexpectedError

T = TypeVar("T")
R = TypeVar("R")


@contextmanager
def isolate_errors(note: Callable[[LeewardError], object]) -> Iterator[None]:
    """Pass any error raised inside to `note` instead of raising it."""
    try:
        yield
    except LeewardError as error:
        note(error)
    except Exception as error:  # noqa: BLE001  (a defect met by one item must not stop the items beside it)
        note(unexpected(error))


def reraise(_what: str, error: LeewardError) -> None:
    """Raise the first error, for callers that isolate nothing themselves."""
    raise error


def attempt(do: Callable[[], R]) -> R | LeewardError:
    """Return the result of `do`, or its error."""
    errors: list[LeewardError] = []
    with isolate_errors(errors.append):
        return do()
    return errors[0]


class Executor(Protocol):
    """Call of `do` for every item, at most `workers` at a time; the results in the items' order."""

    def __call__(self, do: Callable[[T], R], items: Sequence[T], workers: int, /) -> Sequence[R]:
        """Run `do` for every item. Raises what `do` raises."""
        ...


def in_threads(do: Callable[[T], R], items: Sequence[T], workers: int, /) -> Sequence[R]:
    """Run in a pool of threads for this one call; a single item stays in the caller's own thread."""
    if len(items) <= 1:
        return [do(item) for item in items]
    with ThreadPoolExecutor(max_workers=max(1, min(workers, len(items)))) as pool:
        return list(pool.map(do, items))


def in_turn(do: Callable[[T], R], items: Sequence[T], _workers: int, /) -> Sequence[R]:
    """Run one item after the other in the caller's own thread: the simulation's order is the same every time."""
    return [do(item) for item in items]


def unexpected(error: Exception) -> UnexpectedError:
    """Return an error that names the innermost line of Leeward's code that raised it: without it a KeyError says
    nothing.
    """
    place, trace = "", error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        module = trace.tb_frame.f_globals.get("__name__", "")
        if module.startswith("leeward") and module != __name__:
            place = f"{module}.{code.co_name}, line {trace.tb_lineno}"
        trace = trace.tb_next
    made = UnexpectedError(f"{type(error).__name__}: {error}" + (f" ({place})" if place else ""))
    made.__cause__ = error
    return made
