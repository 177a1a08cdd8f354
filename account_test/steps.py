"""Steps in their order. A failed step becomes a row of the table, never the end of the run."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from botocore.exceptions import BotoCoreError, ClientError, WaiterError

from account_test import differences, runtime
from account_test.checks import iam, states
from account_test.context import Context
from account_test.errors import AccountTestError, NotServedError
from account_test.groups import remove_group
from account_test.journal import Made
from account_test.plays import PLAYS, Play, perform
from account_test.recording import Recording
from account_test.removal import Remover
from account_test.results import Result
from leeward.errors import LeewardError

EXPECTED = (AccountTestError, LeewardError, BotoCoreError, ClientError, WaiterError, OSError, KeyError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Step of the test. `run` returns its result; the recordings of plays are gathered for the steps that read them
    afterwards.
    """

    name: str
    proves: str
    run: Callable[[Context, list[Recording]], Result]


def steps(only: Sequence[str] = ()) -> list[Step]:
    """Return all steps, or those whose names contain one of the words."""
    found = [
        Step(name="SDK of the runtime", proves=runtime.PROVES, run=lambda context, _: runtime.check(context)),
        Step(name="IAM", proves=iam.PROVES, run=lambda context, _: iam.check(context)),
        Step(name="state machines", proves=states.PROVES, run=lambda context, _: states.check_definitions(context)),
        *(_played(play) for play in PLAYS),
        Step(name="states", proves=states.PROVES_STATES, run=lambda context, _: states.check_states(context)),
    ]
    return [step for step in found if not only or any(word in step.name for word in only)]


def _played(play: Play) -> Step:
    def run(context: Context, recordings: list[Recording]) -> Result:
        try:
            seen = perform(context, play)
            recordings.append(seen)
            found = differences.of(context, seen)
            return Result(name=play.name, proves=play.proves, findings=play.judged(seen), differences=found)
        finally:
            context.say(f"{play.name}: its group goes")
            _clear(context, play)

    return Step(name=play.name, proves=play.proves, run=run)


def _clear(context: Context, play: Play) -> None:
    """Remove the play's group; a resource that cannot be removed now is retried at the end."""
    remover = Remover(aws=context.aws, kube=context.kube, pause=context.run.look)

    def remove(made: Made) -> None:
        remover.remove(made)
        context.journal.removed(made)

    try:
        remove_group(context, play.plan, remove)
    except EXPECTED as error:
        context.say(f"{play.name}: {error}; it is tried again at the end")


def carried_out(step: Step, context: Context, recordings: list[Recording]) -> Result:
    """Return the step's result, whatever happens in it but an interruption."""
    began = time.monotonic()
    try:
        result = step.run(context, recordings)
    except NotServedError as error:
        result = Result(name=step.name, proves=step.proves, why=str(error))
    except EXPECTED as error:
        words = f"{type(error).__name__}: {error}"
        result = Result(name=step.name, proves=step.proves, why=words, broken=True)
    return replace(result, seconds=time.monotonic() - began)
