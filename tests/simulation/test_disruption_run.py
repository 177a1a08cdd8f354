"""disruption over its own steps, and the terminations that it starts: every way through the state machine."""

from dataclasses import replace
from datetime import timedelta
from functools import partial
from itertools import product
from pathlib import Path

import pytest

from infra.asl import read_definition
from leeward.errors import AccessDeniedError
from leeward.model.termination import Replacement
from leeward.policy.document import Budget
from simulation import functions
from simulation.definitions import NODE_GROUP_UPGRADE
from simulation.fault_rates import Faults
from tests.drawing import drawn
from tests.fakes.builders import pausing
from tests.simulation.disruption_stand_in import (
    CHANGED,
    DECIDED,
    FIRST,
    GROUP,
    WASTE,
    Disrupted,
    a_fleet,
    a_wasteful_fleet,
    deployment,
)
from tests.simulation.fleet_stand_in import GroupPlan, budget, killed_after

DEFINITION = read_definition(Path("functions/leeward/disruption/state_machine.asl.yaml"))
ROOMY = (deployment("web", 4), budget("web"))
HALF_PAST = 1800.0  # seconds: half past midnight
WHILE_IT_DRAINS = 640.0  # seconds: of two half-empty nodes one goes from 600 on


def blocked(world):
    return events(world, "DisruptionBlocked")


def events(world, reason):
    return [one for one in world.world.cluster.store.each("events") if one["reason"] == reason]


def annotations(world):
    return [node["metadata"].get("annotations") or {} for node in world.world.cluster.store.sorted("nodes")]


def test_drifted_nodes_are_replaced_one_by_one_and_the_size_is_what_it_was():
    world = Disrupted().drifting().run()
    assert world.ends == ["DisruptionDone"] * 3
    assert (world.versions, world.launches, world.most) == (["2", "2", "2"], 3, 1)
    assert world.untouched()
    assert world.sizes() == {GROUP: (3, 3)}
    assert len(world.world.terminations) == 3  # each new node in the zone of the old one: nothing is left to balance


def test_as_many_nodes_go_at_once_as_the_budget_allows():
    world = Disrupted(a_fleet(budgets=(Budget(nodes=2, percent=False),))).drifting().run()
    assert (world.most, world.versions) == (2, ["2", "2", "2"])
    assert world.untouched()


def test_the_node_that_disturbs_least_goes_first():
    world, gone = Disrupted().drifting(), []
    light, expensive = f"node-i-{2:017x}", {"controller.kubernetes.io/pod-deletion-cost": "2000000"}

    def weigh():
        for pod in list(world.world.cluster.store.each("pods")):
            if pod["spec"]["nodeName"] != light:
                note = {"metadata": {"annotations": expensive}}
                world.world.cluster.patch("pods", pod["metadata"]["name"], note, "default")

    world.at(DECIDED - 30, weigh).at(DECIDED + 5, lambda: gone.extend(world.record.commands[0].nodes)).run()
    assert gone == [light]
    assert world.versions == ["2", "2", "2"]


def test_of_nodes_alike_the_one_with_fewer_pods_goes_first():
    world = Disrupted(a_fleet(workloads=(deployment("web", 16), budget("web", 2)))).drifting()
    pods, gone = {}, []

    def count():
        gone.extend(world.record.commands[0].nodes)
        for pod in world.world.cluster.store.each("pods"):
            pods[pod["spec"]["nodeName"]] = pods.get(pod["spec"]["nodeName"], 0) + 1

    world.at(DECIDED + 5, count).run()
    assert sorted(pods.values()) == [5, 5, 6]
    assert pods[gone[0]] == 5


def test_expired_nodes_are_replaced():
    world = Disrupted(a_fleet(expire_after=timedelta(hours=1))).run(1.3)
    assert world.launches >= 1
    assert set(world.ends) == {"DisruptionDone"}
    assert "expiration: 1 node gone, 1 launched" in world.story
    assert world.untouched()


def test_an_empty_node_goes_and_its_group_shrinks():
    fleet = a_fleet(workloads=(), consolidation_policy="WhenEmpty", consolidate_after=timedelta(minutes=1))
    world = Disrupted(fleet).run()
    assert world.record.method.value == "emptiness"
    assert world.sizes()[GROUP][0] < 3
    assert world.launches == 0


def test_an_empty_node_is_annotated_before_it_goes():
    fleet = a_fleet(workloads=(), consolidation_policy="WhenEmpty", consolidate_after=timedelta(hours=9))
    world = Disrupted(fleet).run(0.2)
    assert all("leeward.dev/empty-since" in notes for notes in annotations(world))
    assert world.ends == []


def test_a_dear_node_becomes_a_cheap_one_of_another_group():
    world = Disrupted(a_wasteful_fleet()).run()
    assert world.ends == ["DisruptionDone"]
    assert world.sizes() == {"big": (0, 0), "small": (1, 1)}
    assert world.untouched()


def test_two_half_empty_nodes_become_one():
    world = Disrupted(a_fleet(size=2, workloads=ROOMY, consolidation_policy=WASTE)).run()
    assert (world.sizes()[GROUP], world.launches) == ((1, 1), 0)
    assert world.untouched()


def test_three_nodes_become_one_cheaper_node_of_another_group():
    zone = ("us-east-1a",)
    groups = (
        GroupPlan(name=GROUP, spot=False, size=3, zones=zone),
        GroupPlan(name="cheap", spot=True, size=0, zones=zone),
    )
    workloads = (deployment("web", 6),)
    budgets = (Budget(nodes=3, percent=False),)
    world = Disrupted(a_fleet(groups=groups, workloads=workloads, consolidation_policy=WASTE, budgets=budgets)).run()
    (command,) = world.record.commands
    assert (len(command.nodes), command.replacements[0].group, world.ends) == (3, "cheap", ["DisruptionDone"])
    assert world.sizes() == {GROUP: (0, 0), "cheap": (1, 1)}
    assert command.savings == pytest.approx(0.27)
    assert world.untouched()


def test_a_node_that_stays_is_reported_why_and_not_more_often_than_every_ten_minutes():
    world = Disrupted(a_fleet(consolidation_policy=WASTE)).run()
    reported = events(world, "Unconsolidatable")
    assert {one["involvedObject"]["name"] for one in reported} == {f"node-i-{number:017x}" for number in (1, 2, 3)}
    assert len(reported) <= 3 * 4
    assert all("has no other place" in one["message"] or "consolidateAfter" in one["message"] for one in reported)


def test_a_pod_that_must_not_be_disrupted_holds_its_node_which_says_so():
    world = Disrupted().drifting()

    def protect():
        for pod in world.world.cluster.store.each("pods"):
            note = {"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}}
            world.world.cluster.patch("pods", pod["metadata"]["name"], note, "default")

    world.at(DECIDED - 30, protect).run()
    assert (world.ends, world.versions) == ([], ["1", "1", "1"])
    assert any("do-not-disrupt" in one["message"] for one in events(world, "DisruptionBlocked"))
    assert [notes["leeward.dev/drift-reasons"] for notes in annotations(world)] == ["ami"] * 3


def test_a_pod_with_a_disruption_window_keeps_its_node_until_the_window_opens():
    world, before = Disrupted().drifting(), []

    def limit():
        for pod in world.world.cluster.store.each("pods"):
            note = {"metadata": {"annotations": {"leeward.dev/disruption-window": "30 0 * * */1h"}}}
            world.world.cluster.patch("pods", pod["metadata"]["name"], note, "default")

    world.at(DECIDED - 30, limit).at(HALF_PAST - 1, lambda: before.append((world.launches, world.most))).run(0.8)
    assert before == [(0, 0)]
    assert world.versions != ["1", "1", "1"]
    assert any("until its window opens at 2026-03-02T00:30:00Z" in one["message"] for one in blocked(world))


def test_a_node_that_is_in_order_again_is_no_longer_annotated_as_drifted():
    world = Disrupted(a_fleet(budgets=(Budget(nodes=0, percent=False),))).drifting()
    seen = []
    world.at(DECIDED + 60, lambda: seen.extend(annotations(world)))
    world.at(DECIDED + 90, lambda: world.world.fleet.groups[GROUP].point_at("1")).run(0.3)
    assert ["leeward.dev/drifted-since" in notes for notes in seen] == [True] * 3
    assert not any("leeward.dev/drifted-since" in notes for notes in annotations(world))
    assert world.ends == []


def test_what_changes_between_decision_and_action_is_seen_and_nothing_is_touched():
    world = Disrupted().drifting()

    def opt_out():
        for number in (1, 2, 3):
            note = {"metadata": {"annotations": {"leeward.dev/do-not-disrupt": "true"}}}
            world.world.cluster.patch("nodes", f"node-i-{number:017x}", note)

    world.at(DECIDED + 8, opt_out).run(0.2)
    assert world.ends == ["DisruptionGivenUp"]
    assert (world.most, world.launches) == (0, 0)
    assert "do-not-disrupt" in world.record.why


def test_what_changes_while_the_new_node_boots_is_seen_before_anything_is_drained():
    world = Disrupted().drifting()

    def opt_out():
        for number in (1, 2, 3):
            note = {"metadata": {"annotations": {"leeward.dev/do-not-disrupt": "true"}}}
            world.world.cluster.patch("nodes", f"node-i-{number:017x}", note)

    world.at(DECIDED + 30, opt_out).run(0.5)
    assert world.ends == ["DisruptionGivenUp"]
    assert (world.launches, world.most) == (1, 1)
    assert world.untouched()
    assert world.sizes() == {GROUP: (3, 3)}
    assert not world.world.records.get(FIRST)


def test_a_refused_launch_gives_the_round_up_and_the_group_rests():
    world = Disrupted().drifting()
    world.world.system.groups.launch = lambda **_: Replacement(reason="ValidationError: mixed purchase options")
    world.run(0.4)
    assert set(world.ends) == {"DisruptionGivenUp"}
    assert len(world.ends) == 3  # of five decisions: the cool-down of five minutes lets every second one through
    assert "mixed purchase options" in world.record.why
    assert world.untouched()


def test_a_zone_without_capacity_is_passed_over():
    world = Disrupted().drifting()
    launch, refused = world.world.system.groups.launch, []

    def first_refused(*, group, subnet, token):
        if not refused or refused == [subnet]:
            refused[:] = [subnet]
            return Replacement(reason="InsufficientInstanceCapacity", no_capacity=True)
        return launch(group=group, subnet=subnet, token=token)

    world.world.system.groups.launch = first_refused
    world.run(0.3)
    assert world.ends[0] == "DisruptionDone"
    assert refused


def test_a_node_that_never_joins_is_ended_and_the_round_starts_over_after_the_cool_down():
    world = Disrupted().drifting()
    world.world.fleet.groups[GROUP].template.bad.add("2")
    world.run()
    assert set(world.ends) == {"DisruptionGivenUp"}
    assert (world.versions, world.sizes()) == (["1", "1", "1"], {GROUP: (3, 3)})
    assert "has not joined after" in world.record.why
    assert world.untouched()


def test_a_node_of_another_type_than_planned_is_ended_before_anything_is_drained():
    world = Disrupted().drifting()
    new = world.world.fleet._new

    def other(group, zone):
        member = new(group, zone)
        if world.world.timeline.now() - world.world.timeline_began > DECIDED:
            member.type = "m5.xlarge"
        return member

    world.world.timeline_began = world.world.timeline.now()
    world.world.fleet._new = other
    world.run(0.4)
    assert world.ends[0] == "DisruptionGivenUp"
    assert "is of type m5.xlarge, planned were m5.large" in world.story
    assert FIRST not in world.world.records


def test_pods_that_do_not_leave_keep_their_node_and_the_new_one_goes_again():
    world = Disrupted().drifting()

    look, forbidden = world.world.seen, []

    def forbid():
        look()
        if not forbidden and any(one.state == "NodesDrain" for one in world.machine.executions.values()):
            forbidden.append(True)
            world.world.cluster.patch("poddisruptionbudgets", "web", {"spec": {"maxUnavailable": 0}}, "default")

    world.world.seen = forbid
    world.run()
    assert world.ends[0] == "DisruptionDone"
    assert "stayed, their pods did not leave" in world.story
    assert world.sizes() == {GROUP: (3, 3)}
    assert world.untouched()


def test_a_group_at_its_maximum_gets_one_more_for_the_time():
    world = Disrupted(a_fleet(maximum=3)).drifting().run()
    assert world.versions == ["2", "2", "2"]
    assert {maximum for _, _, maximum in world.world.system.changes.raised} == {4}
    assert world.untouched()


def test_zones_are_not_balanced_while_a_replacement_is_there():
    world = Disrupted().drifting().run(0.3)
    switched = list(world.world.system.changes.switched)
    assert switched[:2] == [(GROUP, "AZRebalance", True), (GROUP, "AZRebalance", False)]


def test_balancing_that_its_owner_has_suspended_stays_so():
    world = Disrupted().drifting()
    world.world.fleet.groups[GROUP].suspended.add("AZRebalance")
    world.at(3500, lambda: world.world.fleet.groups[GROUP].suspended.discard("AZRebalance")).run()
    assert list(world.world.system.changes.switched) == []


def test_a_spot_interruption_in_the_middle_leaves_the_sizes_as_they_were():
    world = Disrupted(a_fleet(spot=True)).drifting()
    warn = world.world.fleet.notices.spot_warning
    world.at(DECIDED + 40, lambda: warn(world.world.fleet.instances[FIRST])).run()
    assert world.sizes() == {GROUP: (3, 3)}
    assert world.untouched()


@pytest.mark.parametrize(("after", "ends"), [(30, ["DisruptionGivenUp"]), (70, ["DisruptionDone"])])
def test_an_upgrade_waits_until_the_round_that_holds_its_group_has_ended(after, ends):
    """As long as no node was requested to terminate, the run gives way to the upgrade that an operator has started."""
    world = Disrupted().drifting()
    upgrades = world.world.system.machines[NODE_GROUP_UPGRADE]
    world.at(DECIDED + after, lambda: upgrades.start("upgrade", {"group": GROUP, "launchTemplateVersion": "2"})).run()
    assert "GroupBusyError: disruption run 1 (drift) holds app: node-i-00000000000000001" in world.story
    assert "execution upgrade: SUCCEEDED Upgraded" in world.story
    assert world.ends == ends  # the upgrade does the rest
    assert (world.versions, world.sizes()) == (["2", "2", "2"], {GROUP: (3, 3)})
    assert world.untouched()


def test_an_upgrade_that_waited_for_a_round_gives_back_the_size_that_the_round_left():
    world = Disrupted(a_fleet(size=2, workloads=ROOMY, consolidation_policy=WASTE))
    world.world.fleet.groups[GROUP].template.add("ami-00000000000000002")
    upgrades = world.world.system.machines[NODE_GROUP_UPGRADE]
    world.at(WHILE_IT_DRAINS, lambda: upgrades.start("upgrade", {"group": GROUP, "launchTemplateVersion": "2"})).run()
    assert "GroupBusyError: disruption run 1 (consolidation) holds app" in world.story
    assert "execution upgrade: SUCCEEDED Upgraded" in world.story
    assert (world.world.upgrades[GROUP].desired, world.sizes()[GROUP]) == (1, (1, 1))


def test_a_group_that_is_being_upgraded_is_left_alone():
    world = Disrupted().drifting()
    upgrades = world.world.system.machines[NODE_GROUP_UPGRADE]
    world.at(DECIDED - 20, lambda: upgrades.start("upgrade", {"group": GROUP, "launchTemplateVersion": "2"})).run()
    assert (world.ends, world.launches) == ([], 3)
    assert "execution upgrade: SUCCEEDED Upgraded" in world.story


def test_an_upgrade_that_begins_before_the_round_has_touched_anything_is_first():
    world = Disrupted().drifting()
    upgrades = world.world.system.machines[NODE_GROUP_UPGRADE]
    world.at(DECIDED + 5, lambda: upgrades.start("upgrade", {"group": GROUP, "launchTemplateVersion": "2"})).run()
    assert world.ends == ["DisruptionGivenUp"]
    assert "is being upgraded" in world.story
    assert "execution upgrade: SUCCEEDED Upgraded" in world.story
    assert world.untouched()


def test_a_paused_cluster_is_not_even_looked_at():
    fleet = a_fleet()
    world = Disrupted(replace(fleet, policies=pausing(fleet.policies))).drifting().run(0.3)
    assert world.world.system.disruptions.records == {}
    assert not any("drift-reasons" in key for notes in annotations(world) for key in notes)


def test_a_round_started_manually_finds_out_by_itself_what_there_is_to_do():
    world = Disrupted().drifting()
    world.at(DECIDED - 40, lambda: world.machine.start("manual", {"cluster": "blue"})).run(0.3)
    assert "RequestTerminations" in world.states["manual"]
    assert world.record.number >= 1


def test_a_manual_start_with_nothing_to_do_says_so():
    world = Disrupted()
    world.at(DECIDED - 40, lambda: world.machine.start("manual", {"cluster": "blue"})).run(0.2)
    assert "execution manual: SUCCEEDED NothingToDo" in world.story


@pytest.mark.parametrize(
    ("given", "reported"),
    [
        ({"cluster": ""}, "cluster: found '', expected the name of a cluster. Enter "),
        ({"cluster": "green"}, "cluster: found 'green', expected one of blue. Enter "),
        (
            {"cluster": "blue", "disruption": "first"},
            "disruption: found 'first', expected a whole number. Enter ",
        ),
    ],
)
def test_a_wrong_input_is_reported(given, reported):
    world = Disrupted()
    world.at(DECIDED - 40, lambda: world.machine.start("manual", given)).run(0.2)
    assert f"execution manual: FAILED InvalidInput {reported}" in world.story


def test_a_second_execution_hands_over_to_the_first():
    world = Disrupted().drifting()
    world.at(DECIDED + 20, lambda: world.machine.start("second", {"cluster": "blue", "disruption": 1})).run(0.3)
    assert "execution second: SUCCEEDED Delegated" in world.story
    assert world.ends[0] == "DisruptionDone"


STATES = [name for name, state in DEFINITION["States"].items() if state["Type"] in {"Task", "Wait"}]
FAILING = {"RollBackCommand", "NoteFailure"}
BESIDE = FAILING | {"RevalidateCommand"}  # not on the way of a run that goes well


@pytest.mark.parametrize("state", drawn([name for name in STATES if name not in BESIDE]))
def test_stopped_in_any_state_it_is_brought_to_an_end_and_the_next_round_does_the_rest(state):
    world = Disrupted().drifting()
    stopped = stop_once_in(state, world)
    world.run(1.2)
    assert stopped
    assert world.versions == ["2", "2", "2"]
    assert world.sizes() == {GROUP: (3, 3)}
    assert world.untouched()


def stop_once_in(state, world):
    """Names of what was stopped."""
    stopped, look = [], world.world.seen

    def seen():
        look()
        for name, execution in list(world.machine.executions.items()):
            if execution.state == state and not stopped:
                stopped.append(name)
                world.world.timeline.after(0, partial(world.machine.stop, name), "stopped")

    world.world.seen = seen
    return stopped


@pytest.mark.parametrize("state", sorted(FAILING))
def test_stopped_while_it_is_given_up_or_has_failed_nothing_of_it_is_left(state):
    world = Disrupted().drifting()
    fails = AccessDeniedError("autoscaling:LaunchInstances: not authorized") if state == "NoteFailure" else None

    def launch(**_):
        if fails is not None and not stopped:
            raise fails
        return Replacement(reason="ValidationError: mixed purchase options")

    world.world.system.groups.launch = launch
    stopped = stop_once_in(state, world)
    world.run(0.4)
    assert stopped
    assert set(world.ends[1:]) <= {"DisruptionGivenUp"}
    assert not world.record.open
    assert world.untouched()


def slow_to_validate(world, monkeypatch):
    """The first validation behind the taint lasts for two minutes after its look."""
    real, slow = functions.step, []

    def lasts(function, call, ports):
        answer = real(function, call, ports)
        if function == "disrupt" and call["step"] == "validate-again" and not slow:
            slow.append(call)
            world.world.invocations.sleep(120)
        return answer

    monkeypatch.setattr(functions, "step", lasts)
    return world


def test_no_termination_is_requested_by_a_validation_that_is_minutes_old(monkeypatch):
    world = Disrupted(a_fleet(size=2, workloads=ROOMY, consolidation_policy=WASTE))
    more = deployment("more", 6)
    world.at(680, lambda: world.world.cluster.create("deployments", more, "default"))
    slow_to_validate(world, monkeypatch).run(0.3)
    assert "the last validation is 120 s old: validating again" in world.story
    assert (world.ends, world.record.requested, world.sizes()[GROUP]) == (["DisruptionGivenUp"], False, (2, 2))
    assert world.untouched()


def test_stopped_before_it_judges_once_more_the_round_is_brought_to_an_end(monkeypatch):
    world = slow_to_validate(Disrupted(a_fleet(size=2, workloads=ROOMY, consolidation_policy=WASTE)), monkeypatch)
    stopped = stop_once_in("RevalidateCommand", world)
    world.run(1.2)
    assert stopped
    assert world.sizes()[GROUP] == (1, 1)
    assert world.untouched()


def test_what_still_holds_is_done_all_the_same(monkeypatch):
    world = Disrupted(a_fleet(size=2, workloads=ROOMY, consolidation_policy=WASTE))
    slow_to_validate(world, monkeypatch).run()
    (states,) = world.states.values()
    assert [one for one in states if one in {"RequestTerminations", "ValidateAgain"}] == [
        "ValidateAgain",
        "RequestTerminations",
        "ValidateAgain",
        "RequestTerminations",
    ]
    assert (world.sizes()[GROUP], world.ends) == ((1, 1), ["DisruptionDone"])


STEPS = ["take", "validate", "taint", "launch", "ready", "validate-again", "terminate", "follow", "end"]


@pytest.mark.parametrize("step", drawn(STEPS))
def test_killed_after_any_step_it_does_the_same_again_and_changes_nothing(step, monkeypatch):
    """The function dies when its effects are done: the state machine takes the step once more."""
    killed = killed_after("disrupt", step, monkeypatch)
    world = Disrupted().drifting().run()
    assert killed == [step, step]
    assert (world.versions, world.launches) == (["2", "2", "2"], 3)
    assert world.untouched()


@pytest.mark.parametrize(("number", "after"), drawn(product(range(60, 900, 120), (False, True)), 4))
def test_killed_at_a_port_call_it_comes_to_the_same_end(number, after):
    world = Disrupted(faults=Faults(kill_call=number, kill_after=after)).drifting().run(1.2)
    assert world.versions == ["2", "2", "2"]
    assert world.untouched()


DENIED = 8  # tries: more than a step repeats, as an access entry or an API server that starts takes seconds


@pytest.mark.parametrize("step", drawn(STEPS[1:]))
def test_a_step_that_is_denied_names_the_call_and_the_round_is_taken_up_again(step, monkeypatch):
    real, denied = functions.step, []

    def denies(function, call, ports):
        if function == "disrupt" and call["step"] == step and len(denied) < DENIED:
            denied.append(step)
            raise AccessDeniedError("autoscaling:LaunchInstances: not authorized")
        return real(function, call, ports)

    monkeypatch.setattr(functions, "step", denies)
    world = Disrupted().drifting()
    world.world.injector.faultless = False  # the step fails as under a fault
    world.run(1.4)
    assert "DisruptionFailure" in world.ends
    assert "AccessDeniedError: autoscaling:LaunchInstances: not authorized" in world.story
    assert world.versions == ["2", "2", "2"]
    assert world.untouched()


def guarded(*, rings, quiet):
    """Drifted nodes whose policy names an alarm, which rings from one moment to the other."""
    world = Disrupted(a_fleet(alarms=("errors",))).drifting()
    alarms = world.world.system.alarms
    alarms.quiet("errors")
    return world.at(rings, lambda: alarms.ring("errors", rings)).at(quiet, lambda: alarms.quiet("errors"))


def test_while_an_alarm_rings_nothing_is_planned_and_the_nodes_say_why():
    world = guarded(rings=CHANGED, quiet=2000)
    world.at(1900, lambda: reasons.extend(events(world, "DisruptionBlocked")))
    reasons = []
    world.run(2)
    assert {event["message"].partition(" since ")[0] for event in reasons} == {
        f"disruption of its group {GROUP} is held: alarm errors is in ALARM"
    }
    assert (world.ends, world.versions) == (["DisruptionDone"] * 3, ["2", "2", "2"])


@pytest.mark.parametrize(("rings", "launches"), [(DECIDED + 5, 3), (DECIDED + 45, 4)], ids=["validate", "boot"])
def test_a_run_that_an_alarm_meets_before_its_terminations_is_rolled_back(rings, launches):
    """Before the nodes are tainted nothing has happened; while the replacements boot these are ended again."""
    world = guarded(rings=rings, quiet=rings + 300).run(2)
    assert world.ends == ["DisruptionGivenUp", *["DisruptionDone"] * 3]
    assert f"disruption of its group {GROUP} is held: alarm errors is in ALARM since " in world.story
    assert (world.launches, world.versions, world.sizes()) == (launches, ["2", "2", "2"], {GROUP: (3, 3)})
    assert world.untouched()
