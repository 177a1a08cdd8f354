"""Each promise is kept in a recording of a good play, and broken in one that shows the opposite."""

from dataclasses import replace

import pytest

from account_test import judge
from account_test.plays import PLAYS
from account_test.recording import Recording, Sizes
from tests.unit.account.builders import (
    BEGAN,
    NEW,
    OLD,
    STAYS,
    a_sample,
    a_termination,
    an_end,
    changed,
    kept,
)

PROMISES = {
    "ended": judge.ended,
    "gone": judge.gone(),
    "replaced first": judge.replaced_first,
    "budgets held": judge.budgets_held,
    "pods left first": judge.pods_left_first,
    "nothing tainted": judge.nothing_tainted,
    "once each": judge.once_each,
    "no message left": judge.no_message_left,
    "sized": judge.sized(2),
    "machine succeeded": judge.machine_succeeded,
    "every pod runs": judge.every_pod_runs(2),
}
LAST = a_sample(60, STAYS, NEW, pods=(STAYS, NEW))
BROKEN = [
    ("ended", changed(ended=False)),
    ("gone", changed(terminations=[a_termination(status="open")])),
    ("gone", changed(terminations=[])),
    ("gone", changed(samples=[a_sample(60, OLD, STAYS, NEW)])),
    ("gone", changed(terminations=[a_termination(), a_termination(instance=STAYS)])),
    ("gone", changed(terminations=[a_termination(instance=STAYS)])),
    ("replaced first", changed(terminations=[a_termination(launched=(), replacement="refused")])),
    (
        "replaced first",
        changed(
            terminations=[
                a_termination(times={"replacement": "2026-01-01T00:00:09Z", "draining": "2026-01-01T00:00:03Z"})
            ]
        ),
    ),
    ("replaced first", changed(terminations=[a_termination(times={})])),
    ("replaced first", changed(victims=("i-0other",))),
    ("budgets held", changed(samples=[*kept().samples, replace(LAST, budget=(0, 1))])),
    ("budgets held", changed(samples=[replace(LAST, budget=None)])),
    ("pods left first", changed(samples=[*kept().samples, a_sample(61, OLD, NEW, pods=(OLD, NEW))])),
    ("pods left first", changed(events=[], terminations=[a_termination(times={})])),
    ("pods left first", changed(terminations=[])),
    ("nothing tainted", changed(samples=[a_sample(60, STAYS, NEW, tainted=(STAYS,))])),
    ("nothing tainted", changed(samples=[a_sample(60, STAYS, NEW, cordoned=(NEW,))])),
    ("nothing tainted", changed(samples=[])),
    ("once each", changed(executions={f"{OLD}-1": "SUCCEEDED", f"{OLD}-2": "SUCCEEDED"})),
    ("once each", changed(executions={f"{OLD}-1": "FAILED"})),
    ("once each", changed(executions={})),
    ("no message left", changed(queue_depth=1)),
    ("no message left", changed(dead_letters=[("bad", "an unsent message")])),
    ("no message left", changed(nonsense="nonsense")),
    ("no message left", changed(nonsense="nonsense", dead_letters=[("", "nonsense")])),
    ("sized", changed(after=Sizes(minimum=0, desired=1, maximum=3))),
    ("sized", changed(after=Sizes(minimum=0, desired=2, maximum=4))),
    ("sized", changed(after=Sizes(minimum=0, desired=2, maximum=3, suspended=("AZRebalance",)))),
    ("sized", changed(samples=[a_sample(60, NEW)])),
    ("sized", changed(after=None)),
    ("machine succeeded", changed(machine="FAILED", machine_error="PodEvictionFailure")),
    ("machine succeeded", changed(machine="")),
    ("every pod runs", changed(samples=[a_sample(60, STAYS, NEW, pods=(STAYS,))])),
]


@pytest.mark.parametrize("name", PROMISES)
def test_a_good_play_keeps_it(name):
    finding = PROMISES[name](kept())
    assert finding.kept, finding


@pytest.mark.parametrize(("name", "seen"), BROKEN, ids=[f"{number} {name}" for number, (name, _) in enumerate(BROKEN)])
def test_a_recording_that_shows_the_opposite_breaks_it(name, seen):
    finding = PROMISES[name](seen)
    assert not finding.kept, finding


def test_each_promise_has_a_recording_that_breaks_it():
    assert {name for name, _ in BROKEN} == set(PROMISES)


def test_nonsense_with_its_reason_and_letters_of_earlier_plays_are_no_strangers():
    earlier = changed(dead_letters=[("bad", "of an earlier play")], letters_before=("of an earlier play",))
    assert judge.no_message_left(earlier).kept
    assert judge.no_message_left(changed(nonsense="x", dead_letters=[("not JSON", "x")])).kept


def test_a_run_that_a_person_named_hands_over_to_the_instances_own():
    runs = {f"{OLD}-1": "SUCCEEDED", f"{OLD}-manual": "SUCCEEDED"}
    assert judge.once_each(changed(executions=runs)).kept
    assert not judge.once_each(changed(executions={**runs, f"{OLD}-manual": "FAILED"})).kept


def test_an_upgrade_is_judged_by_members_and_versions():
    all_new = judge.all_new("2")
    rolled = changed(members_before=(OLD,), samples=[a_sample(60, NEW)], versions=("2",))
    assert all_new(rolled).kept
    assert not all_new(replace(rolled, members_before=(NEW,))).kept
    assert not all_new(replace(rolled, versions=("1", "2"))).kept
    assert not all_new(replace(rolled, samples=[])).kept


def test_the_event_says_when_ec2_takes_an_instance_rather_than_our_record():
    early = a_termination(times={"terminated": "2026-01-01T00:00:10Z"})
    samples = [a_sample(20, OLD, STAYS, pods=(OLD, STAYS)), a_sample(60, STAYS, NEW, pods=(STAYS, NEW))]
    assert judge.pods_left_first(changed(terminations=[early], samples=samples, events=[an_end(second=31)])).kept
    assert not judge.pods_left_first(changed(terminations=[early], samples=samples, events=[])).kept


def test_another_teams_hook_is_judged_by_its_instance_and_by_our_records():
    held = Recording(play="p", began=BEGAN, hook_state="Terminating:Wait")
    assert judge.left_alone(held).kept
    assert not judge.left_alone(replace(held, hook_state="Terminating:Proceed")).kept
    assert not judge.left_alone(replace(held, terminations=[a_termination()])).kept


def test_an_empty_recording_keeps_no_promise_of_any_play():
    nothing = Recording(play="p", began=BEGAN)
    allowed = {"no message is left, and nonsense ends in the dead-letter queue"}
    for play in PLAYS:
        kept_ones = {one.promise for one in play.judged(nothing) if one.kept}
        assert kept_ones <= allowed, play.name
