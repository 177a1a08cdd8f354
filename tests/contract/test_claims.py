"""What every `ports.records.Claims` does: the table's adapter on a local DynamoDB, and the tests' own fake."""

import functools
import json
import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from moto import mock_aws
from moto.dynamodb.responses import DynamoHandler

from leeward.adapters.aws.claims import DynamoClaims
from leeward.adapters.aws.clients import AwsClients
from leeward.adapters.aws.table import DynamoTable
from leeward.errors import ObjectGoneError, RecordChangedError
from leeward.model.capacity import NoOffset, SurgeOwner
from leeward.model.group import HookResult
from leeward.model.instance import CapacityType
from leeward.model.seen import Seen, SeenInstance
from leeward.model.termination import (
    NEVER,
    Cause,
    CauseKind,
    DrainOptions,
    LaunchOption,
    LaunchPlan,
    Outcome,
    Reboot,
    RebootBy,
    Replacement,
    Status,
    Subject,
)
from tests.contract.tables import TABLES, a_table, make_table
from tests.fakes.builders import DEPLOYMENT
from tests.fakes.claims import FakeClaims
from tests.fakes.clock import FakeClock
from tests.fakes.ledger import a_surge, by

NOW = datetime(2026, 3, 2, 10, 0, tzinfo=UTC)
LATER = NOW + timedelta(minutes=1)
SEEN = Seen(instance=SeenInstance(at=NOW, state="running"))
INSTANCE = "i-0abc"


def one_at_a_time(call):
    """DynamoDB carries out the writes of one item one after the other; moto in one process does not by itself."""
    lock = threading.RLock()

    @functools.wraps(call)
    def locked(handler):
        with lock:
            return call(handler)

    return locked


@pytest.fixture(params=[*TABLES, "the fake"])
def claims(request, monkeypatch):
    if request.param == "the fake":
        yield FakeClaims()
        return
    monkeypatch.setattr(DynamoHandler, "call_action", one_at_a_time(DynamoHandler.call_action))
    with a_table(monkeypatch, request.param) as table:
        yield DynamoClaims(table, FakeClock(), DEPLOYMENT)


def a_subject(instance=INSTANCE, node=None):
    return Subject(
        instance=instance,
        cluster="blue",
        group="web-a",
        zone="us-east-1a",
        subnet="subnet-a",
        instance_type="m5.large",
        capacity_type=CapacityType.SPOT,
        node=node,
    )


def a_cause(id="event-1", kind=CauseKind.SPOT_INTERRUPTION, at=NOW, **more):
    return Cause(id=id, kind=kind, at=at, **more)


FLAGS = DrainOptions(evict_unmanaged=True, ignore_daemon_sets=False, grace_seconds=0, skip_wait_for_delete=NEVER)
FULL = a_cause(
    deadline=NOW + timedelta(minutes=2),
    reason="spot",
    hook="leeward-terminate",
    hook_ours=True,
    hook_default=HookResult.ABANDON,
    force=True,
    options=FLAGS,
)
OTHER = a_cause("event-2", CauseKind.ASG_TERMINATE, at=LATER)


def test_an_unknown_instance_has_no_claim(claims):
    assert claims.read(INSTANCE) is None
    assert list(claims.open_instances()) == []


def test_the_first_claim_opens_a_record_with_everything_in_it(claims):
    record = claims.claim(a_subject(node="node-a"), FULL, NOW)
    assert record == claims.read(INSTANCE)
    assert (record.status, record.attempt, record.version) == (Status.OPEN, 1, 1)
    assert (record.subject, record.causes) == (a_subject(node="node-a"), (FULL,))
    assert record.times == {"claimed": NOW}
    assert (record.token, record.outcome, record.replacement) == (None, None, None)
    assert list(claims.open_instances()) == [INSTANCE]


def test_an_instance_without_a_group_can_be_claimed(claims):
    subject = replace(a_subject(), group=None)
    assert claims.claim(subject, FULL, NOW).subject == subject


def test_what_the_claim_knew_of_policy_and_storm_is_kept(claims):
    subject, cause = replace(a_subject(), policy="web"), replace(FULL, together=100)
    assert claims.claim(subject, cause, NOW).subject == subject
    assert (claims.read(INSTANCE).subject, claims.read(INSTANCE).causes) == (subject, (cause,))


def test_a_count_is_of_the_present_and_the_last_half_minute(claims):
    once = claims.count("probe", 1, NOW)  # a write that is repeated counts twice: a storm is seen a little early
    added = [claims.count("taken", number, NOW + timedelta(seconds=at)) for number, at in ((9, 1), (9, 29), (0, 31))]
    assert added == [9 * once, 18 * once, 18 * once]
    assert claims.count("other", 1, NOW) == once
    later = [claims.count("taken", 2, NOW + timedelta(seconds=at)) for at in (59, 61, 100, 200)]
    assert later == [20 * once, 4 * once, 4 * once, 2 * once]
    for hour in range(1, 30):
        counted = claims.count("taken", 1, NOW + timedelta(hours=hour))
        assert counted == once, "what is left behind before a pause is not counted"


def test_counts_that_overlap_miss_nothing(claims):
    once = claims.count("probe", 1, NOW)
    counts: list[int] = []
    threads = [threading.Thread(target=lambda: counts.append(claims.count("taken", 10, NOW))) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (max(counts), len(set(counts))) == (50 * once, 5)


def test_a_redelivered_cause_changes_nothing(claims):
    first = claims.claim(a_subject(), FULL, NOW)
    assert claims.claim(a_subject(), FULL, LATER) == first
    assert claims.read(INSTANCE) == first


def test_another_cause_joins_and_raises_the_version(claims):
    claims.claim(a_subject(), FULL, NOW)
    record = claims.claim(a_subject(node="late"), OTHER, LATER)
    assert record.causes == (FULL, OTHER)
    assert (record.attempt, record.version, record.subject.node) == (1, 2, None)


def test_a_cause_that_joins_brings_the_group_to_which_the_instance_has_moved(claims):
    claims.claim(a_subject(node="node-a"), a_cause(), NOW)
    record = claims.claim(replace(a_subject(), group="web-b"), a_cause("event-2"), LATER)
    assert (record.subject.group, record.subject.node) == ("web-b", "node-a")
    assert claims.claim(replace(a_subject(), group=None), a_cause("event-3"), LATER).subject.group == "web-b"


def test_a_group_in_which_a_launch_is_to_be_offset_stays(claims):
    claims.claim(a_subject(), a_cause(surge=a_surge("i-0new")), NOW)
    record = claims.claim(replace(a_subject(), group="web-b"), a_cause("event-2"), LATER)
    assert record.subject.group == "web-a"


def test_causes_keep_the_order_in_which_they_came_not_in_which_they_happened(claims):
    early = a_cause("event-0", at=NOW - timedelta(hours=1))
    claims.claim(a_subject(), OTHER, NOW)
    claims.claim(a_subject(), early, LATER)
    assert claims.read(INSTANCE).causes == (OTHER, early)


def test_causes_that_join_at_the_same_moment_are_all_kept(claims):
    claims.claim(a_subject(), FULL, NOW)
    causes = [a_cause(f"joiner-{n}") for n in range(6)]
    threads = [threading.Thread(target=claims.claim, args=(a_subject(), cause, LATER)) for cause in causes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    record = claims.read(INSTANCE)
    assert {cause.id for cause in record.causes} == {"event-1", *(cause.id for cause in causes)}
    assert record.version == 7


def test_an_attempt_begins_once_however_many_ask_for_it(claims):
    claims.claim(a_subject(), FULL, NOW)
    assert claims.begin_attempt(INSTANCE, 1).attempt == 2
    assert claims.begin_attempt(INSTANCE, 1).attempt == 2
    assert claims.read(INSTANCE).version == 1


def test_a_new_attempt_starts_its_clocks_anew_and_keeps_the_rest(claims):
    claims.claim(a_subject(), FULL, NOW)
    claims.note(
        INSTANCE,
        times={
            "tainted": NOW,
            "draining": NOW,
            "until": LATER,
            "evicting": NOW,
            "unreached": NOW,
            "drained": NOW,
            "moved": NOW,
            "retry": NOW,
        },
    )
    claims.replaced(INSTANCE, Replacement(launched=("i-0new",)), NOW)
    claims.note_attempt(INSTANCE, 1, blocked_by=["shop/web: pdb shop/web"])
    claims.failed(INSTANCE, "ThrottledError: too fast")
    assert claims.read(INSTANCE).failure == "ThrottledError: too fast"
    claims.begin_attempt(INSTANCE, 1)
    record = claims.read(INSTANCE)
    assert record.failure == ""
    assert set(record.times) == {"claimed", "tainted", "replacement"}
    assert record.blocked_by == ()
    assert record.replacement == Replacement(launched=("i-0new",))


def test_a_step_that_outlives_its_execution_writes_no_clock_into_the_next_attempt(claims):
    """The drain of the next attempt has its whole time."""
    claims.claim(a_subject(), FULL, NOW)
    claims.note_attempt(INSTANCE, 1, times={"draining": NOW})
    claims.begin_attempt(INSTANCE, 1)
    claims.note_attempt(INSTANCE, 1, times={"draining": NOW, "until": NOW}, blocked_by=["web-1"], evicted=3)
    record = claims.read(INSTANCE)
    assert not {"draining", "until"} & record.times.keys()
    assert (record.blocked_by, record.pods_evicted) == ((), 0)
    later = NOW + timedelta(minutes=1)
    claims.note_attempt(INSTANCE, 2, times={"draining": later})
    assert claims.read(INSTANCE).times["draining"] == later


def test_nothing_can_be_written_to_a_record_that_is_not_there(claims):
    with pytest.raises(ObjectGoneError):
        claims.begin_attempt(INSTANCE, 1)
    with pytest.raises(ObjectGoneError):
        claims.note_attempt(INSTANCE, 1, times={"draining": NOW})
    with pytest.raises(ObjectGoneError):
        claims.note(INSTANCE, times={"tainted": NOW})
    with pytest.raises(ObjectGoneError):
        claims.failed(INSTANCE, "it is not there")
    with pytest.raises(ObjectGoneError):
        claims.close(INSTANCE, version=1, outcome=Outcome.TERMINATED, now=NOW)


def test_notes_are_kept_beside_the_version(claims):
    claims.claim(a_subject(), FULL, NOW)
    launched = Replacement(launched=("i-0new",))
    claims.note(
        INSTANCE,
        times={"tainted": NOW, "draining": LATER},
        heartbeats={"leeward-terminate": NOW, "their.hook": LATER},
        seen=SEEN,
    )
    claims.replaced(INSTANCE, launched, LATER)
    claims.note_attempt(INSTANCE, 1, blocked_by=["shop/web: pdb shop/web"], evicted=3, node="node-a")
    noted = claims.note_attempt(INSTANCE, 1, evicted=5)
    record = claims.read(INSTANCE)
    assert record == noted == claims.note(INSTANCE)
    assert record.times == {"claimed": NOW, "tainted": NOW, "draining": LATER, "replacement": LATER}
    assert record.seen == SEEN
    assert record.heartbeats == {"leeward-terminate": NOW, "their.hook": LATER}
    assert (record.replacement, record.blocked_by) == (launched, ("shop/web: pdb shop/web",))
    assert (record.pods_evicted, record.subject.node, record.version) == (5, "node-a", 1)


def test_a_time_that_is_set_stays_except_those_of_the_last_observation(claims):
    claims.claim(a_subject(), FULL, NOW)
    claims.note(INSTANCE, times=dict.fromkeys(("draining", "moved", "missed", "retry"), NOW))
    claims.note(INSTANCE, times=dict.fromkeys(("claimed", "draining", "moved", "missed", "retry"), LATER))
    kept, overwritten = dict.fromkeys(("claimed", "draining"), NOW), dict.fromkeys(("moved", "missed", "retry"), LATER)
    assert claims.read(INSTANCE).times == {**kept, **overwritten}


def test_an_offset_is_decided_once_and_survives_the_end_of_the_record(claims):
    claims.claim(a_subject(), FULL, NOW)
    surge, returned = a_surge("i-0new"), a_surge("i-0other", SurgeOwner.UPGRADE, "20260506T120000.1")
    claims.note(INSTANCE, offsets={surge: by("i-0first")})
    claims.note(INSTANCE, offsets={surge: by("i-0second"), returned: NoOffset.RETURNED})
    decided = {surge: by("i-0first"), returned: NoOffset.RETURNED}
    assert claims.read(INSTANCE).offsets == decided
    claims.close(INSTANCE, version=1, outcome=Outcome.RETURNED_TO_SERVICE, now=NOW)
    assert claims.claim(a_subject(), OTHER, LATER).offsets == decided


def test_blockers_are_replaced_and_can_be_cleared(claims):
    claims.claim(a_subject(), FULL, NOW)
    claims.note_attempt(INSTANCE, 1, blocked_by=["a", "b"])
    claims.note_attempt(INSTANCE, 1, blocked_by=[])
    assert claims.read(INSTANCE).blocked_by == ()


def test_closing_ends_the_claim(claims):
    claims.claim(a_subject(), FULL, NOW)
    claims.close(INSTANCE, version=1, outcome=Outcome.TERMINATED, now=LATER)
    record = claims.read(INSTANCE)
    assert (record.status, record.outcome, record.times["closed"]) == (Status.CLOSED, Outcome.TERMINATED, LATER)
    assert list(claims.open_instances()) == []


def test_a_record_that_a_cause_joined_is_not_closed(claims):
    claims.claim(a_subject(), FULL, NOW)
    claims.claim(a_subject(), OTHER, LATER)
    with pytest.raises(RecordChangedError):
        claims.close(INSTANCE, version=1, outcome=Outcome.TERMINATED, now=LATER)
    assert claims.read(INSTANCE).status is Status.OPEN


def test_a_closed_record_cannot_be_closed_otherwise(claims):
    claims.claim(a_subject(), FULL, NOW)
    claims.close(INSTANCE, version=1, outcome=Outcome.TERMINATED, now=LATER)
    with pytest.raises(RecordChangedError):
        claims.close(INSTANCE, version=1, outcome=Outcome.RETURNED_TO_SERVICE, now=LATER)


def test_closing_twice_the_same_way_is_closing_once(claims):
    claims.claim(a_subject(), FULL, NOW)
    for _ in range(2):
        claims.close(INSTANCE, version=1, outcome=Outcome.TERMINATED, now=NOW)
    assert claims.read(INSTANCE).status is Status.CLOSED


def test_a_known_cause_finds_the_closed_record(claims):
    claims.claim(a_subject(), FULL, NOW)
    claims.close(INSTANCE, version=1, outcome=Outcome.TERMINATED, now=LATER)
    assert claims.claim(a_subject(), FULL, LATER).status is Status.CLOSED
    assert list(claims.open_instances()) == []


def test_a_new_cause_opens_a_closed_record_for_a_new_period(claims):
    """An event of an earlier period identifies duplicates, and decides nothing."""
    claims.claim(a_subject(), FULL, NOW)
    claims.note(INSTANCE, times={"drained": NOW}, heartbeats={"h": NOW}, offsets={a_surge("i-0other"): by("i-0third")})
    claims.note_attempt(INSTANCE, 1, blocked_by=["x"], evicted=4)
    claims.close(INSTANCE, version=1, outcome=Outcome.RETURNED_TO_SERVICE, now=NOW)
    record = claims.claim(a_subject(node="node-a"), OTHER, LATER)
    assert record == claims.read(INSTANCE)
    assert (record.status, record.attempt, record.version, record.period) == (Status.OPEN, 2, 2, 2)
    assert (record.causes, record.earlier_causes) == ((OTHER,), (FULL,))
    assert (record.forced, record.options, record.has(CauseKind.SPOT_INTERRUPTION)) == (False, None, False)
    assert (record.subject.node, record.times, record.heartbeats) == ("node-a", {"claimed": LATER}, {})
    assert (record.blocked_by, record.pods_evicted, record.outcome) == ((), 0, None)
    assert record.offsets == {a_surge("i-0other"): by("i-0third")}
    assert list(claims.open_instances()) == [INSTANCE]


def test_a_redelivered_cause_of_an_earlier_period_opens_nothing_and_joins_nothing(claims):
    claims.claim(a_subject(), FULL, NOW)
    claims.close(INSTANCE, version=1, outcome=Outcome.RETURNED_TO_SERVICE, now=NOW)
    second = claims.claim(a_subject(), OTHER, LATER)
    assert claims.claim(a_subject(), FULL, LATER) == second
    claims.close(INSTANCE, version=2, outcome=Outcome.RETURNED_TO_SERVICE, now=LATER)
    for cause in (FULL, OTHER):
        assert claims.claim(a_subject(), cause, LATER).status is Status.CLOSED
    assert claims.claim(a_subject(), a_cause("event-3"), LATER).earlier_causes == (FULL, OTHER)


def test_a_cause_joins_the_present_period(claims):
    claims.claim(a_subject(), FULL, NOW)
    claims.close(INSTANCE, version=1, outcome=Outcome.RETURNED_TO_SERVICE, now=NOW)
    claims.claim(a_subject(), OTHER, NOW)
    record = claims.claim(a_subject(), a_cause("event-3"), LATER)
    assert ([cause.id for cause in record.causes], record.earlier_causes) == (["event-2", "event-3"], (FULL,))


def test_a_cause_that_is_taken_back_decides_nothing_and_the_others_stay(claims):
    claims.claim(a_subject(), FULL, NOW)
    claims.claim(a_subject(), OTHER, NOW)
    record = claims.withdraw(INSTANCE, FULL.id)
    assert record == claims.read(INSTANCE) == claims.withdraw(INSTANCE, FULL.id)
    assert (record.causes, record.version, record.status) == ((OTHER,), 3, Status.OPEN)
    assert record.earlier_causes == (replace(FULL, withdrawn=True),)
    assert claims.withdraw(INSTANCE, "unknown") == record


def test_no_cause_is_taken_back_once_the_group_was_asked_to_terminate_the_instance(claims):
    claims.claim(a_subject(), FULL, NOW)
    claims.note(INSTANCE, times={"terminating": NOW})
    record = claims.withdraw(INSTANCE, FULL.id)
    assert (record.causes, record.version) == ((FULL,), 1)


def test_a_record_of_which_every_cause_is_taken_back_can_be_closed_and_opened_again_by_the_same(claims):
    claims.claim(a_subject(), FULL, NOW)
    assert claims.withdraw(INSTANCE, FULL.id).causes == ()
    claims.close(INSTANCE, version=2, outcome=Outcome.RETURNED_TO_SERVICE, now=LATER)
    assert claims.withdraw(INSTANCE, FULL.id).status is Status.CLOSED
    record = claims.claim(a_subject(), FULL, LATER)
    assert (record.status, record.period, record.causes, record.earlier_causes) == (Status.OPEN, 2, (FULL,), ())


def test_a_cause_that_was_taken_back_joins_again(claims):
    claims.claim(a_subject(), FULL, NOW)
    claims.withdraw(INSTANCE, FULL.id)
    record = claims.claim(a_subject(), FULL, LATER)
    assert (record.causes, record.earlier_causes, record.version) == ((FULL,), (), 3)


def test_a_launch_that_is_settled_does_not_outlive_its_period(claims):
    claims.claim(a_subject(), FULL, NOW)
    claims.plan(INSTANCE, LaunchPlan(options=(LaunchOption(subnet="subnet-b", zone="us-east-1b", why="room"),)))
    claims.replaced(INSTANCE, Replacement(launched=("i-0new",)), NOW)
    claims.note(INSTANCE, offsets={a_surge("i-0new"): by("i-0other")})
    claims.close(INSTANCE, version=1, outcome=Outcome.RETURNED_TO_SERVICE, now=NOW)
    record = claims.claim(a_subject(), OTHER, LATER)
    assert (record.replacement, record.plan, record.launch_name) == (None, None, f"{INSTANCE}-2")
    assert record == claims.read(INSTANCE)


@pytest.mark.parametrize("answered", [True, False])
def test_a_launch_that_is_not_settled_outlives_its_period_under_its_own_name(claims, answered):
    """It has to be offset exactly once; one whose answer was lost has to be followed up by the same client token."""
    claims.claim(a_subject(), FULL, NOW)
    plan = LaunchPlan(options=(LaunchOption(subnet="subnet-b", zone="us-east-1b", why="room"),))
    launched = Replacement(launched=("i-0new",)) if answered else None
    claims.plan(INSTANCE, plan)
    if launched is not None:
        claims.replaced(INSTANCE, launched, NOW)
    claims.close(INSTANCE, version=1, outcome=Outcome.RETURNED_TO_SERVICE, now=NOW)
    record = claims.claim(a_subject(), OTHER, LATER)
    assert (record.plan, record.replacement, record.launch_name) == (plan, launched, INSTANCE)
    claims.replaced(INSTANCE, Replacement(launched=("i-0new",)), NOW)
    claims.note(INSTANCE, offsets={a_surge("i-0new"): NoOffset.WRITTEN_OFF})
    claims.close(INSTANCE, version=2, outcome=Outcome.RETURNED_TO_SERVICE, now=LATER)
    record = claims.claim(a_subject(), a_cause("event-3"), LATER)
    assert (record.plan, record.replacement, record.launch_name) == (None, None, f"{INSTANCE}-3")


class Meddled(DynamoTable):
    """Something else is written between the read of a claim and its own write, once."""

    def __init__(self, clients, meanwhile):
        super().__init__(clients, "leeward")
        self.meanwhile = [meanwhile]

    def put(self, *arguments, **named):
        answer = super().put(*arguments, **named)
        if not answer[0] and self.meanwhile:
            self.meanwhile.pop()()
        return answer


@pytest.fixture
def table(monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    with mock_aws():
        make_table()
        yield AwsClients("us-east-1")


def test_a_cause_that_would_join_a_record_closed_meanwhile_opens_it_again(table):
    """Written into the closed record it would be lost: no execution looks at it any more."""
    others = DynamoClaims(DynamoTable(table, "leeward"), FakeClock(), DEPLOYMENT)
    others.claim(a_subject(), FULL, NOW)
    closes = functools.partial(others.close, INSTANCE, version=1, outcome=Outcome.RETURNED_TO_SERVICE, now=NOW)
    record = DynamoClaims(Meddled(table, closes), FakeClock(), DEPLOYMENT).claim(a_subject(), OTHER, LATER)
    assert (record.status, record.period, record.causes) == (Status.OPEN, 2, (OTHER,))


def test_a_cause_that_would_join_a_period_that_is_over_joins_the_present_one(table):
    """With the number of the old period it would be an earlier cause from the beginning, and decide nothing."""
    others = DynamoClaims(DynamoTable(table, "leeward"), FakeClock(), DEPLOYMENT)
    others.claim(a_subject(), FULL, NOW)

    def closed_and_opened_again():
        others.close(INSTANCE, version=1, outcome=Outcome.RETURNED_TO_SERVICE, now=NOW)
        others.claim(a_subject(), a_cause("event-3"), NOW)

    record = DynamoClaims(Meddled(table, closed_and_opened_again), FakeClock(), DEPLOYMENT).claim(
        a_subject(), OTHER, LATER
    )
    assert {cause.id for cause in record.causes} == {"event-2", "event-3"}
    assert record == others.read(INSTANCE)


def test_open_instances_are_those_of_open_records(claims):
    for number in range(3):
        claims.claim(a_subject(f"i-{number}"), FULL, NOW)
    claims.once("something", timedelta(hours=1), NOW)
    claims.close("i-1", version=1, outcome=Outcome.TERMINATED, now=LATER)
    assert sorted(claims.open_instances()) == ["i-0", "i-2"]


def test_many_records_are_read_at_once_open_and_closed(claims):
    for number in range(130):
        claims.claim(a_subject(f"i-{number:03}"), FULL, NOW)
    claims.close("i-129", version=1, outcome=Outcome.TERMINATED, now=LATER)
    names = [f"i-{number:03}" for number in range(131)]
    found = claims.read_all([*names, "i-000"])
    assert found == {name: claims.read(name) for name in names[:130]}
    assert found["i-129"].status is Status.CLOSED
    assert claims.read_all([]) == {}


def test_once_is_true_for_the_first_within_the_span(claims):
    assert claims.once("health-1", timedelta(minutes=10), NOW)
    assert not claims.once("health-1", timedelta(minutes=10), LATER)
    assert claims.once("health-2", timedelta(minutes=10), LATER)
    assert claims.once("health-1", timedelta(minutes=10), NOW + timedelta(minutes=10))


def test_a_launch_plan_is_written_over(claims):
    claims.claim(a_subject(), a_cause(), NOW)
    options = (LaunchOption(subnet="subnet-b", zone="us-east-1b", why="fewest cores"),)
    claims.plan(INSTANCE, LaunchPlan(options=options))
    claims.plan(INSTANCE, LaunchPlan(refused=("subnet-b: none",), nowhere="no zone is left"))
    assert claims.read(INSTANCE).plan == LaunchPlan(refused=("subnet-b: none",), nowhere="no zone is left")


def test_a_launch_without_a_record_is_not_planned(claims):
    with pytest.raises(ObjectGoneError):
        claims.plan("i-0unknown", LaunchPlan(nowhere="not asked"))


def test_each_surge_is_written_alone_and_stays_through_attempts_and_when_the_record_is_opened_again(claims):
    """Only the record leads back to a second replica, and two steps may write their own at the same time."""
    claims.claim(a_subject(), a_cause(), NOW)
    assert claims.read(INSTANCE).surges == {}
    claims.surge(INSTANCE, "shop/web", False)
    claims.surge(INSTANCE, "shop/api", False)
    claims.surge(INSTANCE, "shop/web", True)
    expected = {"shop/web": True, "shop/api": False}
    claims.begin_attempt(INSTANCE, 1)
    assert claims.read(INSTANCE).surges == expected
    claims.close(INSTANCE, version=1, outcome=Outcome.RETURNED_TO_SERVICE, now=NOW)
    assert claims.claim(a_subject(), a_cause(id="event-2"), LATER).surges == expected
    for _ in range(2):
        claims.surge(INSTANCE, "shop/web", None)
        assert claims.read(INSTANCE).surges == {"shop/api": False}


def test_a_boot_is_ended_by_one_reboot_which_outlives_the_period(claims):
    reboot = Reboot(by=RebootBy.LEEWARD, condition="KernelReady", status="False")
    claimed = claims.claim(a_subject(), replace(a_cause("unhealthy#1"), reboot=reboot), NOW)
    assert claimed.reboot == claims.read(INSTANCE).reboot == reboot
    claims.note(INSTANCE, boot="boot-1")
    claims.note(INSTANCE, boot="boot-2")
    assert (claims.read(INSTANCE).boot, claims.read(INSTANCE).rebooting) == ("boot-1", None)
    assert [claims.note_reboot(INSTANCE, "boot-1", at) for at in (NOW, LATER)] == [True, False]
    assert claims.read(INSTANCE).rebooting == ("boot-1", NOW)
    claims.close(INSTANCE, version=1, outcome=Outcome.REBOOTED, now=LATER)
    assert not claims.note_reboot(INSTANCE, "boot-2", LATER)
    claims.claim(a_subject(), a_cause("unhealthy#2"), LATER)
    reopened = claims.read(INSTANCE)
    assert (reopened.reboots, reopened.boot, reopened.rebooting, reopened.reboot) == ({"boot-1": NOW}, "", None, None)
    claims.forget_reboot(INSTANCE, "boot-1")
    assert claims.read(INSTANCE).reboots == {}


def test_nothing_is_raised_without_a_record(claims):
    with pytest.raises(ObjectGoneError):
        claims.surge("i-0unknown", "shop/web", True)


def test_names_that_are_taken_are_passed_over_and_are_no_tries(claims):
    claims.claim(a_subject(), a_cause(), NOW)
    record = claims.begin_attempt(INSTANCE, 1)
    assert (record.attempt, record.names_taken, record.tries) == (2, 0, 2)
    record = claims.begin_attempt(INSTANCE, 2, taken=8)
    assert (record.attempt, record.names_taken, record.tries) == (10, 8, 2)
    assert claims.begin_attempt(INSTANCE, 2, taken=8) == record
    assert claims.read(INSTANCE) == record


def test_a_refusal_of_the_launch_api_is_kept_as_one(claims):
    claims.claim(a_subject(), FULL, NOW)
    refused = Replacement(reason="AccessDenied: not authorized", refused=True)
    claims.replaced(INSTANCE, refused, NOW)
    assert claims.read(INSTANCE).replacement == refused


class TestCallsThatSaveARead:
    """Each write returns the record as it then stands, also where other steps have written."""

    PLAN = LaunchPlan(options=(LaunchOption(subnet="subnet-b", zone="us-east-1b", why="room"),))

    def test_the_first_plan_counts(self, claims):
        claims.claim(a_subject(), FULL, NOW)
        record = claims.begin_plan(INSTANCE, self.PLAN, version=1, seen=SEEN)
        assert (record.plan, record.seen) == (self.PLAN, SEEN)
        assert claims.begin_plan(INSTANCE, LaunchPlan(nowhere="full"), version=1) == record == claims.read(INSTANCE)

    def test_a_cause_that_joined_before_the_plan_is_seen_before_the_launch(self, claims):
        claims.claim(a_subject(), FULL, NOW)
        claims.claim(a_subject(), OTHER, LATER)
        record = claims.begin_plan(INSTANCE, self.PLAN, version=1, seen=SEEN)
        assert (record.causes, record.plan, record.seen) == ((FULL, OTHER), None, None)

    def test_the_first_instance_that_was_launched_counts(self, claims):
        claims.claim(a_subject(), FULL, NOW)
        claims.replaced(INSTANCE, Replacement(reason="full"), NOW)
        launched = Replacement(launched=("i-0new",), subnet="subnet-b")
        record = claims.replaced(INSTANCE, launched, LATER)
        assert (record.replacement, record.times["replacement"]) == (launched, NOW)
        for late in (Replacement(launched=("i-0other",)), Replacement(reason="full")):
            assert claims.replaced(INSTANCE, late, LATER) == record == claims.read(INSTANCE)

    def test_a_step_that_outlived_its_attempt_gets_the_record_of_the_next(self, claims):
        claims.claim(a_subject(), FULL, NOW)
        claims.begin_attempt(INSTANCE, 1)
        assert claims.note_attempt(INSTANCE, 1, times={"moved": NOW}) == claims.read(INSTANCE)

    def test_a_record_that_the_caller_has_read_is_joined(self, claims):
        read = claims.claim(a_subject(), FULL, NOW)
        joined = claims.claim(a_subject(), OTHER, LATER, read)
        assert (joined.causes, joined.version) == ((FULL, OTHER), 2)
        assert claims.claim(a_subject(), OTHER, LATER, read) == joined

    @pytest.mark.parametrize("again", [False, True])
    def test_a_record_that_was_closed_since_it_was_read_is_opened_again(self, claims, again):
        read = claims.claim(a_subject(), FULL, NOW)
        claims.close(INSTANCE, version=1, outcome=Outcome.RETURNED_TO_SERVICE, now=NOW)
        if again:
            claims.claim(a_subject(), a_cause("event-3"), NOW)
        record = claims.claim(a_subject(), OTHER, LATER, read)
        assert (record.period, record.causes[-1], record.earlier_causes) == (2, OTHER, (FULL,))

    def test_an_instance_that_has_moved_since_it_was_read_is_recorded_where_it_is(self, claims):
        read = claims.claim(a_subject(), FULL, NOW)
        there = replace(a_subject(), group="web-b")
        assert claims.claim(there, OTHER, LATER, read).subject.group == "web-b"

    def test_a_new_record_gets_all_its_causes_at_once_and_another_only_the_first(self, claims):
        record = claims.claim(a_subject(), FULL, NOW, also=[OTHER])
        assert (record.causes, record.version) == ((FULL, OTHER), 1)
        assert record == claims.read(INSTANCE)
        assert claims.claim(a_subject(), a_cause("event-3"), LATER, also=[a_cause("event-4")]).knows("event-4") is False

    def test_it_is_closed_with_the_last_times(self, claims):
        claims.claim(a_subject(), FULL, NOW)
        claims.note(INSTANCE, times={"terminated": NOW})
        late = {"terminated": LATER, "removed": LATER}
        claims.close(INSTANCE, version=1, outcome=Outcome.TERMINATED, now=LATER, times=late)
        assert claims.read(INSTANCE).times == {"claimed": NOW, "terminated": NOW, "removed": LATER, "closed": LATER}

    def test_a_record_is_carried_whole_but_for_its_task_token(self, claims):
        """As JSON: the state machine carries it."""
        claims.claim(a_subject(), FULL, NOW)
        claims.close(INSTANCE, version=1, outcome=Outcome.RETURNED_TO_SERVICE, now=NOW)
        claims.claim(a_subject(node="node-a"), OTHER, LATER)
        claims.claim(a_subject(), a_cause("event-3"), LATER)
        claims.withdraw(INSTANCE, "event-3")
        claims.begin_plan(INSTANCE, self.PLAN, version=4, seen=SEEN)
        claims.replaced(INSTANCE, Replacement(launched=("i-0new",)), LATER)
        claims.note(INSTANCE, times={"draining": LATER}, heartbeats={"h": NOW}, offsets={a_surge("i-0new"): by("i-0")})
        claims.surge(INSTANCE, "shop/web", scaled=True)
        record = claims.note_attempt(INSTANCE, 2, blocked_by=["shop/web: x"], evicted=2)
        assert claims.restored(json.loads(json.dumps(claims.carried(replace(record, token="secret"))))) == record
