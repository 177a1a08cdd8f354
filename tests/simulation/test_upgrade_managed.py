"""node-group-upgrade of a managed node group in virtual time: real steps and state machine, EKS by its own page."""

from dataclasses import replace
from datetime import timedelta
from itertools import product

import pytest

from leeward.policy.document import Canary, Window
from leeward.upgrade import run
from leeward.upgrade.observation import observe
from leeward.upgrade.status import UpgradePhase, status_of
from simulation.fault_rates import Faults
from simulation.faults import Killed
from simulation.image_aliases import PUBLIC, VERSION
from tests.drawing import drawn
from tests.simulation.fleet_stand_in import budget, deployment, killed_after
from tests.simulation.managed_stand_in import NODEGROUP, Managed
from tests.simulation.upgrade_stand_in import BEGIN, a_fleet

IMPOSSIBLE = (deployment("web", 8), budget("web", 0))
HOURLY = Window(schedule="0 * * * *", duration=timedelta(minutes=10))  # a world begins at midnight
NEVER = Window(schedule="0 0 29 2 *", duration=timedelta(hours=1))
ROLL = BEGIN + 240  # EKS is in the middle of it


def forcing(fleet):
    written = fleet.policies
    policies = tuple(replace(one, drain=replace(one.drain, force=True)) for one in written.policies)
    return replace(fleet, policies=replace(written, policies=policies))


def status(world):
    """As `leeward upgrade status` shows it now."""
    observation = observe(world.record, world.world.system.ports)
    return status_of(observation.preflight, world.record)


def events(world):
    return [one for one in world.world.cluster.store.each("events") if one["reason"] == "DrainBlocked"]


def test_eks_rolls_every_node_and_nothing_is_written_through_auto_scaling():
    world = Managed().start(launchTemplateVersion="2").run(2)
    assert (world.ended(), world.asked) == ("Upgraded", [(None, "2", False)])
    assert (world.images, world.at_rest(), world.untouched) == (["2"], True, True)
    assert "6 nodes replaced" in world.record.why


def test_a_group_without_a_template_takes_eks_image():
    world = Managed(own=False).start(kubernetesVersion="1.34").run(2)
    assert (world.ended(), world.asked) == ("Upgraded", [("1.34", None, False)])
    assert world.images == ["ami-eks-1.34-1"]
    assert world.record.target.image == "ami-eks-1.34-1"


def test_an_image_becomes_a_version_of_the_groups_own_template_once():
    world = Managed().start(ami="ami-00000000000000009").run(2)
    assert (world.ended(), world.asked, world.images) == ("Upgraded", [(None, "3", False)], ["3"])
    assert world.own.images[2:] == ["ami-00000000000000009"]


def test_an_image_that_an_alias_names_becomes_a_version_too():
    world = Managed()
    world.world.system.templates.parameters[PUBLIC["amd64"]] = "ami-00000000000000009"
    world.start(ami=f"al2023@{VERSION}").run(2)
    assert (world.ended(), world.own.images[2:]) == ("Upgraded", ["ami-00000000000000009"])


def test_an_image_of_eks_own_choice_cannot_be_had():
    world = Managed(own=False).start(ami="ami-00000000000000009").run()
    assert (world.ended(), world.asked) == ("PreflightBlocked", [])
    assert "ManagedImage" in world.why()


def test_an_impossible_budget_blocks_it_and_the_findings_stay_to_be_read():
    world = Managed(a_fleet(workloads=IMPOSSIBLE)).start(launchTemplateVersion="2").run()
    assert (world.ended(), world.asked) == ("PreflightBlocked", [])
    kept = world.world.system.upgrades.plan("app")
    assert kept["execution"] == "first"
    assert kept["plan"]["findings"][0]["code"] == "PdbNeverAllows"


def test_pods_that_stay_end_it_by_name_and_started_with_force_it_goes_on():
    world = Managed(a_fleet(workloads=IMPOSSIBLE)).start(launchTemplateVersion="2", override=["PdbNeverAllows"])
    world.start("again", at=BEGIN + 2 * 3600, force=True).run(5)
    assert (world.ended(), world.ended("again")) == ("PodEvictionFailure", "Upgraded")
    assert "pdb default/web" in world.why()
    assert "default/web-" in world.why()
    assert world.asked == [(None, "2", False), (None, "2", True)]
    assert (world.images, world.at_rest()) == (["2"], True)


def test_a_policy_that_forces_starts_it_again_by_force_at_once():
    world = Managed(forcing(a_fleet(workloads=IMPOSSIBLE))).start(launchTemplateVersion="2").run(5)
    assert (world.ended(), world.asked) == ("Upgraded", [(None, "2", False), (None, "2", True)])
    assert "by force since update-1 failed" in world.record.warnings[0]


def test_what_holds_a_drain_is_reported_by_status_and_event_while_it_happens():
    world, seen = Managed(a_fleet(workloads=IMPOSSIBLE)), []
    world.start(launchTemplateVersion="2", override=["PdbNeverAllows"])
    world.at(ROLL + 120, lambda: seen.append(status(world))).run(1)
    (reported,) = seen
    assert reported.phase is UpgradePhase.UPGRADING
    assert reported.draining == reported.old > 0
    assert {one.object for one in reported.blockers} == {"pdb default/web"}
    assert {one["involvedObject"]["kind"] for one in events(world)} == {"Node"}
    assert "pdb default/web" in events(world)[0]["message"]


def test_a_roll_that_nothing_holds_writes_no_event():
    world = Managed().start(launchTemplateVersion="2").run(2)
    assert events(world) == []


def test_status_follows_the_roll_with_eks_labels_at_the_gate():
    world, phases = Managed(), []
    world.start(launchTemplateVersion="2")
    for after in range(10, 700, 20):
        world.at(BEGIN + after, lambda: phases.append(status(world).phase))
    world.run(2)
    assert list(dict.fromkeys(phases)) == [
        UpgradePhase.SCALING_UP,
        UpgradePhase.UPGRADING,
        UpgradePhase.SCALING_DOWN,
        UpgradePhase.DONE,
    ]


def test_user_data_that_keeps_eks_labels_away_is_a_node_creation_failure_that_names_them():
    world = Managed(user_data_breaks=True).start(launchTemplateVersion="2").run(2)
    assert world.ended() == "NodeCreationFailure"
    assert "eks.amazonaws.com/sourceLaunchTemplateVersion=2" in world.why()
    assert "custom user data" in world.record.error


def test_instances_that_never_join_are_named():
    world = Managed().start(launchTemplateVersion="2")
    world.template.bad.add("2")  # EKS' next copy
    world.run(2)
    assert world.ended() == "NodeCreationFailure"
    assert "no node has joined the cluster" in world.record.error


def test_while_an_alarm_rings_and_five_minutes_longer_eks_is_not_asked():
    world = Managed(a_fleet(alarms=("errors",)))
    alarms, seen = world.world.system.alarms, []
    alarms.ring("errors", BEGIN)
    world.start(launchTemplateVersion="2")
    for at in (BEGIN + 100, BEGIN + 850):  # it is read each half minute
        world.at(at, lambda: seen.append((list(world.asked), world.record.alarm.partition(" since ")[0])))
    world.at(BEGIN + 600, lambda: alarms.quiet("errors")).run(2)
    assert seen == [([], "alarm errors is in ALARM"), ([], "")]
    assert "WaitForMaintenanceWindow" in world.states["first"]
    assert (world.ended(), world.images) == ("Upgraded", ["2"])


def test_outside_its_windows_eks_is_not_asked():
    world, asked = Managed(a_fleet(windows=(HOURLY,))).start(launchTemplateVersion="2", at=1200), []
    world.at(3500, lambda: asked.extend(world.asked)).run(3)
    assert "WaitForMaintenanceWindow" in world.states["first"]
    assert (asked, world.asked, world.ended()) == ([], [(None, "2", False)], "Upgraded")


def test_paused_before_it_starts_eks_is_asked_when_it_is_resumed():
    world = Managed(a_fleet(windows=(HOURLY,))).start(launchTemplateVersion="2", at=1200)
    world.start("pause", at=1300, action="pause").start("resume", at=2 * 3600 + 1800, action="resume")
    asked = []
    world.at(2 * 3600 + 1700, lambda: asked.extend(world.asked)).run(4)
    assert asked == []
    assert (world.ended(), len(world.asked)) == ("Upgraded", 1)


def test_what_was_held_is_judged_again_before_it_starts():
    world = Managed(a_fleet(windows=(HOURLY,))).start(launchTemplateVersion="2", at=1200)
    change = {"spec": {"maxUnavailable": 0}}
    world.at(1800, lambda: world.world.cluster.patch("poddisruptionbudgets", "web", change, "default")).run(2)
    assert (world.ended(), world.asked) == ("PreflightBlocked", [])


def test_a_pause_while_eks_rolls_stops_nothing_and_says_so():
    world = Managed().start(launchTemplateVersion="2").start("pause", at=ROLL, action="pause").run(2)
    assert (world.ended(), world.ended("pause")) == ("Upgraded", "ControlRequestRecorded")
    said = [line for line in world.world.story if "EKS cannot pause an update" in line]
    assert {line.split(" app:")[0].split()[-1] for line in said} == {"take-lease", "watch-managed"}
    assert "pause came too late" in world.record.warnings[0]


def test_an_abort_before_eks_is_asked_ends_it():
    world = Managed(a_fleet(windows=(NEVER,))).start(launchTemplateVersion="2")
    world.start("abort", at=BEGIN + 300, action="abort").run()
    assert (world.ended(), world.asked, world.at_rest(versions=("1",))) == ("Aborted", [], True)


def test_an_abort_while_eks_rolls_waits_for_the_end():
    world = Managed().start(launchTemplateVersion="2").start("abort", at=ROLL, action="abort").run(2)
    assert (world.ended(), world.images) == ("Upgraded", ["2"])
    assert "abort came too late" in world.record.warnings[0]


def test_an_aborted_update_that_fails_is_not_tried_again():
    world = Managed(forcing(a_fleet(workloads=IMPOSSIBLE))).start(launchTemplateVersion="2")
    world.start("abort", at=ROLL, action="abort").run(3)
    assert (world.ended(), len(world.asked)) == ("Aborted", 1)
    assert "PodEvictionFailure" in world.record.warnings[0]


@pytest.mark.parametrize("at", drawn([ROLL, BEGIN + 2 * 3600], 2))
def test_a_rollback_is_an_update_to_the_version_before(at):
    world = Managed().start(launchTemplateVersion="2").start("back", at=at, action="rollback").run(5)
    assert "RolledBack" in {world.ended(), world.ended("back")}
    assert world.asked == [(None, "2", False), (None, "1", False)]
    assert (world.images, world.at_rest(versions=("3",))) == (["1"], True)


def test_where_eks_chose_the_image_there_is_no_way_back():
    world = Managed(own=False).start(kubernetesVersion="1.34")
    world.start("back", at=BEGIN + 2 * 3600, action="rollback").run(3)
    assert (world.ended(), world.ended("back")) == ("Upgraded", "InvalidInput")
    assert "nor a release of EKS' image" in world.why("back")


def test_a_canary_is_refused_and_let_pass_by_name():
    fleet = a_fleet(canary=Canary(nodes=1, bake=timedelta(minutes=10)))
    world = Managed(fleet).start(launchTemplateVersion="2")
    world.start("again", at=BEGIN + 600, launchTemplateVersion="2", override=["ManagedCanary"]).run(2)
    assert (world.ended(), world.ended("again")) == ("PreflightBlocked", "Upgraded")
    assert "ManagedCanary" in world.why()


def test_eks_takes_no_more_at_once_than_the_policy_allows():
    world = Managed(at_once=3).start(launchTemplateVersion="2").run()
    assert (world.ended(), world.asked) == ("PreflightBlocked", [])
    assert "aws eks update-nodegroup-config" in world.record.error


def test_an_update_that_another_tool_has_started_blocks_it():
    world = Managed()
    theirs = world.world.system.managed_updates.start
    world.at(BEGIN - 60, lambda: theirs("blue", NODEGROUP, token="console")).start(launchTemplateVersion="2").run()
    assert (world.ended(), len(world.asked)) == ("PreflightBlocked", 1)
    assert "NodegroupNotActive" in world.why()


@pytest.mark.parametrize("after", drawn([1, 40, 150, 300, 500, 560]))
def test_stopped_anywhere_and_started_again_it_is_one_update(after):
    world = Managed().start(launchTemplateVersion="2")
    world.at(BEGIN + after, lambda: world.machine.stop("first"))
    world.start("again", at=BEGIN + after + 100).run(2)
    assert "Upgraded" in {world.ended(), world.ended("again")}
    assert (len(world.asked), world.images, world.at_rest()) == (1, ["2"], True)


@pytest.mark.parametrize("step", drawn(["take-lease", "start-managed", "watch-managed", "restore"], 2))
def test_killed_after_any_step_it_does_the_same_again_and_changes_nothing(step, monkeypatch):
    killed = killed_after("upgrade", step, monkeypatch)
    world = Managed().start(launchTemplateVersion="2")
    outcome = world.world.run(2.0, 900)
    assert (killed, outcome.violations, world.ended()) == ([step, step], (), "Upgraded")
    assert (len(world.asked), world.at_rest()) == (1, True)


@pytest.mark.parametrize(("number", "after"), drawn(product(range(20, 400, 90), (False, True)), 4))
def test_killed_at_a_port_call_it_is_one_update(number, after):
    world = Managed(faults=Faults(kill_call=number, kill_after=after)).start(launchTemplateVersion="2").run(2)
    assert (world.ended(), len(world.asked), world.at_rest()) == ("Upgraded", 1, True)


def test_an_update_whose_answer_got_lost_is_found_again():
    """The function dies between EKS' answer and the record, and the execution is stopped."""
    world = Managed()
    updates = world.world.system.managed_updates
    real, lost = updates.start, []

    def dies(*args, **kwargs):
        update = real(*args, **kwargs)
        if not lost:
            lost.append(update)
            world.machine.stop("first")
            raise Killed("start-managed")
        return update

    updates.start = dies
    world.start(launchTemplateVersion="2").start("again", at=BEGIN + 200, launchTemplateVersion="2").run(2)
    assert (lost, world.ended("again"), len(world.asked)) == (["update-1"], "Upgraded", 1)


def test_another_target_asked_for_meanwhile_comes_after_the_one_that_rolls():
    world = Managed()
    world.own.add("ami-own-3")
    world.start(launchTemplateVersion="2").at(ROLL, lambda: world.machine.stop("first"))
    world.start("again", at=ROLL + 60, launchTemplateVersion="3").run(3)
    assert world.ended("again") == "Upgraded"
    assert (world.asked, world.images) == ([(None, "2", False), (None, "3", False)], ["3"])


def test_a_full_history_goes_on_in_another_execution(monkeypatch):
    monkeypatch.setattr(run, "MOST_PAUSES", 5)
    world = Managed().start(launchTemplateVersion="2").run(2)
    assert (world.ended(), len(world.asked), world.at_rest()) == ("Continued", 1, True)
