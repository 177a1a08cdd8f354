"""Disruption windows of pods: `leeward.dev/disruption-window: "CRON/DURATION [TIME ZONE]"`."""

from datetime import UTC, datetime, timedelta

import pytest

from leeward.blockers.blocker import BlockerKind
from leeward.disruption.blocked_nodes import DISRUPTION_BLOCKED, blocked_event
from leeward.disruption.candidates import candidates
from leeward.disruption.do_not_disrupt import parse_window, pod_opt_outs, why_pod_stays
from leeward.disruption.plan import plan_disruption
from leeward.model.pod import Pod
from leeward.policy.document import DrainPolicy, Window
from tests.unit.blockers.test_blockers import NOW, a_pod, found
from tests.unit.disruption.fleet import NOON, a_fleet, a_policy, rules

KEY = "leeward.dev/disruption-window"
SATURDAYS = "0 14 * * 6/3h"


def at(text):
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def a_pod_with(value, **spec):
    meta = {"namespace": "shop", "name": "db-0", "annotations": {KEY: value}}
    return Pod.from_json({"metadata": meta, "spec": {"nodeName": "n1"}, "status": {"phase": "Running"}} | spec)


@pytest.mark.parametrize(
    ("value", "window"),
    [
        (SATURDAYS, Window(schedule="0 14 * * 6", duration=timedelta(hours=3))),
        ("*/30 * * * */10m", Window(schedule="*/30 * * * *", duration=timedelta(minutes=10))),
        (
            "0 2 ? * sun/90m Europe/Berlin",
            Window(schedule="0 2 * * sun", duration=timedelta(minutes=90), time_zone="Europe/Berlin"),
        ),
        ("@daily/1h", Window(schedule="@daily", duration=timedelta(hours=1))),
        (
            "@weekly/2h America/New_York",
            Window(schedule="@weekly", duration=timedelta(hours=2), time_zone="America/New_York"),
        ),
    ],
)
def test_a_window_is_a_cron_line_a_duration_and_a_time_zone(value, window):
    assert parse_window(value) == window


@pytest.mark.parametrize(
    "value",
    [
        "",
        "weekends",
        "0 14 * * 6",
        "0 14 * * 6/",
        "0 14 * * 6/0s",
        "0 14 * * 6/3",
        "0 14 * * 6/-3h",
        "0 14 * * 9/3h",
        "0 14 * * /3h",
        "0 14 * */3h",
        "0 14 * * 6/3h Mars/Olympus",
        "0 14 * * 6/3h UTC UTC",
        "@sometimes/3h",
        f"0 14 {','.join(['1'] * 200)} * 6/3h",
    ],
)
def test_a_value_that_cannot_be_read_keeps_the_node_at_all_times_and_is_named(value):
    (opt_out,) = pod_opt_outs(a_pod_with(value), NOON)
    assert opt_out.until is None
    reason = why_pod_stays(a_pod_with(value), NOON)
    assert reason.startswith("pod shop/db-0 has no disruption window that ever opens: it has to be")
    assert value[:60] in reason
    assert len(reason) < 400


@pytest.mark.parametrize(
    ("now", "is_open", "until"),
    [
        ("2026-05-02T13:59:59", False, "2026-05-02T14:00:00"),  # a Saturday
        ("2026-05-02T14:00:00", True, None),
        ("2026-05-02T16:59:59", True, None),
        ("2026-05-02T17:00:00", False, "2026-05-09T14:00:00"),
        ("2026-05-05T12:00:00", False, "2026-05-09T14:00:00"),
    ],
)
def test_the_node_of_a_pod_may_be_disrupted_within_its_window_alone(now, is_open, until):
    opt_outs = pod_opt_outs(a_pod_with(SATURDAYS), at(now))
    assert [one.until for one in opt_outs] == ([] if is_open else [at(until)])


def test_a_window_follows_its_time_zone():
    berlin = a_pod_with("0 14 * * 6/3h Europe/Berlin")  # in May UTC+2
    assert not pod_opt_outs(berlin, at("2026-05-02T12:00:00"))
    assert pod_opt_outs(berlin, at("2026-05-02T15:00:00"))


def test_a_finished_pod_has_no_window():
    assert not pod_opt_outs(a_pod_with(SATURDAYS, status={"phase": "Succeeded"}), NOON)


def test_another_opt_out_holds_within_the_window_too():
    pod = a_pod_with("* * * * */1h")
    pod.annotations["karpenter.sh/do-not-disrupt"] = "true"
    assert [one.key for one in pod_opt_outs(pod, NOON)] == ["karpenter.sh/do-not-disrupt"]


def a_fleet_of_windows(value, now=NOON, **policy):
    fleet = a_fleet(a_policy(disruption=rules(expire_after=timedelta(days=1)), **policy), now=now)
    return fleet.node("n1").pod("a", "n1", annotations={KEY: value})


def test_plan_says_when_the_window_of_a_pod_opens():
    reasons = candidates(a_fleet_of_windows(SATURDAYS).snapshot())[1]
    assert reasons == {
        "n1": "pod shop/a opts out of disruption until its window opens at 2026-05-02T14:00:00Z "
        '(leeward.dev/disruption-window: "0 14 * * 6/3h")'
    }
    assert plan_disruption(a_fleet_of_windows(SATURDAYS, at("2026-05-02T15:00:00")).snapshot()).commands


def test_a_termination_grace_period_overrides_the_window_as_it_does_do_not_disrupt():
    fleet = a_fleet_of_windows(SATURDAYS, drain=DrainPolicy(termination_grace_period=timedelta(hours=1)))
    assert plan_disruption(fleet.snapshot()).commands


def test_an_event_names_the_pod_and_a_value_that_cannot_be_read():
    snapshot = a_fleet_of_windows("never on\n Sundays").snapshot()
    (node,) = snapshot.nodes
    reason, message = blocked_event(snapshot, plan_disruption(snapshot), node)
    assert reason == DISRUPTION_BLOCKED
    assert message.startswith("pod shop/a has no disruption window that ever opens")
    assert '"never on\\n Sundays"' in message


def test_blockers_say_until_when_and_how_to_open_it():
    (blocker,) = found(a_pod(annotations={KEY: "0 0 1 1 */1h"}))
    assert (blocker.kind, blocker.until) == (BlockerKind.DISRUPTION_WINDOW, at(f"{NOW.year + 1}-01-01T00:00:00"))
    assert f"kubectl annotate pod -n shop web-1 {KEY}-" in blocker.fix
    (broken,) = found(a_pod(annotations={KEY: "0 0 1 1 *"}))
    assert (broken.until, broken.object) == (None, f"annotation {KEY}=0 0 1 1 *")
    assert "at all times, as it is not" in broken.fix
