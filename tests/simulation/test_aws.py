"""EC2 and Auto Scaling as the product meets them: boot, hooks and their time-outs, sizes, tokens, reclaims, balance."""

from collections import Counter
from random import Random

import pytest

from leeward.errors import TerminalError
from leeward.model.group import LAUNCHING, TERMINATING, HookResult, LifecycleHook
from simulation.aws.compute import IN_SERVICE, LEAVING_WAIT, PENDING_WAIT, subnet_of
from simulation.aws.fleet import SimFleet
from simulation.aws.listeners import Listeners
from simulation.aws.ports import SimGroups, SimInstances
from simulation.fault_rates import Faults
from simulation.faults import Injector
from simulation.timeline import START, Streams, Timeline
from tests.simulation.fleet_stand_in import ZONES, GroupPlan

FIRST = "i-00000000000000001"


class Account:
    """One group (three in service unless reported otherwise), its ports, and what it sent."""

    def __init__(self, *, rates=None, hooks=(), **plan):
        self.timeline = Timeline()
        self.injector = Injector(Faults(**(rates or {})), Streams(1), self.timeline, lambda _seconds: None)
        self.events, self.joined, self.ended = [], [], []
        to = Listeners(
            joined=lambda member: self.joined.append(member.id),
            ended=lambda member: self.ended.append(member.id),
            emit=self.events.append,
            changed=lambda: None,
            said=lambda _line: None,
        )
        self.fleet = SimFleet([GroupPlan(name="g", **plan)], "blue", self.timeline, self.injector, Random(1), to)
        self.fleet.populate()
        self.groups, self.instances = SimGroups(self.fleet, self.injector), SimInstances(self.fleet)
        for name, transition, timeout, default in hooks:
            hook = LifecycleHook(name=name, group="g", transition=transition, heartbeat_timeout=timeout)
            self.groups.put_hook(hook, default_result=default)

    def pass_time(self, seconds):
        self.timeline.run_until(self.timeline.now() + seconds)

    def group(self):
        return self.groups.describe(["g"])["g"]

    def lifecycle(self, instance=FIRST):
        found = self.groups.lifecycle_of(instance)
        return found[1] if found else None

    def state(self, instance=FIRST):
        return self.instances.describe([instance])[instance].state

    def sent(self):
        return Counter(event["detail-type"] for event in self.events)


LEAVE = ("leave", TERMINATING, 300, HookResult.CONTINUE)


def test_a_group_begins_at_its_size_spread_over_its_zones():
    account = Account(size=6)
    assert Counter(member.zone for member in account.group().instances) == dict.fromkeys(ZONES, 2)
    assert {member.lifecycle for member in account.group().instances} == {IN_SERVICE}
    assert account.state() == "running"


def test_a_termination_without_hooks_ends_the_instance_and_the_group_replaces_it():
    account = Account()
    assert account.groups.terminate(instance=FIRST, decrement=False)
    account.pass_time(120)
    assert (account.state(), account.lifecycle()) == ("terminated", None)
    assert account.group().desired == len(account.group().instances) == 3
    assert account.joined[-1] == "i-00000000000000004"


def test_a_terminate_hook_holds_the_instance_until_it_is_answered_once():
    account = Account(hooks=[LEAVE])
    account.groups.terminate(instance=FIRST, decrement=False)
    account.pass_time(200)
    assert (account.lifecycle(), account.state()) == (LEAVING_WAIT, "running")
    answer = {"group": "g", "hook": "leave", "instance": FIRST, "result": HookResult.CONTINUE}
    assert [account.groups.complete(**answer) for _ in range(2)] == [True, False]
    account.pass_time(10)
    assert account.state() == "shutting-down"
    assert account.groups.completed == [("g", "leave", FIRST, True)]


def test_an_unanswered_hook_times_out_and_heartbeats_put_that_off():
    account = Account(hooks=[LEAVE])
    account.groups.terminate(instance=FIRST, decrement=False)
    account.pass_time(200)
    assert account.groups.heartbeat(group="g", hook="leave", instance=FIRST)
    account.pass_time(200)
    assert account.lifecycle() == LEAVING_WAIT
    account.pass_time(110)
    assert account.state() == "shutting-down"
    assert account.groups.completed == []
    assert account.groups.heartbeat(group="g", hook="leave", instance=FIRST) is False


def test_two_hooks_are_both_waited_for_unless_one_abandons():
    hooks = [LEAVE, ("other", TERMINATING, 300, HookResult.CONTINUE)]
    answer = {"group": "g", "hook": "leave", "instance": FIRST}
    for result, held in ((HookResult.CONTINUE, True), (HookResult.ABANDON, False)):
        account = Account(hooks=hooks)
        account.groups.terminate(instance=FIRST, decrement=False)
        account.groups.complete(**answer, result=result)
        account.pass_time(30)
        assert (account.state() == "running") is held


def test_a_launch_hook_holds_a_new_instance_and_its_default_may_end_it():
    account = Account(hooks=[("arrive", LAUNCHING, 60, HookResult.ABANDON)])
    new = account.groups.launch(group="g", subnet=subnet_of(ZONES[0]), token="t").launched[0]
    account.pass_time(50)
    assert account.lifecycle(new) == PENDING_WAIT
    assert account.sent()["EC2 Instance-launch Lifecycle Action"] == 1
    account.pass_time(100)
    assert account.state(new) in {"shutting-down", "terminated"}


def test_the_same_token_launches_once_in_the_subnet_that_was_asked_for():
    account = Account()
    asked = [account.groups.launch(group="g", subnet=subnet_of(ZONES[1]), token="t") for _ in range(2)]
    assert asked[0] == asked[1]
    assert account.group().desired == len(account.group().instances) == 4
    assert account.instances.describe(asked[0].launched)[asked[0].launched[0]].zone == ZONES[1]
    assert account.groups.launches == [("t", asked[0].launched[0])]


def test_a_launch_is_refused_at_the_maximum_without_capacity_and_in_a_strange_subnet():
    account = Account(maximum=3)
    assert "MaxSize" in account.groups.launch(group="g", subnet=subnet_of(ZONES[0]), token="t").reason
    dry = Account(rates={"capacity_error": 1})
    assert "InsufficientInstanceCapacity" in dry.groups.launch(group="g", subnet=subnet_of(ZONES[0]), token="t").reason
    assert "none of the group's" in Account().groups.launch(group="g", subnet="subnet-x", token="t").reason
    assert account.group().desired == dry.group().desired == 3


def test_a_decrement_shrinks_the_group_once_and_never_below_its_minimum():
    account = Account()
    asked = [account.groups.terminate(instance=FIRST, decrement=True) for _ in range(2)]
    account.pass_time(120)
    assert asked == [True, False]
    assert account.group().desired == len(account.group().instances) == 2
    account.fleet.groups["g"].minimum = 2
    with pytest.raises(TerminalError, match="MinSize"):
        account.groups.terminate(instance="i-00000000000000002", decrement=True)
    assert account.group().desired == 2


def test_ec2_takes_a_spot_instance_two_minutes_after_its_warning_whatever_holds_it():
    account = Account(hooks=[LEAVE])
    account.fleet.notices.spot_warning(account.fleet.instances[FIRST])
    account.groups.terminate(instance=FIRST, decrement=False)
    account.pass_time(119)
    assert (account.state(), account.lifecycle()) == ("running", LEAVING_WAIT)
    account.pass_time(2)
    assert (account.state(), account.lifecycle()) == ("shutting-down", LEAVING_WAIT)
    assert account.ended == [FIRST]


def test_a_group_notices_late_that_an_instance_was_ended_behind_its_back():
    account = Account()
    account.fleet.end_instance(account.fleet.instances[FIRST], direct=True)
    account.pass_time(20)
    assert account.lifecycle() == IN_SERVICE
    account.pass_time(120)
    assert account.lifecycle() is None
    assert [member.lifecycle for member in account.group().instances] == [IN_SERVICE] * 3
    assert account.sent()["EC2 Instance State-change Notification"] == 2


def test_capacity_rebalance_ends_the_old_instance_once_the_new_one_serves():
    account = Account(capacity_rebalance=True)
    account.fleet.notices.rebalance_recommendation(account.fleet.instances[FIRST])
    account.pass_time(10)
    assert (account.lifecycle(), len(account.group().instances)) == (IN_SERVICE, 4)
    account.pass_time(120)
    assert account.lifecycle() is None
    assert account.group().desired == len(account.group().instances) == 3


def test_a_group_avoids_a_zone_without_capacity_and_balances_when_it_is_back():
    account = Account(size=6)
    account.injector.zones_down[ZONES[0]] = START + 600
    for member in [m for m in account.group().instances if m.zone == ZONES[0]]:
        account.groups.terminate(instance=member.id, decrement=False)
    account.pass_time(300)
    assert Counter(member.zone for member in account.group().instances) == {ZONES[1]: 3, ZONES[2]: 3}
    account.pass_time(400)
    for _ in range(3):
        account.fleet.scaling.balance_zones()
        account.pass_time(300)
    assert Counter(member.zone for member in account.group().instances) == dict.fromkeys(ZONES, 2)


def test_an_instance_that_never_joins_runs_without_a_node():
    account = Account(rates={"never_joins": 1})
    new = account.groups.launch(group="g", subnet=subnet_of(ZONES[0]), token="t").launched[0]
    account.pass_time(300)
    assert (account.lifecycle(new), account.state(new)) == (IN_SERVICE, "running")
    assert new not in account.joined


def test_ec2_forgets_an_instance_an_hour_after_its_end():
    account = Account()
    account.groups.terminate(instance=FIRST, decrement=False)
    account.pass_time(3000)
    assert account.state() == "terminated"
    account.pass_time(1000)
    assert account.instances.describe([FIRST]) == {}


def test_a_heartbeat_is_misdirected_unless_the_hook_was_put_after_the_instance_began_to_leave():
    account = Account(size=2, hooks=[LEAVE])
    account.groups.heartbeat(group="g", hook="leave", instance=FIRST)
    assert account.groups.misdirected == [("g", "leave", FIRST)]
    account.groups.terminate(instance=FIRST, decrement=False)
    late = LifecycleHook(name="late", group="g", transition=TERMINATING, heartbeat_timeout=300)
    account.groups.put_hook(late, default_result=HookResult.CONTINUE)
    account.groups.heartbeat(group="g", hook="late", instance=FIRST)
    assert account.groups.misdirected == [("g", "leave", FIRST)]
