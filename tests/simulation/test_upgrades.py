"""node-group-upgrade over its own steps and the terminations that they start: every way through the state machine."""

from datetime import timedelta
from itertools import product

import pytest

from leeward.model.launch_refusal import fix_for
from leeward.model.termination import Replacement
from leeward.policy.document import Canary, OnAlarm, Window
from leeward.upgrade import run
from simulation import functions
from simulation.fault_rates import Faults
from simulation.owners import set_desired
from tests.drawing import drawn
from tests.fakes.refusals import REFUSALS
from tests.simulation.fleet_stand_in import budget, deployment, killed_after
from tests.simulation.upgrade_stand_in import BEGIN, FIRST, GROUP, Upgraded, a_fleet
from tests.simulation.upgrade_story import stop_in

NEVER = Window(schedule="0 0 29 2 *", duration=timedelta(hours=1))
IMPOSSIBLE = (deployment("web", 8), budget("web", 0))


@pytest.mark.parametrize(("strategy", "parallel"), drawn(product(("DEFAULT", "MINIMAL", "INCREMENTAL"), (1, 2)), 2))
def test_every_node_is_replaced_and_sizes_are_what_they_were(strategy, parallel):
    world = Upgraded(a_fleet(strategy=strategy, max_unavailable=parallel)).start(launchTemplateVersion="2").run()
    assert world.ended() == "Upgraded"
    assert world.at_rest()
    assert world.zones == sorted(["us-east-1a", "us-east-1b", "us-east-1c"] * 2)


def test_a_version_with_the_image_is_made_once():
    world = Upgraded().start(ami="ami-00000000000000009").run()
    assert (world.ended(), world.template.images[-1]) == ("Upgraded", "ami-00000000000000009")
    assert world.at_rest(versions=("3",))


def test_the_maximum_size_is_raised_for_the_surge_and_put_back():
    world = Upgraded().start(launchTemplateVersion="2").run()
    raised = [(group, maximum) for group, _, maximum in world.world.system.changes.raised]
    assert raised == [(GROUP, 12)]
    assert list(world.world.system.changes.put_back) == [(GROUP, 6)]


def test_zone_balancing_rests_for_the_time():
    world = Upgraded().start(launchTemplateVersion="2").run()
    assert list(world.world.system.changes.switched) == [(GROUP, "AZRebalance", True), (GROUP, "AZRebalance", False)]


@pytest.mark.parametrize(("cause", "refusal"), REFUSALS.items())
def test_where_launching_by_name_is_refused_the_desired_size_is_raised_once_and_paid_back(cause, refusal):
    world = Upgraded(a_fleet(maximum=14)).start(launchTemplateVersion="2")
    refused = Replacement(reason=refusal, refused=True)
    world.world.system.groups.launch = lambda **_: refused
    events, store = [], world.world.cluster.store  # an Event is forgotten after an hour
    world.at(
        BEGIN + 900, lambda: events.extend(one for one in store.each("events") if one["reason"] == "LaunchRefused")
    )
    world.run(1.5)
    assert (world.ended(), world.at_rest()) == ("Upgraded", True)
    assert [desired for group, desired, _ in world.world.system.changes.raised if group == GROUP] == [6, 12]
    assert all(words in world.record.warnings[0] for words in (cause.value, fix_for(cause), "desired size is raised"))
    assert any(cause.value in one["message"] for one in events)


def test_new_nodes_that_are_ready_within_seconds_open_the_gate_of_the_next_start(monkeypatch):
    """The next start finds them launched at nearly the moment at which they prove the target."""
    world = Upgraded()
    quick = world.world.fleet.groups[GROUP]
    quick.boots, quick.joins = (0.5, 1), (0.5, 1)
    world.start(launchTemplateVersion="2")
    stop_in(monkeypatch, world, "WaitForNewNodes", again_after=2.5)
    world.run()
    assert (world.ended("again"), world.at_rest()) == ("Upgraded", True)


def test_a_second_start_hands_over_to_the_first():
    world = Upgraded().start(launchTemplateVersion="2").start("second", at=BEGIN + 60).run()
    assert (world.ended(), world.ended("second")) == ("Upgraded", "Delegated")


def test_a_wrong_input_is_reported_and_nothing_is_written():
    world = Upgraded()
    world.at(BEGIN, lambda: world.machine.start("first", {"group": "absent"})).run()
    assert world.ended() == "InvalidInput"
    assert not world.world.upgrades


def test_a_parameter_outside_of_eks_own_is_refused_before_anything_is_written():
    world = Upgraded().start(ami="/golden/images/web").run()
    assert world.ended() == "InvalidInput"
    assert "expected one under /aws/service/eks/" in world.why()
    assert not world.world.upgrades


def test_paused_between_nodes_it_goes_on_when_resumed():
    world = Upgraded().start(launchTemplateVersion="2")
    world.start("pause", at=BEGIN + 80, action="pause").start("resume", at=BEGIN + 900, action="resume").run()
    assert "Paused" in world.states["first"]
    assert (world.ended("pause"), world.ended("resume")) == ("ControlRequestRecorded", "ControlRequestRecorded")
    assert (world.ended(), world.at_rest()) == ("Upgraded", True)


def test_paused_for_long_before_any_new_node_was_launched_they_get_their_time_when_it_is_resumed():
    world = Upgraded().start(launchTemplateVersion="2")
    world.start("pause", at=BEGIN + 1, action="pause").start("resume", at=BEGIN + 2400, action="resume").run(2)
    assert any("launch app: wait: new nodes ahead of the drains: none" in line for line in world.world.story)
    assert (world.ended(), world.at_rest()) == ("Upgraded", True)


def test_an_abort_brings_the_group_back_to_its_size_and_uncordons_what_is_left():
    world = Upgraded().start(launchTemplateVersion="2").start("abort", at=BEGIN + 150, action="abort").run()
    assert world.ended() == "Aborted"
    assert world.group.desired == 6
    assert (world.group.maximum, world.group.suspended, world.cordoned) == (6, (), [])
    assert world.group.launch.template.version == "1"


def test_an_abort_that_is_repeated_begins_no_upgrade():
    """The nodes that the abort has kept are of another version than the template that it has restored."""
    world = Upgraded().start(launchTemplateVersion="2").start("abort", at=BEGIN + 150, action="abort")
    world.start("again", at=BEGIN + 1500, action="abort").run()
    assert (world.ended("again"), "2" in world.versions) == ("ControlRequestRecorded", True)


def test_an_abort_before_the_first_drain_leaves_the_old_nodes():
    world = Upgraded().start(launchTemplateVersion="2").start("abort", at=BEGIN + 10, action="abort").run()
    assert (world.ended(), world.at_rest(versions=("1",))) == ("Aborted", True)


@pytest.mark.parametrize("at", [BEGIN + 10, BEGIN + 120, BEGIN + 1500])
def test_a_rollback_returns_to_the_version_before(at):
    world = Upgraded().start(launchTemplateVersion="2").start("back", at=at, action="rollback").run()
    assert "RolledBack" in {world.ended(), world.ended("back")}
    assert world.at_rest(versions=("1",))


def test_turned_round_again_a_new_node_that_pays_for_itself_pays_once():
    """The rollback requests the termination of a launch of the upgrade: to the second rollback it has joined."""
    world, turned = Upgraded().start(launchTemplateVersion="2").start("back", at=BEGIN + 90, action="rollback"), []

    def look():
        record = world.world.upgrades.get(GROUP)
        if turned or record is None or not record.rolling_back:
            return
        if any(by == new and new in record.under_way for new, by in record.assigned.items()):
            turned.append(True)
            world.machine.start("again", {"group": GROUP, "action": "rollback"})

    world.watch(look).run()
    assert turned
    assert world.at_rest()


def test_an_impossible_budget_blocks_it_before_anything_is_changed():
    world = Upgraded(a_fleet(workloads=IMPOSSIBLE)).start(launchTemplateVersion="2").run()
    assert (world.ended(), world.versions) == ("PreflightBlocked", ["1"])
    assert "PdbNeverAllows (pdb default/web)" in world.why()
    assert not world.world.system.changes.pointed


def test_overridden_it_fails_at_the_pods_and_goes_on_when_they_can_leave():
    world = Upgraded(a_fleet(workloads=IMPOSSIBLE)).start(launchTemplateVersion="2", override=["PdbNeverAllows"])

    def allow():
        world.world.cluster.patch("poddisruptionbudgets", "web", {"spec": {"maxUnavailable": 1}}, "default")

    world.at(BEGIN + 6 * 3600, allow).start("again", at=BEGIN + 6 * 3600 + 60).run(7.5)
    assert (world.ended(), world.ended("again")) == ("PodEvictionFailure", "Upgraded")
    assert "PodDisruptionBudget default/web allows no disruption" in world.why()
    assert world.at_rest()


def test_an_image_that_never_joins_is_a_node_creation_failure_and_nothing_is_drained():
    world = Upgraded().start(launchTemplateVersion="2")
    world.template.bad.add("2")
    world.run()
    assert world.ended() == "NodeCreationFailure"
    assert "no node has joined the cluster" in world.why()
    assert (world.record.finished, world.cordoned, world.group.suspended) == (0, [], ())


def test_more_than_the_surge_comes_once_each_zone_has_a_ready_new_node_and_before_the_gate_opens():
    world, before, behind = Upgraded(a_fleet(30, maximum=30, max_unavailable=3)), [0], []

    def look():
        record = world.world.upgrades.get(GROUP)
        if record is None or record.ended:
            return
        if record.proven is None:
            before.append(len(record.ahead))
        elif not record.cordoned:
            behind.append(len(record.ahead))

    world.watch(look).start(launchTemplateVersion="2").run()
    assert world.ended() == "Upgraded"
    assert (max(before), max(behind)) == (6, 9)  # twice three zones; three turns of three
    assert world.at_rest(30)


def test_after_a_failure_an_abort_removes_what_came_ahead():
    world = Upgraded().start(launchTemplateVersion="2").start("abort", at=BEGIN + 2400, action="abort")
    world.template.bad.add("2")
    world.run()
    assert (world.ended(), world.ended("abort")) == ("NodeCreationFailure", "Aborted")
    assert world.at_rest(versions=("1",))


def test_after_a_failure_another_target_ends_with_the_sizes_of_the_first_start():
    """What the first start has launched is in the sizes that the second one finds: they are not what others want."""
    world = Upgraded().start(launchTemplateVersion="2")
    world.template.bad.add("2")
    world.template.add("ami-00000000000000003")
    world.start("again", at=BEGIN + 1800, launchTemplateVersion="3").run(1.5)
    assert (world.ended(), world.ended("again"), world.record.desired) == ("NodeCreationFailure", "Upgraded", 6)
    assert world.at_rest(versions=("3",))


def test_a_canary_bakes_before_the_rest_goes():
    fleet = a_fleet(canary=Canary(nodes=1, bake=timedelta(minutes=10)))
    world = Upgraded(fleet).start(launchTemplateVersion="2").run(1.5)
    assert "Bake" in world.states["first"]
    assert (world.ended(), world.at_rest()) == ("Upgraded", True)


def test_an_alarm_holds_it_and_five_minutes_after_the_alarm_it_continues():
    world = Upgraded(a_fleet(alarms=("errors",)))
    alarms, seen, events = world.world.system.alarms, [], set()
    alarms.quiet("errors")

    def look():
        seen.append((world.record.started, world.record.alarm))
        events.update(event["reason"] for event in world.world.cluster.store.each("events"))

    world.start(launchTemplateVersion="2").at(BEGIN + 110, lambda: alarms.ring("errors", BEGIN + 110))
    for at in (BEGIN + 140, BEGIN + 1100, BEGIN + 1380):
        world.at(at, look)
    world.at(BEGIN + 1110, lambda: alarms.quiet("errors")).run(1.5)
    rang, later, quiet = seen
    assert rang[1].startswith("alarm errors is in ALARM since ")
    assert rang == later
    assert quiet == (rang[0], "")
    assert "WaitForAlarms" in world.states["first"]
    assert (world.ended(), world.at_rest()) == ("Upgraded", True)
    assert {"UpgradeHeld", "UpgradeResumed"} <= events


def test_an_alarm_rolls_it_back_where_the_policy_says_so():
    world = Upgraded(a_fleet(alarms=("errors",), on_alarm=OnAlarm.ROLLBACK))
    alarms = world.world.system.alarms
    alarms.quiet("errors")
    world.start(launchTemplateVersion="2").at(BEGIN + 110, lambda: alarms.ring("errors", BEGIN + 110)).run(1.5)
    assert (world.ended(), world.at_rest(versions=("1",))) == ("RolledBack", True)
    assert any(one.startswith("rolled back: alarm errors is in ALARM") for one in world.record.warnings)


def test_outside_its_windows_it_waits():
    world = Upgraded(a_fleet(windows=(NEVER,))).start(launchTemplateVersion="2")
    world.start("abort", at=BEGIN + 1800, action="abort").run()
    assert (world.ended(), world.at_rest(versions=("1",))) == ("Aborted", True)


def test_who_scales_up_meanwhile_keeps_the_larger_size():
    world = Upgraded(a_fleet(maximum=14)).start(launchTemplateVersion="2")

    def grow():
        group = world.world.fleet.groups[GROUP]
        set_desired(world.world, group, group.desired + 1, "a scaling policy")

    world.at(BEGIN + 150, grow).run(1.5)
    assert (world.ended(), world.versions, world.group.suspended) == ("Upgraded", ["2"], ())
    assert world.record.others_scaled is not None
    assert world.group.desired > 6


def test_a_spot_interruption_in_the_middle_changes_nothing_at_the_end():
    world = Upgraded(a_fleet(spot=True, maximum=14)).start(launchTemplateVersion="2")
    warn = world.world.fleet.notices.spot_warning
    world.at(BEGIN + 130, lambda: warn(world.world.fleet.instances[FIRST])).run(1.5)
    assert (world.ended(), world.at_rest()) == ("Upgraded", True)


def test_a_full_history_goes_on_in_another_execution(monkeypatch):
    monkeypatch.setattr(run, "MOST_PAUSES", 5)
    world = Upgraded().start(launchTemplateVersion="2").run()
    assert world.ended() == "Continued"
    assert world.at_rest()


@pytest.mark.parametrize("after", drawn([20, 60, 100, 140, 180, 220]))
def test_stopped_anywhere_and_started_again_it_goes_on_where_it_was(after):
    world = Upgraded().start(launchTemplateVersion="2")
    world.at(BEGIN + after, lambda: world.machine.stop("first"))
    world.start("again", at=BEGIN + after + 200).run()
    assert (world.ended("again"), world.at_rest()) == ("Upgraded", True)
    assert len(world.world.launches) == 6


def test_what_a_stopped_execution_had_suspended_is_resumed_at_once_by_the_rule_on_its_end():
    world = Upgraded().start(launchTemplateVersion="2")
    seen = []
    world.at(BEGIN + 65, lambda: world.machine.stop("first"))
    world.at(BEGIN + 69, lambda: seen.append((world.group.suspended, world.record.why))).run()
    assert seen == [((), "execution first ended with ABORTED: start the upgrade of app again, and it continues")]
    assert world.record.resumable


def test_where_that_event_is_lost_the_sweeper_does_it(monkeypatch):
    monkeypatch.setattr(functions, "upgrade_ended", lambda detail, ports: {})
    world = Upgraded().start(launchTemplateVersion="2")
    world.at(BEGIN + 60, lambda: world.machine.stop("first")).run()
    assert (world.group.suspended, world.record.resumable) == ((), True)


STEPS = ["take-lease", "check", "prepare", "point", "launch", "gate", "cordon", "drain", "scale-down", "restore"]


@pytest.mark.parametrize("step", drawn(STEPS))
def test_killed_after_any_step_it_does_the_same_again_and_changes_nothing(step, monkeypatch):
    """The function dies when its effects are done: the state machine takes the step once more."""
    killed = killed_after("upgrade", step, monkeypatch)
    world = Upgraded().start(launchTemplateVersion="2")
    outcome = world.world.run(1.0, 900)
    assert (killed, outcome.violations) == ([step, step], ())
    assert world.at_rest()
    assert len(world.world.launches) == 6


@pytest.mark.parametrize(("number", "after"), drawn(product(range(40, 1000, 120), (False, True)), 4))
def test_killed_at_a_port_call_it_comes_to_the_same_end(number, after):
    world = Upgraded(faults=Faults(kill_call=number, kill_after=after)).start(launchTemplateVersion="2").run()
    assert world.ended() == "Upgraded"
    assert world.at_rest()


def test_an_abort_right_after_the_cordons_lifts_those_of_seconds_ago():
    world = Upgraded(a_fleet(strategy="MINIMAL")).start(launchTemplateVersion="2")

    def abort():
        if any("gate app: ready" in line for line in world.world.story) and "abort" not in world.executions:
            world.machine.start("abort", {"group": GROUP, "action": "abort"})

    world.watch(abort).run()
    assert (world.ended(), world.ended("abort")) == ("Aborted", "ControlRequestRecorded")
    assert "cordon app: cordoned: cordoned 6 old nodes" in "\n".join(world.world.story)
    assert (world.record.started, world.cordoned) == (0, [])
