"""Messages that EC2 and Auto Scaling contradict: late ones, and those that AWS cannot have written."""

from dataclasses import replace
from datetime import timedelta

import pytest

from leeward.errors import AccessDeniedError, AwsUnavailableError
from leeward.interruption.cross_check import AGREES_WITHIN
from leeward.model.instance import CapacityType
from leeward.model.lifecycle import known_states
from leeward.model.termination import Cause, CauseKind, DrainOptions
from leeward.termination.situation import survey
from tests.events import event
from tests.fakes.builders import GROUP, a_group, a_node, a_policy, a_subject, an_instance, our_hook, policies
from tests.fakes.clock import START

I = "i-0abc"  # noqa: E741
LATER = int(AGREES_WITHIN / timedelta(seconds=1)) + 1


def untouched(queue):
    """Nothing was claimed, tainted, started or answered."""
    system = queue.system
    return not (system.claims.records or system.executions.open or system.groups.answered) and not any(
        node.tainted for node in system.kubernetes.by_name.values()
    )


def outcomes(queue, body):
    """What becomes of it at its first delivery, and when AWS's answers have had time to follow."""
    queue.deliver(body)
    queue.system.clock.advance(seconds=LATER)
    queue.deliver(body)
    return [line["outcome"] for line in queue.log]


@pytest.mark.parametrize("state", ["stopping", "stopped"])
def test_a_stop_of_an_instance_that_runs_again_is_late_and_drains_nothing(connect, state):
    queue = connect()
    assert outcomes(queue, event("state_change", detail__state=state)) == ["retry", "done"]
    assert untouched(queue)
    assert f"the message says {state}, EC2 says running" in queue.log[-1]["message"]


@pytest.mark.parametrize("state", ["Terminating:Wait", "ReplacingRootVolume:Wait"])
def test_a_launch_action_does_not_answer_the_hook_that_holds_a_drain(connect, state):
    queue = connect()
    queue.system.groups.set_lifecycle(GROUP, I, state)
    assert outcomes(queue, event("asg_launch", detail__LifecycleHookName=our_hook().name)) == ["done", "done"]
    assert queue.system.groups.answered == []
    assert "holds no launch" in queue.log[-1]["message"]


@pytest.mark.parametrize("state", ["ReplacingRootVolume:Proceed", "RootVolumeReplaced"])
def test_a_root_volume_that_was_replaced_already_drains_nothing(connect, state):
    queue = connect()
    queue.system.groups.set_lifecycle(GROUP, I, state)
    assert outcomes(queue, event("replace_root_volume")) == ["retry", "done"]
    assert untouched(queue)


@pytest.mark.parametrize("state", ["shutting-down", "terminated"])
def test_an_end_that_ec2_does_not_know_of_is_malformed(connect, state):
    """Nothing brings an instance back from there: AWS has not written it."""
    queue = connect()
    assert outcomes(queue, event("state_change", detail__state=state)) == ["retry", "malformed"]
    assert untouched(queue)
    assert len(queue.system.dead_letters.sent) == 1


def test_a_state_change_of_which_ec2_learns_a_moment_later_is_acted_on(connect):
    queue = connect()
    assert queue.deliver(event("state_change")) == ["m0"]
    queue.happens("state_change")
    assert queue.deliver(event("state_change")) == []
    assert queue.system.executions.open == {"i-0abc-1"}


@pytest.mark.parametrize("kind", ["spot_interruption", "rebalance_recommendation"])
def test_a_spot_message_about_an_on_demand_instance_is_malformed_at_once(connect, kind):
    queue = connect(instances=[replace(an_instance(I), capacity_type=CapacityType.ON_DEMAND)])
    assert queue.deliver(event(kind)) == []
    assert [line["outcome"] for line in queue.log] == ["malformed"]
    assert untouched(queue)


@pytest.mark.parametrize("name", ["asg_terminate", "asg_terminate_direct", "asg_terminate_sns"])
def test_a_hook_that_no_longer_waits_is_not_acted_on(connect, name):
    """The instance has been through its warm pool and serves again."""
    queue = connect()
    assert outcomes(queue, event(name)) == ["retry", "done"]
    assert untouched(queue)
    assert "no longer waits" in queue.log[-1]["message"]


def test_a_hook_whose_instance_is_on_its_way_is_still_acted_on(connect):
    queue = connect()
    queue.system.groups.set_lifecycle(GROUP, I, "Terminating:Proceed")
    assert queue.deliver(event("asg_terminate")) == []
    assert queue.system.executions.open == {"i-0abc-1"}


class TestForgedHooks:
    """A publisher of a named topic writes any body: the group's own list alone starts a drain."""

    @pytest.mark.parametrize("name", ["asg_terminate_direct", "asg_terminate_sns", "replace_root_volume"])
    @pytest.mark.parametrize("group", ["web-nope", "web-b"])
    def test_a_hook_of_a_group_that_does_not_list_the_instance_drains_nothing(self, connect, name, group):
        queue = connect(groups=[a_group(GROUP, "i-0abc"), a_group("web-b", "i-0other")])
        body = event(name).replace(GROUP, group)
        assert outcomes(queue, body) == ["retry", "done"]
        assert untouched(queue)
        assert f"i-0abc: {group} does not list the instance" in queue.log[-1]["message"]

    def test_it_is_answered_all_the_same_and_nothing_waits(self, connect):
        queue = connect(groups=[a_group(GROUP, "i-0abc"), a_group("web-b")])
        outcomes(queue, event("asg_terminate_direct").replace(GROUP, "web-b"))
        assert queue.system.groups.asked["complete"] == 1
        assert "hook leeward-terminate is answered CONTINUE at once: nothing is drained" in queue.log[-1]["message"]

    def test_a_group_that_lists_the_instance_a_moment_later_is_believed(self, connect):
        queue = connect(groups=[a_group(GROUP)])
        assert queue.deliver(event("asg_terminate")) == ["m0"]
        queue.system.groups.set_lifecycle(GROUP, I, "Terminating:Wait")
        assert queue.deliver(event("asg_terminate")) == []
        assert queue.system.executions.open == {"i-0abc-1"}

    def test_a_drained_node_that_is_kept_is_not_ended_by_a_hook_that_nothing_waits_in(self, connect):
        """The record of an operator's drain knows the group; the group is read all the same."""
        queue = connect()
        ports = queue.system.ports
        options = DrainOptions(keep=True)
        cause = Cause(id="manual#1", kind=CauseKind.MANUAL, at=queue.system.clock.now(), options=options)
        survey(ports.claims.claim(a_subject(), cause, cause.at), ports)
        assert outcomes(queue, event("asg_terminate_direct")) == ["retry", "done"]
        assert queue.system.claims.records[I].keeps

    def test_a_drain_of_an_instance_in_service_is_joined_by_no_hook_that_nothing_waits_in(self, connect):
        queue = connect()
        ports = queue.system.ports
        cause = Cause(id="r#1", kind=CauseKind.REBALANCE_RECOMMENDATION, at=queue.system.clock.now())
        survey(ports.claims.claim(a_subject(), cause, cause.at), ports)
        assert outcomes(queue, event("asg_terminate_direct")) == ["retry", "done"]
        assert queue.system.claims.records[I].causes == (cause,)

    @pytest.mark.parametrize("state", sorted(known_states() | {"Rebooting:Wait"}))
    def test_every_lifecycle_state_has_an_outcome(self, connect, state):
        queue = connect()
        queue.system.groups.set_lifecycle(GROUP, I, state)
        outcomes(queue, event("asg_terminate"))
        acted = state.startswith(("Terminating", "Replacing", "Warmed", "Rebooting")) and "Volume:P" not in state
        assert [line["action"] for line in queue.log] == (["drain", "drain"] if acted else ["none", "none"])

    @pytest.mark.parametrize("state", ["ReplacingRootVolume:Wait", "Rebooting:Wait"])
    def test_an_instance_that_its_group_keeps_is_drained_and_kept(self, connect, state):
        """A state that this version does not know is treated so: nothing shows that the instance ends."""
        queue = connect()
        queue.system.groups.set_lifecycle(GROUP, I, state)
        assert queue.deliver(event("asg_terminate")) == []
        (cause,) = queue.system.claims.records[I].causes
        assert (cause.kind, cause.reboot.by) == (CauseKind.REPLACE_ROOT_VOLUME, "group")


class TestReservedCapacity:
    def test_a_warning_about_an_instance_in_no_reservation_is_malformed(self, connect):
        queue = connect()
        assert outcomes(queue, event("capacity_reservation")) == ["retry", "malformed"]
        assert untouched(queue)

    def test_the_warning_about_a_reserved_instance_is_acted_on_at_once(self, connect):
        queue = connect()
        queue.happens("capacity_reservation")
        assert queue.deliver(event("capacity_reservation")) == []
        assert queue.system.executions.open == {"i-0abc-1"}

    def test_a_block_that_ec2_does_not_list_is_looked_for_again_then_refused(self, connect):
        queue = connect()
        assert outcomes(queue, event("capacity_block")) == ["retry", "done"]
        assert untouched(queue)
        assert "EC2 lists no active Capacity Block cr-0abc" in queue.log[-1]["message"]

    @pytest.mark.parametrize("end", [..., "2026-03-02", "soon"])
    def test_a_warning_without_a_known_end_is_handled_with_ec2s_own(self, connect, end):
        queue = connect()
        ends = START + timedelta(minutes=45)
        queue.system.instances.blocks, queue.system.instances.reserved = {"cr-0abc": ends}, {I: "cr-0abc"}
        queue.deliver(event("capacity_block", detail__end_x_date=end))
        assert queue.system.dead_letters.sent == []
        assert queue.log[-1]["outcome"] == "done"
        assert queue.log[-1]["instances"] == [I]


class TestHealthEvents:
    def two(self, connect):
        return connect(instances=[an_instance(), an_instance("i-0def")], nodes=[a_node(), a_node("i-0def")])

    def test_an_event_that_ec2_does_not_list_drains_nothing(self, connect):
        queue = self.two(connect)
        assert outcomes(queue, event("scheduled_change")) == ["retry", "done"]
        assert untouched(queue)

    def test_an_event_that_is_over_drains_nothing(self, connect):
        queue = self.two(connect)
        queue.system.instances.schedule(I, "i-0def", over=True)
        assert outcomes(queue, event("scheduled_change")) == ["retry", "done"]
        assert untouched(queue)

    def test_of_several_instances_each_is_checked(self, connect):
        queue = self.two(connect)
        queue.happens("scheduled_change", I)
        assert outcomes(queue, event("scheduled_change")) == ["retry", "done"]
        assert queue.system.claims.records.keys() == {I}
        assert "i-0def: EC2 lists no scheduled event" in queue.log[-1]["message"]

    def test_one_call_serves_all_events_of_a_batch(self, connect):
        queue = self.two(connect)
        queue.happens("scheduled_change", I, "i-0def")
        queue.deliver(event("scheduled_change"), event("scheduled_change", detail__page="2"))
        assert queue.system.instances.asked["scheduled_events"] == 1

    @pytest.mark.parametrize("error", [AccessDeniedError("denied"), AwsUnavailableError("away")])
    def test_without_an_answer_it_is_acted_on_after_some_tries_and_says_so(self, connect, error):
        queue = self.two(connect)
        queue.system.instances.fail("scheduled_events", error)
        assert queue.deliver(event("scheduled_change")) == ["m0"]
        assert untouched(queue)
        queue.system.clock.advance(seconds=LATER)
        queue.deliver(event("scheduled_change"))
        assert queue.system.claims.records.keys() == {I, "i-0def"}
        assert "EC2 could not be asked whether it lists the event" in queue.log[-1]["message"]

    @pytest.mark.parametrize("name", ["spot_interruption", "rebalance_recommendation", "asg_terminate"])
    def test_no_other_message_costs_the_call(self, connect, name):
        queue = connect()
        queue.happens(name)
        queue.deliver(event(name))
        assert queue.system.instances.asked["scheduled_events"] == 0


class TestWhoseGroup:
    @pytest.mark.parametrize("name", ["state_change", "scheduled_change"])
    def test_an_instances_own_tag_does_not_make_the_group_of_others_ours(self, connect, name):
        others = a_group("web-other", I, cluster=None)
        queue = connect(instances=[an_instance(group="web-other")], groups=[others], written=policies(a_policy()))
        queue.happens(name)
        queue.deliver(event(name))
        assert untouched(queue)
        assert "group web-other belongs to none of our clusters" in queue.log[-1]["message"]
