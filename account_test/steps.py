"""Steps in their order."""

from collections.abc import Sequence

from account_test import differences, first_stage, runtime
from account_test.checks import iam, launch_rights, states
from account_test.context import Context
from account_test.deployed import findings_of
from account_test.deployment import deploy
from account_test.errors import EXPECTED
from account_test.foundation import lay_once
from account_test.groups import remove_group
from account_test.journal import Made
from account_test.plays import PLAYS, Play, perform
from account_test.recording import Recording
from account_test.removal import Remover
from account_test.results import Result
from account_test.run import Run
from account_test.step import Step

DEPLOYMENT = "deployment"
DEPLOYS = "cdk deploy makes all of Leeward beside what is there, and its functions are let into the cluster"
PLAY_NAMES = frozenset(play.name for play in PLAYS)


def steps(run: Run, only: Sequence[str] = ()) -> list[Step]:
    """Return all steps, or those whose names contain one of the words. The deployment is among them in any case: the
    steps after it look at it.
    """
    deployment = Step(name=DEPLOYMENT, proves=DEPLOYS, run=_deployed, takes="4 minutes, under a cent", gate=True)
    found = [
        *first_stage.stage(run),
        deployment,
        Step(
            name="SDK of the runtime",
            proves=runtime.PROVES,
            run=lambda context, _: runtime.check(context),
            takes="1 minute, nothing",
        ),
        Step(name=iam.NAME, proves=iam.PROVES, run=lambda context, _: iam.check(context), takes="3 minutes, nothing"),
        Step(name="state machines", proves=states.PROVES, run=lambda context, _: states.check_definitions(context)),
        *(_played(play) for play in PLAYS),
        Step(name=launch_rights.NAME, proves=launch_rights.PROVES, run=launch_rights.check),
        Step(
            name="states",
            proves=states.PROVES_STATES,
            run=lambda context, _: states.check_states(context),
            takes="2 minutes, nothing",
        ),
    ]
    return [step for step in found if step is deployment or not only or any(word in step.name for word in only)]


def _deployed(context: Context, _: list[Recording]) -> Result:
    lay_once(context)
    deploy(context, context.base["senderRole"] or None, context.extras)
    findings, found = findings_of(context, context.extras)
    return Result(name=DEPLOYMENT, proves=DEPLOYS, findings=findings, differences=found)


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

    return Step(name=play.name, proves=play.proves, run=run, takes=play.takes)


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
