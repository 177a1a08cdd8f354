"""Alarms that guard disruption: which groups they hold, and what is asked for them."""

from dataclasses import replace

import pytest

from leeward.disruption.candidates import candidates
from leeward.disruption.observation import with_alarms
from leeward.disruption.plan import plan_disruption, validate
from leeward.disruption.targets import targets
from leeward.errors import ThrottledError
from tests.fakes.upgrades import FakeAlarms
from tests.unit.disruption.fleet import NOON, a_fleet, a_policy, rules

SINCE = f"{NOON:%Y-%m-%dT%H:%M:%SZ}"
GUARDED = a_policy("guarded", "web", disruption=rules(alarms=("errors", "latency")))
OTHERS = a_policy("others", "other", disruption=rules(alarms=("latency",)))


@pytest.fixture
def alarms():
    alarms = FakeAlarms()
    alarms.quiet("errors")
    alarms.quiet("latency")
    return alarms


def two_groups():
    return a_fleet(GUARDED, OTHERS).node("n1").node("n2", group="other").snapshot()


def test_an_alarm_holds_the_groups_of_the_policies_that_name_it(alarms):
    alarms.ring("errors", NOON.timestamp())
    held = with_alarms(two_groups(), alarms)
    found, why = candidates(held)
    assert set(found) == {"n2"}
    assert why == {"n1": f"disruption of its group web is held: alarm errors is in ALARM since {SINCE}"}
    assert [target.group for target in targets(held, priced=True)[0]] == ["other"]


def test_one_read_serves_all_policies_and_none_is_made_without_alarms(alarms):
    with_alarms(two_groups(), alarms)
    assert alarms.asked["describe"] == 1
    with_alarms(a_fleet().node("n1").snapshot(), alarms)
    assert alarms.asked["describe"] == 1


def test_quiet_alarms_hold_nothing(alarms):
    snapshot = two_groups()
    assert with_alarms(snapshot, alarms) == snapshot


def test_alarms_that_cannot_be_read_hold_the_groups_that_name_any(alarms):
    alarms.fail("describe", ThrottledError("cloudwatch:DescribeAlarms on errors: Throttling"))
    fleet = a_fleet(GUARDED, a_policy("free", "other")).node("n1").node("n2", group="other")
    found, why = candidates(with_alarms(fleet.snapshot(), alarms))
    assert set(found) == {"n2"}
    assert "its alarms cannot be read (ThrottledError: cloudwatch:DescribeAlarms" in why["n1"]


def test_a_command_is_no_longer_valid_once_an_alarm_rings(alarms):
    snapshot = two_groups()
    plan = plan_disruption(snapshot)
    nodes = {name for command in plan.commands for name in command.nodes}
    assert nodes == {"n1", "n2"}
    alarms.ring("errors", NOON.timestamp())
    later = validate(with_alarms(snapshot, alarms), plan.method, plan.commands)
    assert {name for command in later.commands for name in command.nodes} == {"n2"}


def test_a_group_that_is_blocked_for_another_reason_switches_no_alarm_off(alarms):
    alarms.ring("errors", NOON.timestamp())
    snapshot = replace(two_groups(), blocked_groups={"other": "an upgrade of it is under way"})
    found, why = candidates(with_alarms(snapshot, alarms))
    assert found == {}
    assert why["n1"].startswith("disruption of its group web is held: alarm errors")
    assert why["n2"] == "an upgrade of it is under way"


def test_alarms_hold_each_of_several_groups(alarms):
    alarms.ring("latency", NOON.timestamp())
    assert candidates(with_alarms(two_groups(), alarms))[0] == {}
