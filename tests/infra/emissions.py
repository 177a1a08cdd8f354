"""Every metric point that the functions can write, from their own telemetry run on results that make each of them."""

from dataclasses import replace
from datetime import timedelta

from aws_lambda_powertools.logging import logger as powertools_logger

from leeward.adapters import telemetry as adapters
from leeward.adapters.entry import entry_point
from leeward.disruption import telemetry as disruption
from leeward.disruption.controller import PlannerResult
from leeward.disruption.run import DisruptionNext, DisruptionRun, Ends
from leeward.interruption import metrics as interruption
from leeward.interruption.batch import BatchResult, Record, RecordResult
from leeward.interruption.decision import Decision, NodeAction, RecordOutcome
from leeward.model.blocked import BlockedCause
from leeward.model.facts import FactKind
from leeward.notifications import handler as notifications
from leeward.reconcile import telemetry as reconcile
from leeward.reconcile.result import AttentionNotice, ReconcileResult
from leeward.sync import handler as sync
from leeward.sync.controller import Synced
from leeward.termination import telemetry as termination
from leeward.termination.run import Next, Notice, NoticeKind, Run
from leeward.upgrade import handler as upgrade
from leeward.upgrade.run import UpgradeNext, UpgradeRun
from tests.adapters.test_entry import Context
from tests.emitted import points
from tests.fakes.clock import START
from tests.handlers.notifications.test_notifications import a_broken_change, a_new_claim

WHERE = {"cluster": "blue", "group": "web"}


class _Bus:
    """A bus that takes every event."""

    def publish(self, events, for_webhooks=()):
        del events, for_webhooks


def emissions(capsys, monkeypatch):
    """{(name, service, dimensions beside the service)} of all points."""
    capsys.readouterr()
    for emit in (_interruption, _termination, _upgrade, _disruption, _reconcile, _adapters):
        emit()
    _sync(monkeypatch)
    _notifications(monkeypatch)
    _cold_start(monkeypatch)
    return {
        (name, dimensions["service"], frozenset(dimensions) - {"service"})
        for name, dimensions, _ in points(capsys.readouterr().out)
    }


def _interruption():
    results = tuple(
        RecordResult(
            record=Record(id="r", body="", received=START, queue=queue),
            message=None,
            decision=Decision(kind=None, outcome=outcome, action=NodeAction.NONE, reason="a reason"),
        )
        for outcome in RecordOutcome
        for queue in ("", "arn:aws:sqs:us-east-1:111122223333:leeward-state-changes")
    )
    interruption.handled(BatchResult(results=results, tainted=("i-0abc",)), START + timedelta(minutes=1))


def _termination():
    run = Run(instance="i-0abc", attempt=1, version=1, next=Next.WAIT, why="pdb shop/web", **WHERE)
    notices = tuple(Notice(kind=kind, text="why") for kind in NoticeKind)
    termination.stepped("drain", replace(run, notices=notices))
    termination.stepped("finish", replace(run, next=Next.DONE))
    termination.stepped("return-to-service", replace(run, next=Next.RETURNED_TO_SERVICE))
    termination.stepped("note-failure", replace(run, next=Next.FAILED))


def _upgrade():
    run = UpgradeRun(execution="web-1", next=UpgradeNext.UPGRADED, **WHERE)
    upgrade.stepped("restore", run)
    upgrade.stepped("note-failure", replace(run, next=UpgradeNext.FAILED))


def _disruption():
    blocked = {"blue": {"shop": ("node-a",)}}
    disruption.decided(PlannerResult(timed_out=["blue: consolidation"], blocked=blocked))
    ends = Ends(nodes={"web": 1}, savings=0.1, saved={"web": 0.1})
    run = DisruptionRun(cluster="blue", number=1, next=DisruptionNext.DONE, ends=ends)
    disruption.stepped("end", run)
    disruption.stepped("give-up", replace(run, next=DisruptionNext.GIVEN_UP, ends=Ends()))


def _reconcile():
    lists = {name: ["node-a"] for name in ReconcileResult.__slots__}
    notice = AttentionNotice(what="node-a", causes=(BlockedCause.BUDGET,), **WHERE)
    lists |= {
        name: [notice] for name in ("blocked", "blocked_long", "hooks_ending", "pauses", "pauses_forgotten", "shifted")
    }
    reconcile.reconciled(ReconcileResult(**lists))


def _adapters():
    adapters.event_lost("an Event is lost")
    adapters.throttled("ec2:DescribeInstances")


def _sync(monkeypatch):
    synced = Synced(hooks=["web"], labelled=["node-a"], warnings=["blue: prices: denied"])
    synced.out_of_date.append(("blue", FactKind.PRICES))
    monkeypatch.setattr(sync.wiring, "invocation_ports", lambda _: None)
    monkeypatch.setattr(sync, "sync_once", lambda _: synced)
    sync.handle({}, None)


def _notifications(monkeypatch):
    monkeypatch.setattr(notifications, "bus", _Bus)
    notifications.handle({"Records": [a_new_claim(), a_broken_change()]}, None)


def _cold_start(monkeypatch):
    monkeypatch.setattr(powertools_logger, "is_cold_start", True)
    entry_point("drain")(lambda event, context: {})({}, Context())
