"""Records of upgrades and disruption runs, and one event of each type made of their changes."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from leeward.disruption.command import Command, CommandDecision, MethodName, PlannedReplacement
from leeward.disruption.record import GONE, DisruptionOutcome, DisruptionRecord, LaunchedNode
from leeward.model.instance import CapacityType
from leeward.model.launch import LaunchTemplateRef
from leeward.notifications.workflow_events import RunEventType, UpgradeEventType, events_of_runs, events_of_upgrades
from leeward.upgrade.members import UpgradeTarget
from leeward.upgrade.record import ControlRequest, NotedHold, UpgradeRecord
from leeward.upgrade.surge.sizes import Strategy

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
PERSON = "arn:aws:sts::111122223333:assumed-role/operators/ada"
CANARY = NotedHold(
    kind="canary",
    since=NOON,
    why="the canary is watched for 30m, until 2026-03-01T12:30:00Z",
    until=NOON + timedelta(minutes=30),
)


def an_upgrade(**more):
    given = {
        "group": "web",
        "cluster": "blue",
        "target": UpgradeTarget(template=LaunchTemplateRef(id="lt-1", version="7")),
        "prepared": True,
        "strategy": Strategy.DEFAULT,
        "desired": 9,
        "maximum": 12,
        "began": NOON - timedelta(minutes=20),
        "execution": "web-1",
        "attempt": 1,
        "requested_by": PERSON,
    }
    return UpgradeRecord(**{**given, **more})


def turns(before, after):
    return [event.type for event in events_of_upgrades(before, after, NOON)]


def upgrade_events(text="pods did not leave: shop/web-1: pdb shop/web", **names):
    """One event of each type, with a text of the cluster wherever there is one."""
    runs = an_upgrade(finished=1, **names)
    held = replace(runs, hold=replace(CANARY, why=text))
    rolling = replace(runs, control=ControlRequest.ROLLBACK, warnings=(text,))
    back = replace(runs, rolling_back=True)
    over = {"ended": NOON, "why": text}
    changes = [
        (None, runs),
        (runs, held),
        (held, runs),
        (runs, rolling),
        (runs, replace(runs, error=f"PodEvictionFailure: {text}", failed=("i-1",), **over)),
        (runs, replace(runs, finished=9, **over)),
        (back, replace(back, finished=9, **over)),
    ]
    made = {event.type: event for before, after in changes for event in events_of_upgrades(before, after, NOON)}
    assert set(made) == set(UpgradeEventType)
    return made


def a_run(**more):
    new = PlannedReplacement(
        group="web", types=("m5.large",), zones=("us-east-1a",), capacity=CapacityType.SPOT, price=0.04
    )
    commands = (
        Command(decision=CommandDecision.DELETE, nodes=("node-a",), reason="its pods fit elsewhere", savings=0.096),
        Command(
            decision=CommandDecision.REPLACE,
            nodes=("node-b",),
            reason="a cheaper node serves",
            savings=0.056,
            replacements=(new,),
        ),
    )
    given = {
        "cluster": "blue",
        "number": 4,
        "method": MethodName.CONSOLIDATION,
        "began": NOON - timedelta(minutes=9),
        "commands": commands,
        "nodes": {"node-a": "i-a", "node-b": "i-b"},
        "members": {"node-a": "web", "node-b": "web"},
        "groups": ("web",),
    }
    return DisruptionRecord(**{**given, **more})


def run_events(text="consolidation: 2 nodes gone, 1 launched", **names):
    """One event of each type, with a text of the cluster wherever there is one."""
    runs = a_run(**names)
    done = replace(
        runs,
        execution="blue-4-1",
        requested=True,
        ends={"i-a": GONE, "i-b": GONE},
        launched={"i-new": LaunchedNode(command=1, replacement=0, group="web", zone="us-east-1a")},
    ).closed(DisruptionOutcome.DONE, text, NOON)
    dropped = replace(runs, execution="blue-4-1").closed(DisruptionOutcome.GIVEN_UP, text, NOON)
    changes = [(None, runs), (runs, done), (runs, dropped)]
    made = {event.type: event for before, after in changes for event in events_of_runs(before, after, NOON)}
    assert set(made) == set(RunEventType)
    return made
