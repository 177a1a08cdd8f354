"""What follows from a message, reported by the world it is about."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leeward.interruption.decide import decide
from leeward.interruption.decision import NodeAction, RecordOutcome, ScarceOffering
from leeward.interruption.parse import parse
from leeward.interruption.world import MessageWorld
from leeward.model import well_known
from leeward.model.group import LAUNCHING, HookResult, LifecycleHook
from leeward.model.instance import CapacityType
from leeward.model.message import MessageKind
from leeward.model.termination import CauseKind, Reboot, RebootBy
from leeward.policy.document import InterruptionPolicy, Rebalance
from tests.events import event
from tests.fakes.builders import CLUSTER, GROUP, a_group, a_node, a_policy, an_instance, our_hook, pausing, policies

REBOOT = "AWS_EC2_SYSTEM_REBOOT_MAINTENANCE_SCHEDULED"
NOW = datetime(2026, 3, 2, 10, 0, 5, tzinfo=UTC)
AT = datetime(2026, 3, 2, 10, 0, tzinfo=UTC)
WAIT_FOR_NODE = LifecycleHook(name="wait-for-node", group=GROUP, transition=LAUNCHING)
THEIRS = LifecycleHook(name="their-backup", group=GROUP, transition="autoscaling:EC2_INSTANCE_TERMINATING")


def a_world(
    *,
    instance=True,
    node=True,
    state="running",
    written=None,
    hooks=(),
    group=None,
    ready=True,
    lifecycle=None,
    **other,
):
    known = an_instance(state=state)
    the_group = group or (a_group(GROUP, "i-0abc", lifecycle=lifecycle) if lifecycle else a_group(GROUP))
    values = {
        "clusters": (CLUSTER,),
        "policies": {CLUSTER: written or policies(a_policy(hooks=("wait-for-node",)))},
        "instances": {known.id: known} if instance else {},
        "groups": {the_group.name: the_group},
        "hooks": {GROUP: (our_hook(), WAIT_FOR_NODE, THEIRS)},
        "nodes": {"i-0abc": a_node(ready=ready)} if node else {},
        "unread": frozenset() if group or lifecycle else frozenset({GROUP}),
    }
    return MessageWorld(**{**values, **other})


def launched(minutes, **world):
    """A world in which the instance was launched so many minutes before the message."""
    sent = datetime(2026, 3, 2, 10, tzinfo=UTC)  # time of the recorded event
    young = replace(an_instance(), launched=sent - timedelta(minutes=minutes))
    return a_world(instances={young.id: young}, **world)


def decided(name, world=None, *, now=NOW, **changes):
    return decide(parse(event(name, **changes), received=NOW), world or a_world(), now=now)


DRAINING = ["spot_interruption", "capacity_reservation", "scheduled_change", "state_change", "asg_terminate"]


@pytest.mark.parametrize("name", DRAINING)
def test_an_instance_that_will_be_taken_is_drained_and_says_why(name):
    decision = decided(name)
    assert (decision.action, decision.outcome) == (NodeAction.DRAIN, RecordOutcome.DONE)
    first = decision.nodes[0]
    assert first.cluster == CLUSTER
    assert first.subject.node == "node-i-0abc"
    assert first.cause.kind is CauseKind(decision.kind.value)
    assert first.cause.reason == first.reason
    assert "i-0abc: " in decision.reason


def test_the_instance_of_a_capacity_reservation_is_taken_two_minutes_after_its_warning():
    cause = decided("capacity_reservation").nodes[0].cause
    assert (cause.kind, cause.deadline) == (CauseKind.CAPACITY_RESERVATION, AT + timedelta(minutes=2))


@pytest.mark.parametrize("state", ["stopping", "stopped", "shutting-down", "terminated"])
def test_every_leaving_state_drains(state):
    assert decided("state_change", detail__state=state).action is NodeAction.DRAIN


def test_a_cause_is_the_same_on_every_redelivery_and_different_for_every_instance():
    both = MessageWorld(
        clusters=(CLUSTER,),
        policies={CLUSTER: policies()},
        instances={name: an_instance(name) for name in ("i-0abc", "i-0def")},
        groups={GROUP: a_group()},
    )
    first, second = decided("scheduled_change", both), decided("scheduled_change", both, id="other-envelope")
    assert [node.cause.id for node in first.nodes] == [node.cause.id for node in second.nodes]
    assert len({node.cause.id for node in first.nodes}) == 2


class TestScheduledChanges:
    def test_every_instance_has_its_own_decision(self):
        world = a_world(instances={"i-0abc": an_instance(), "i-0def": an_instance("i-0def", group="batch")})
        decision = decided("scheduled_change", world)
        assert [(node.instance, node.action) for node in decision.nodes] == [
            ("i-0abc", NodeAction.DRAIN),
            ("i-0def", NodeAction.NONE),
        ]
        assert decision.action is NodeAction.DRAIN
        assert "no policy selects group batch" in decision.reason

    @pytest.mark.parametrize(
        ("hours", "deferred"), [(23, False), (24, False), (25, True), (24 * 14, True), (-3, False)]
    )
    def test_one_more_than_a_day_away_waits_for_the_budgets(self, hours, deferred):
        starts = (NOW + timedelta(hours=hours)).isoformat()
        decision = decided("scheduled_change", detail__startTime=starts)
        assert (decision.deferred, decision.action) == (deferred, NodeAction.DRAIN)

    def test_one_without_a_start_time_does_not_wait(self):
        assert not decided("scheduled_change", detail__startTime=...).deferred

    def test_the_cause_carries_the_deadline(self):
        assert decided("scheduled_change").nodes[0].cause.deadline == datetime(2026, 3, 2, 18, 0, tzinfo=UTC)

    @pytest.mark.parametrize(
        ("minutes", "action"),
        [(19, NodeAction.DRAIN), (22, NodeAction.DRAIN), (23, NodeAction.NONE), (60 * 24 * 9, NodeAction.NONE)],
    )
    def test_a_reboot_that_the_policy_waits_for_drains_shortly_before_it(self, minutes, action):
        """drain.timeout and five minutes before; the minute reconciler begins a later drain."""
        waits = replace(a_policy(), interruption=InterruptionPolicy(waits_for_reboot=True))
        changes = {"detail__startTime": (AT + timedelta(minutes=minutes)).isoformat(), "detail__eventTypeCode": REBOOT}
        decision = decided("scheduled_change", a_world(written=policies(waits)), **changes)
        first = decision.nodes[0]
        assert first.action is action
        if action is NodeAction.DRAIN:
            assert first.cause.reboot == Reboot(by=RebootBy.EC2)
        else:
            assert "the minute reconciler begins its drain at" in first.reason

    @pytest.mark.parametrize("waits", [True, False])
    def test_a_retirement_and_by_default_a_reboot_replace_the_node(self, waits):
        policy = replace(a_policy(), interruption=InterruptionPolicy(waits_for_reboot=waits))
        code = {} if waits else {"detail__eventTypeCode": REBOOT}
        decision = decided("scheduled_change", a_world(written=policies(policy)), **code)
        assert (decision.nodes[0].action, decision.nodes[0].cause.reboot) == (NodeAction.DRAIN, None)

    def test_thousands_of_instances_make_no_endless_reason(self):
        entities = [{"entityValue": f"i-{number:x}"} for number in range(5000)]
        decision = decided("scheduled_change", detail__affectedEntities=entities)
        assert len(decision.nodes) == 5000
        assert len(decision.reason) < 2000
        assert decision.reason.endswith("; and 4980 instances more")


class TestSpot:
    def test_the_offering_that_runs_out_is_named(self):
        assert decided("spot_interruption").unavailable == ScarceOffering(
            instance_type="m5.large", zone="us-east-1a", capacity_type=CapacityType.SPOT
        )

    @pytest.mark.parametrize("name", ["scheduled_change", "state_change", "capacity_reservation"])
    def test_no_other_message_says_that_capacity_runs_out(self, name):
        assert decided(name).unavailable is None

    def test_without_type_and_zone_there_is_no_offering(self):
        assert decided("spot_interruption", MessageWorld(complete=False)).unavailable is None


class TestRebalance:
    @pytest.mark.parametrize(
        ("setting", "action"),
        [
            (Rebalance.IGNORE, NodeAction.NONE),
            (Rebalance.CORDON, NodeAction.CORDON),
            (Rebalance.REPLACE, NodeAction.REPLACE),
        ],
    )
    def test_the_policy_says_what_it_does(self, setting, action):
        decision = decided("rebalance_recommendation", a_world(written=policies(a_policy(rebalance=setting))))
        assert decision.action is action
        assert (decision.nodes[0].cause is not None) == (action is NodeAction.REPLACE)

    def test_a_group_with_capacity_rebalance_launches_by_itself(self):
        world = a_world(group=a_group(GROUP, "i-0abc", capacity_rebalance=True))
        decision = decided("rebalance_recommendation", world)
        assert (decision.action, decision.nodes[0].cause) == (NodeAction.NONE, None)
        assert "CapacityRebalance" in decision.reason

    @pytest.mark.parametrize(
        ("minutes", "action"), [(4, NodeAction.NONE), (29, NodeAction.NONE), (30, NodeAction.REPLACE)], ids=str
    )
    def test_a_node_that_was_launched_within_half_an_hour_is_left_and_its_capacity_is_noted(self, minutes, action):
        """Otherwise each replacement is recommended and replaced in its turn."""
        decision = decided("rebalance_recommendation", launched(minutes))
        assert (decision.action, decision.nodes[0].cause is not None) == (action, action is NodeAction.REPLACE)
        assert (f"{minutes} min after its launch" in decision.reason) == (action is NodeAction.NONE)
        assert decision.unavailable == ScarceOffering(
            instance_type="m5.large", zone="us-east-1a", capacity_type=CapacityType.SPOT
        )

    @pytest.mark.parametrize("setting", [Rebalance.IGNORE, Rebalance.CORDON])
    def test_where_the_policy_replaces_nothing_the_age_of_a_node_changes_nothing(self, setting):
        world = launched(4, written=policies(a_policy(rebalance=setting)))
        decision = decided("rebalance_recommendation", world)
        assert "after its launch" not in decision.reason
        assert decision.unavailable is None

    def test_a_young_node_that_is_not_ours_is_no_sign_of_anything(self):
        decision = decided("rebalance_recommendation", launched(4, written=policies(a_policy("other", "batch-*"))))
        assert (decision.action, decision.unavailable) == (NodeAction.NONE, None)

    def test_a_warning_about_a_young_node_drains_it(self):
        assert decided("spot_interruption", launched(4)).action is NodeAction.DRAIN


class TestWhatIsNotOurs:
    def test_a_group_that_no_policy_selects_is_left_alone_with_its_hook(self):
        decision = decided("asg_terminate", a_world(written=policies(a_policy("other", "batch-*"))))
        assert (decision.action, decision.outcome, decision.hook) == (NodeAction.NONE, RecordOutcome.DONE, None)
        assert "no policy selects" in decision.reason

    def test_unless_its_notification_came_straight_to_our_queue(self):
        decision = decided("asg_terminate_direct", a_world(written=policies(a_policy("other", "batch-*"))))
        assert decision.action is NodeAction.NONE
        assert (decision.hook.result, decision.hook.at_once) == (HookResult.CONTINUE, True)

    def test_a_foreign_hook_of_a_selected_group_is_never_answered_though_the_node_is_drained(self):
        decision = decided("asg_terminate", detail__LifecycleHookName="their-backup", detail__NotificationMetadata="")
        assert (decision.action, decision.hook) == (NodeAction.DRAIN, None)
        assert "their-backup is another team's" in decision.reason
        cause = decision.nodes[0].cause
        assert (cause.hook, cause.hook_ours) == ("their-backup", False)

    def test_a_hook_of_our_name_that_another_team_put_there_is_theirs(self):
        taken = replace(our_hook(), metadata="theirs")
        decision = decided("asg_terminate", replace(a_world(), hooks={GROUP: (taken,)}))
        assert decision.hook is None

    def test_an_instance_of_another_cluster(self):
        world = a_world(instances={"i-0abc": an_instance(cluster="green")}, groups={GROUP: a_group(cluster="green")})
        decision = decided("spot_interruption", world)
        assert decision.action is NodeAction.NONE
        assert "none of our clusters" in decision.reason

    def test_an_instance_without_a_group(self):
        decision = decided("spot_interruption", a_world(instances={"i-0abc": an_instance(group=None)}, node=False))
        assert decision.action is NodeAction.NONE
        assert "no Auto Scaling group" in decision.reason

    def test_an_unknown_instance(self):
        decision = decided("spot_interruption", a_world(instance=False, node=False))
        assert (decision.action, decision.outcome) == (NodeAction.NONE, RecordOutcome.DONE)
        assert "EC2 does not know it" in decision.reason

    @pytest.mark.parametrize(
        "origins", [{("999900001111", "us-east-1")}, {("111122223333", "eu-west-1")}, {("", "eu-west-1")}]
    )
    def test_another_account_or_region(self, origins):
        decision = decided("asg_terminate", a_world(origins=frozenset(origins)))
        assert (decision.action, decision.hook, decision.outcome) == (NodeAction.NONE, None, RecordOutcome.DONE)
        assert "none of our clusters is there" in decision.reason

    @pytest.mark.parametrize("origins", [(), {("111122223333", "us-east-1")}, {("", "")}, {("111122223333", "")}])
    def test_our_own_account_and_region(self, origins):
        assert decided("asg_terminate", a_world(origins=frozenset(origins))).action is NodeAction.DRAIN

    def test_a_health_event_is_judged_by_the_region_it_is_about(self):
        here = frozenset({("111122223333", "us-east-1")})
        assert decided("scheduled_change", a_world(origins=here)).action is NodeAction.DRAIN


SWITCHED_OFF = [
    policies(paused="all"),
    policies(interruption=False),
    policies(a_policy(enabled=False)),
]


class TestSwitches:
    @pytest.mark.parametrize("written", SWITCHED_OFF)
    @pytest.mark.parametrize("name", [*DRAINING, "rebalance_recommendation"])
    def test_nothing_is_done_where_interruption_handling_is_off(self, name, written):
        decision = decided(name, a_world(written=written))
        assert (decision.action, decision.outcome) == (NodeAction.NONE, RecordOutcome.DONE)
        assert "off" in decision.reason or "paused" in decision.reason

    @pytest.mark.parametrize("name", DRAINING)
    def test_a_pause_of_voluntary_work_leaves_interruption_handling_on(self, name):
        assert decided(name, a_world(written=policies(paused="voluntary"))).action is NodeAction.DRAIN

    @pytest.mark.parametrize(("group", "action"), [(GROUP, NodeAction.NONE), ("web-b", NodeAction.DRAIN)])
    def test_a_pause_of_a_group_covers_that_group_alone(self, group, action):
        written = pausing(policies(), "all", group)
        assert decided("spot_interruption", a_world(written=written)).action is action

    @pytest.mark.parametrize("written", SWITCHED_OFF)
    def test_but_our_hook_is_answered_so_that_nothing_hangs(self, written):
        decision = decided("asg_terminate", a_world(written=written))
        assert (decision.hook.result, decision.hook.at_once) == (HookResult.CONTINUE, True)


class TestEndedInstances:
    @pytest.mark.parametrize("state", ["shutting-down", "terminated"])
    def test_without_a_node_nothing_is_left_to_drain(self, state):
        decision = decided("state_change", a_world(state=state, node=False), detail__state=state)
        assert decision.action is NodeAction.NONE
        assert "no Node is left" in decision.reason

    def test_with_a_node_its_object_is_still_to_be_removed(self):
        assert (
            decided("state_change", a_world(state="terminated"), detail__state="terminated").action is NodeAction.DRAIN
        )

    def test_a_cluster_that_does_not_answer_does_not_hide_a_node(self):
        world = a_world(state="terminated", node=False, unseen=frozenset({CLUSTER}))
        assert decided("state_change", world, detail__state="terminated").action is NodeAction.DRAIN

    def test_our_hook_is_answered_at_once_for_one_that_is_already_gone(self):
        """The peer's defect: the message was deleted and the hook left to time out."""
        decision = decided("asg_terminate", a_world(instance=False, node=False))
        assert (decision.action, decision.outcome) == (NodeAction.NONE, RecordOutcome.DONE)
        assert (decision.hook.result, decision.hook.at_once) == (HookResult.CONTINUE, True)

    def test_an_instance_that_stops_in_a_warm_pool_is_no_interruption(self):
        assert decided("state_change", a_world(node=False)).action is NodeAction.NONE
        assert decided("state_change", a_world(node=False, lifecycle="Warmed:Stopped")).action is NodeAction.NONE
        assert decided("state_change", a_world(node=False, lifecycle="InService")).action is NodeAction.DRAIN


class TestTerminateHooks:
    def test_ours_is_answered_when_the_node_is_drained(self):
        decision = decided("asg_terminate")
        assert (decision.hook.result, decision.hook.at_once) == (HookResult.CONTINUE, False)
        cause = decision.nodes[0].cause
        assert (cause.hook, cause.hook_ours) == ("leeward-terminate", True)

    def test_its_deadline_is_its_heartbeat_time_out(self):
        decision = decided("asg_terminate")
        assert decision.deadline == decision.nodes[0].cause.deadline == AT + timedelta(seconds=300)

    def test_an_unlisted_hook_has_no_deadline_but_its_metadata_says_that_it_is_ours(self):
        decision = decided("asg_terminate", replace(a_world(), hooks={}))
        assert (decision.deadline, decision.hook.result) == (None, HookResult.CONTINUE)

    def test_a_hook_that_the_policy_names_is_ours(self):
        world = a_world(written=policies(a_policy(hooks=("their-backup",))))
        decision = decided("asg_terminate", world, detail__LifecycleHookName="their-backup")
        assert decision.hook.result is HookResult.CONTINUE

    @pytest.mark.parametrize(
        ("name", "origin", "destination"),
        [("asg_launch", "EC2", "WarmPool"), ("asg_terminate", "WarmPool", "EC2")],
    )
    def test_an_instance_between_ec2_and_a_warm_pool_is_answered_at_once(self, name, origin, destination):
        decision = decided(name, a_world(node=False), detail__Origin=origin, detail__Destination=destination)
        assert (decision.action, decision.hook.result, decision.hook.at_once) == (
            NodeAction.NONE,
            HookResult.CONTINUE,
            True,
        )

    def test_a_node_that_returns_to_its_warm_pool_is_drained_first(self):
        world = a_world(node=True)
        decision = decided("asg_terminate", world, detail__Origin="AutoScalingGroup", detail__Destination="WarmPool")
        assert decision.action is NodeAction.DRAIN
        assert not decision.hook.at_once

    def test_an_instance_that_leaves_the_warm_pool_for_the_group_is_a_launch_like_any_other(self):
        where = {"detail__Origin": "WarmPool", "detail__Destination": "AutoScalingGroup"}
        assert decided("asg_launch", a_world(node=False), **where).keep_hook
        assert decided("asg_launch", a_world(), **where).hook.at_once


class TestLaunchHooks:
    def test_a_ready_node_continues(self):
        decision = decided("asg_launch")
        assert (decision.hook.result, decision.hook.at_once) == (HookResult.CONTINUE, True)
        assert (decision.action, decision.deadline) == (NodeAction.NONE, None)

    @pytest.mark.parametrize("world", [a_world(node=False), a_world(ready=False), MessageWorld(complete=False)])
    def test_a_node_that_is_not_ready_keeps_its_hook_for_later(self, world):
        decision = decided("asg_launch", world)
        assert (decision.hook, decision.keep_hook, decision.outcome) == (None, True, RecordOutcome.DONE)

    @pytest.mark.parametrize(
        "world", [a_world(instance=False, node=False), a_world(state="terminated"), a_world(state="shutting-down")]
    )
    def test_an_instance_that_is_gone_abandons(self, world):
        decision = decided("asg_launch", world)
        assert (decision.hook.result, decision.hook.at_once) == (HookResult.ABANDON, True)

    def test_an_instance_that_only_its_group_lists_yet_is_not_gone(self):
        decision = decided("asg_launch", a_world(instance=False, node=False, lifecycle="Pending:Wait"))
        assert decision.keep_hook

    def test_a_direct_hook_of_a_group_without_policy_does_not_wait_for_a_node(self):
        body = event("asg_terminate_direct", LifecycleTransition=LAUNCHING)
        world = a_world(node=False, written=policies(a_policy("other", "batch-*")))
        decision = decide(parse(body, received=NOW), world, now=NOW)
        assert (decision.hook.result, decision.hook.at_once) == (HookResult.CONTINUE, True)


def test_without_a_snapshot_instances_are_taken_as_ours_and_that_is_said():
    for name in DRAINING:
        decision = decided(name, MessageWorld(complete=False))
        assert decision.action is NodeAction.DRAIN
        assert "no snapshot" in decision.reason
    assert decided("rebalance_recommendation", MessageWorld(complete=False)).action is NodeAction.REPLACE


def test_offline_a_group_belongs_to_the_cluster_when_a_policy_selects_it():
    bare = a_world(instances={"i-0abc": an_instance(cluster=None)}, groups={GROUP: a_group(cluster=None)})
    assert decided("spot_interruption", bare).action is NodeAction.NONE
    assert decided("spot_interruption", replace(bare, tagged=False)).action is NodeAction.DRAIN


def test_an_ended_execution_is_a_message_of_its_own_kind():
    decision = decided("execution_aborted")
    assert (decision.kind, decision.action) == (MessageKind.EXECUTION_ENDED, NodeAction.NONE)
    assert decision.ended_execution == "i-0abc-1"
    assert "ended with ABORTED" in decision.reason


def test_a_noop_has_no_effect():
    decision = decided("execution_aborted", detail__status="SUCCEEDED")
    assert (decision.kind, decision.ended_execution) == (MessageKind.NOOP, "")


@given(
    name=st.sampled_from(["asg_terminate", "asg_launch", "asg_terminate_direct"]),
    hook=st.sampled_from(["leeward-terminate", "wait-for-node", "their-backup", "unlisted"]),
    place=st.sampled_from(["EC2", "AutoScalingGroup", "WarmPool"]),
    instance=st.booleans(),
    node=st.booleans(),
    ready=st.booleans(),
    state=st.sampled_from(["pending", "running", "stopped", "terminated"]),
    written=st.sampled_from(
        [policies(a_policy(hooks=("wait-for-node",))), policies(a_policy("b", "b-*")), *SWITCHED_OFF]
    ),
    hooks=st.sampled_from([(), (our_hook(), WAIT_FOR_NODE, THEIRS)]),
)
def test_every_hook_is_answered_kept_or_not_ours(name, hook, place, instance, node, ready, state, written, hooks):
    """Whatever the world looks like: nothing of ours is left to time out, nothing of others is touched."""
    world = a_world(instance=instance, node=node, ready=ready, state=state, written=written)
    world = replace(world, hooks={GROUP: hooks})
    prefix = "" if name.endswith("direct") else "detail__"
    decision = decided(name, world, **{f"{prefix}LifecycleHookName": hook, f"{prefix}Destination": place})
    policy = world.locate("i-0abc", GROUP).policy
    marked = prefix and name == "asg_terminate" and hook == well_known.TERMINATE_HOOK
    ours = not prefix or (
        policy is not None
        and (hook in policy.interruption.hooks or (hook == well_known.TERMINATE_HOOK and bool(hooks or marked)))
    )
    assert decision.outcome is RecordOutcome.DONE
    assert (decision.hook is not None or decision.keep_hook) == ours
    if decision.hook is not None and not decision.hook.at_once:
        cause = decision.nodes[0].cause
        assert (cause.hook, cause.hook_ours) == (hook, True)
