"""Step of the test, and its execution: a failed step becomes a row of the table, never the end of the run."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from account_test.context import Context
from account_test.errors import EXPECTED, AccountTestError, NotServedError
from account_test.recording import Recording
from account_test.results import Result


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Step of the test. `run` returns its result; the recordings of plays are gathered for the steps that read them
    afterwards. `takes`: its usual duration and cost; `gate`: where it is broken, the steps after it are not run.
    """

    name: str
    proves: str
    run: Callable[[Context, list[Recording]], Result]
    takes: str = "seconds, nothing"
    gate: bool = False


def carried_out(step: Step, context: Context, recordings: list[Recording]) -> Result:
    """Return the step's result, whatever happens in it but an interruption."""
    began = time.monotonic()
    try:
        result = step.run(context, recordings)
    except NotServedError as error:
        result = Result(name=step.name, proves=step.proves, why=str(error))
    except EXPECTED as error:
        words = str(error) if isinstance(error, AccountTestError) else f"{type(error).__name__}: {error}"
        result = Result(name=step.name, proves=step.proves, why=words, broken=True)
    return replace(result, seconds=time.monotonic() - began)
