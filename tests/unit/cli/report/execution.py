"""Facts of executions with defaults; times are seconds after ten o'clock."""

from datetime import UTC, datetime, timedelta

from leeward.cli.report.facts import ReportFacts, SeenEvent, SeenNode, Story
from leeward.model.execution import Execution, ExecutionStatus, Failure, Machine, Step
from leeward.model.group import ScalingActivity
from leeward.model.termination import Cause, CauseKind, Outcome, Replacement, Status, TerminationRecord
from leeward.upgrade.members import UpgradeTarget
from leeward.upgrade.record import UpgradeRecord
from leeward.upgrade.surge.sizes import Strategy
from tests.fakes.builders import CLUSTER, GROUP, ZONE, a_subject

TEN = datetime(2026, 3, 2, 10, tzinfo=UTC)
OLD, OTHER, NEW = "i-0000000000000001a", "i-0000000000000002b", "i-0000000000000003c"


def at(seconds):
    return TEN + timedelta(seconds=seconds)


def an_execution(
    machine=Machine.TERMINATION, name=f"{OLD}-1", *, stopped=100, status=ExecutionStatus.SUCCEEDED, **more
):
    given = {"instance": OLD, "attempt": 1} if machine is Machine.TERMINATION else {"group": GROUP}
    end = None if stopped is None else at(stopped)
    status = ExecutionStatus.RUNNING if stopped is None else status
    return Execution(machine=machine, name=name, status=status, started=TEN, stopped=end, **{"given": given, **more})


def a_step(state, entered, left=None, *, failures=(), works=True, **output):
    stayed = None if left is None else at(left)
    return Step(
        state=state,
        entered=at(entered),
        left=stayed,
        output=output,
        works=works,
        failures=tuple(Failure(at=at(when), error=error, cause=cause) for when, error, cause in failures),
    )


BLOCKED = "default/web-1: pdb default/web allows none of 3 now, until 2026-03-02T10:10:00Z"


def a_story(*, begin=0, blocked=True):
    """A drain that a budget held up for twenty seconds."""
    held = [a_step("Drain", begin + 5, begin + 10, next="wait", why=BLOCKED)] if blocked else []
    return [
        a_step("Claim", begin, begin + 1, next="replace", why="manual", attempt=1),
        a_step("AskForReplacement", begin + 1, begin + 4, next="drain", why="its group replaces it"),
        *held,
        a_step("WaitForPods", begin + 10, begin + 28, failures=[(begin + 28, "States.Timeout", "")]),
        a_step("Drain", begin + 29, begin + 30, next="wait", why="2 pods are terminating"),
        a_step("Drain", begin + 39, begin + 40, next="drained", why="every pod that has to leave has left"),
        a_step("Settle", begin + 40, begin + 60),
        a_step("Terminate", begin + 61, begin + 62, next="answer", why=f"asked {GROUP} to terminate it"),
        a_step("AnswerHooks", begin + 62, begin + 80, next="remove", why="EC2 says shutting-down"),
        a_step("RemoveNode", begin + 80, begin + 90, next="finish", why="removed"),
        a_step("Terminated", begin + 91, begin + 91, next="done", why="removed"),
    ]


TIMES = {"claimed": 0, "tainted": 5.5, "draining": 6, "until": 606, "drained": 40, "terminating": 62, "terminated": 80}


def a_termination(instance=OLD, *, causes=None, times=None, attempt=1, launched=(), outcome=Outcome.TERMINATED, **more):
    reported = TIMES if times is None else times
    manual = Cause(id="manual#1", kind=CauseKind.MANUAL, at=at(-1), reason="leeward drain")
    return TerminationRecord(
        subject=a_subject(instance, node=f"node-{instance}"),
        status=Status.CLOSED if outcome else Status.OPEN,
        attempt=attempt,
        version=1,
        causes=(manual,) if causes is None else tuple(causes),
        times={name: at(seconds) for name, seconds in reported.items()},
        replacement=Replacement(launched=launched) if launched else None,
        outcome=outcome,
        **more,
    )


def facts_of(execution=None, steps=None, *, records=(), stories=None, now=100, touched=None, **more):
    execution = execution or an_execution()
    steps = a_story() if steps is None else steps
    own = {OLD: (Story(attempt=1, steps=steps),)} if execution.machine is Machine.TERMINATION else {}
    return ReportFacts(
        execution=execution,
        steps=steps,
        now=at(now),
        cluster=CLUSTER,
        group=GROUP,
        touched=(OLD,) if touched is None else touched,
        terminations={record.instance: record for record in records},
        stories=own if stories is None else stories,
        **more,
    )


def an_activity(seconds, *, enters=None, leaves=None, ended=None, failed=""):
    over = None if ended is None else at(ended)
    return ScalingActivity(at=at(seconds), cause="", enters=enters, leaves=leaves, ended=over, failed=failed)


def a_seen_node(instance, *, ready=None, cordoned_for=""):
    since = None if ready is None else at(ready)
    name = f"node-{instance}"
    return SeenNode(name=name, instance=instance, zone=ZONE, created=TEN, ready=since, cordoned_for=cordoned_for)


def an_event(seconds, about, reason="DrainBlocked", message="cannot drain yet"):
    return SeenEvent(at=at(seconds), about=about, reason=reason, message=message)


def an_upgrade(**more):
    record = {"group": GROUP, "target": UpgradeTarget(), "strategy": Strategy.DEFAULT, "desired": 2, "maximum": 3}
    return UpgradeRecord(**{**record, "began": TEN, "cluster": CLUSTER, **more})
