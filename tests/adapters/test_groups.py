"""Auto Scaling and EC2: batches, pages, and which refusals are ordinary answers."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from leeward.adapters.aws.groups import AutoScalingGroups
from leeward.adapters.aws.instances import CHECKS, Ec2Instances
from leeward.errors import AccessDeniedError, TerminalError, ThrottledError
from leeward.model.group import TERMINATING, Group, HookResult, LifecycleHook
from leeward.model.instance_status import Impairment
from leeward.model.launch_refusal import RefusalCause, cause_in
from leeward.model.termination import Replacement
from tests.fakes.clock import FakeClock

ACTION = {"group": "web-a", "hook": "leeward-terminate", "instance": "i-0abc"}
NAMED = {"AutoScalingGroupName": "web-a", "LifecycleHookName": "leeward-terminate", "InstanceId": "i-0abc"}
NO_ACTION = "No active Lifecycle Action found with instance ID i-0abc"
LAUNCH = {
    "AutoScalingGroupName": "web-a",
    "RequestedCapacity": 1,
    "ClientToken": "leeward-i-0abc-1",
    "SubnetIds": ["subnet-a"],
    "RetryStrategy": "none",
}


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def groups(aws, clock):
    return AutoScalingGroups(aws.clients, clock)


def raw_group(name, **tags):
    return {
        "AutoScalingGroupName": name,
        "MinSize": 0,
        "MaxSize": 3,
        "DesiredCapacity": 1,
        "DefaultCooldown": 300,
        "AvailabilityZones": ["us-east-1a"],
        "HealthCheckType": "EC2",
        "CreatedTime": "2026-03-01T00:00:00Z",
        "Tags": [{"Key": key, "Value": value} for key, value in tags.items()],
    }


@pytest.mark.parametrize(("trigger", "retains"), [("retain", True), ("terminate", False), (None, False)])
def test_a_group_shows_whether_it_retains_what_a_hook_was_abandoned_for(trigger, retains):
    triggers = {"TerminateHookAbandon": trigger} if trigger else {}
    raw = raw_group("web-a") | {"InstanceLifecyclePolicy": {"RetentionTriggers": triggers}}
    assert Group.from_json(raw).retains is retains
    assert not Group.from_json(raw_group("web-a")).retains


def test_a_hook_shows_its_default_answer_which_is_abandon_at_auto_scaling():
    raw = {"LifecycleHookName": "h", "AutoScalingGroupName": "web-a"}
    assert LifecycleHook.from_json(raw).default is HookResult.ABANDON
    assert LifecycleHook.from_json(raw | {"DefaultResult": "CONTINUE"}).default is HookResult.CONTINUE


class TestImpairedInstances:
    def test_each_kind_of_check_is_asked_for_those_that_fail_it(self, aws):
        for check in ("system-status.status", "instance-status.status", "attached-ebs-status.status"):
            status = {"Status": "impaired", "Details": []}
            found = [{"InstanceId": "i-0abc", "SystemStatus": status}] if check.startswith("system") else []
            asked = {"Filters": [{"Name": check, "Values": ["impaired"]}]}
            aws.expect("ec2", "describe_instance_status", asked, {"InstanceStatuses": found})
        assert Ec2Instances(aws.clients).impaired() == {"i-0abc": Impairment(instance="i-0abc", checks=("system",))}

    def test_while_none_fails_ec2_is_asked_in_each_third_minute_where_a_recent_answer_is_enough(self, aws, clock):
        instances, asked = Ec2Instances(aws.clients, clock), []
        for minute in range(7):
            if minute % 3 == 0:
                _expect_checks(aws)
            asked.append(instances.impaired(recent=True))
            clock.advance(minutes=1)
        assert asked == [{}] * 7
        _expect_checks(aws)
        assert instances.impaired() == {}

    def test_one_that_fails_is_asked_for_each_minute(self, aws, clock):
        instances = Ec2Instances(aws.clients, clock)
        for _ in range(3):
            _expect_checks(aws, {"InstanceId": "i-0abc", "SystemStatus": {"Status": "impaired", "Details": []}})
            assert set(instances.impaired(recent=True)) == {"i-0abc"}
            clock.advance(minutes=1)

    def test_a_refused_look_is_no_empty_answer(self, aws, clock):
        instances = Ec2Instances(aws.clients, clock)
        _expect_checks(aws)
        instances.impaired()
        clock.advance(minutes=3)
        aws.refuse("ec2", "describe_instance_status", "UnauthorizedOperation")
        with pytest.raises(AccessDeniedError):
            instances.impaired(recent=True)
        _expect_checks(aws)
        assert instances.impaired(recent=True) == {}


def _expect_checks(aws, *failing):
    """Expect one look at each kind of check; the first returns the instances that fail it."""
    for place, check in enumerate(CHECKS):
        asked = {"Filters": [{"Name": check, "Values": ["impaired"]}]}
        aws.expect("ec2", "describe_instance_status", asked, {"InstanceStatuses": [] if place else list(failing)})


def test_a_reboot_is_requested_of_the_one_instance(aws):
    aws.expect("ec2", "reboot_instances", {"InstanceIds": ["i-0abc"]}, {}, retries=False)
    Ec2Instances(aws.clients).reboot("i-0abc")


def test_scheduled_events_are_asked_for_with_one_call(aws):
    codes = ["instance-reboot", "system-reboot", "system-maintenance", "instance-retirement", "instance-stop"]
    date = datetime(2026, 3, 2, 11, 30, tzinfo=UTC)
    listed = {
        "Code": "system-reboot",
        "Description": "[Canceled] Your instance is rebooted",
        "InstanceEventId": "instance-event-0d59937288b749b32",
        "NotBefore": date,
    }
    asked = {"Filters": [{"Name": "event.code", "Values": codes}]}
    found = {"InstanceStatuses": [{"InstanceId": "i-0abc", "Events": [listed]}]}
    aws.expect("ec2", "describe_instance_status", asked, found)
    ((event,),) = Ec2Instances(aws.clients).scheduled_events().values()
    assert (event.id, event.instance, event.starts) == ("instance-event-0d59937288b749b32", "i-0abc", date)
    assert (event.reboots, event.canceled, event.over) == (True, True, True)
    assert not replace(event, description="Your instance is rebooted").over


class TestCapacityBlocks:
    def test_active_blocks_are_told_apart_from_other_reservations_with_an_end(self, aws):
        ends = datetime(2026, 3, 2, 11, 30, tzinfo=UTC)
        filters = [{"Name": "state", "Values": ["active"]}, {"Name": "end-date-type", "Values": ["limited"]}]
        found = [
            {"CapacityReservationId": "cr-1", "ReservationType": "capacity-block", "EndDate": ends},
            {"CapacityReservationId": "cr-2", "ReservationType": "default", "EndDate": ends},
        ]
        aws.expect("ec2", "describe_capacity_reservations", {"Filters": filters}, {"CapacityReservations": found})
        assert Ec2Instances(aws.clients).block_ends() == {"cr-1": ends}

    def test_instances_are_found_by_their_reservations_and_none_is_asked_for_without_any(self, aws):
        instances = [{"InstanceId": "i-0abc", "CapacityReservationId": "cr-1"}]
        asked = {"Filters": [{"Name": "capacity-reservation-id", "Values": ["cr-1"]}]}
        aws.expect("ec2", "describe_instances", asked, {"Reservations": [{"Instances": instances}]})
        assert Ec2Instances(aws.clients).in_reservations(["cr-1"]) == {"i-0abc": "cr-1"}
        assert Ec2Instances(aws.clients).in_reservations([]) == {}


class TestInstances:
    def test_no_ids_ask_nothing(self, aws):
        assert Ec2Instances(aws.clients).describe([]) == {}

    def test_ids_are_looked_up_in_batches_of_200_page_by_page(self, aws):
        ids = [f"i-{number:04}" for number in range(201)]
        first = {"Filters": [{"Name": "instance-id", "Values": ids[:200]}]}
        found = lambda *names: {"Reservations": [{"Instances": [{"InstanceId": name} for name in names]}]}  # noqa: E731
        aws.expect("ec2", "describe_instances", first, {**found("i-0000", "i-0001"), "NextToken": "t"})
        aws.expect("ec2", "describe_instances", {**first, "NextToken": "t"}, found("i-0002"))
        aws.expect("ec2", "describe_instances", {"Filters": [{"Name": "instance-id", "Values": ids[200:]}]}, found())
        assert list(Ec2Instances(aws.clients).describe([*ids, ids[0]])) == ["i-0000", "i-0001", "i-0002"]


class TestReadingGroups:
    def test_no_names_ask_nothing_because_that_would_mean_all_groups(self, groups):
        assert groups.describe([]) == {}
        assert groups.of_clusters([]) == ()

    def test_names_go_in_batches_of_100(self, aws, groups):
        names = [f"g-{number:03}" for number in range(101)]
        for chunk in (names[:100], names[100:]):
            answer = {"AutoScalingGroups": [raw_group(chunk[0])]}
            parameters = {"AutoScalingGroupNames": chunk, "MaxRecords": 100}
            aws.expect("autoscaling", "describe_auto_scaling_groups", parameters, answer)
        assert list(groups.describe(names)) == ["g-000", "g-100"]

    def test_groups_of_a_cluster_are_narrowed_by_tag_key_and_checked_by_value(self, aws, groups):
        tag_keys = ["kubernetes.io/cluster/blue", "eks:cluster-name", "aws:eks:cluster-name"]
        answer = [
            raw_group("self-managed", **{"kubernetes.io/cluster/blue": "owned"}),
            raw_group("managed", **{"eks:cluster-name": "blue"}),
            raw_group("of-another", **{"eks:cluster-name": "green"}),
        ]
        aws.expect(
            "autoscaling",
            "describe_auto_scaling_groups",
            {"Filters": [{"Name": "tag-key", "Values": tag_keys}], "MaxRecords": 100},
            {"AutoScalingGroups": answer},
        )
        assert [group.name for group in groups.of_clusters(["blue"])] == ["self-managed", "managed"]

    def test_the_lifecycle_of_an_instance_and_of_a_stranger(self, aws, groups):
        member = {
            "InstanceId": "i-0abc",
            "AutoScalingGroupName": "web-a",
            "LifecycleState": "Terminating:Wait",
            "AvailabilityZone": "us-east-1a",
            "HealthStatus": "HEALTHY",
            "ProtectedFromScaleIn": False,
        }
        call = "describe_auto_scaling_instances"
        aws.expect("autoscaling", call, {"InstanceIds": ["i-0abc"]}, {"AutoScalingInstances": [member]})
        aws.expect("autoscaling", call, {"InstanceIds": ["i-0else"]}, {"AutoScalingInstances": []})
        assert groups.lifecycle_of("i-0abc") == ("web-a", "Terminating:Wait")
        assert groups.lifecycle_of("i-0else") is None


class TestHooks:
    def _expect_hooks(self, aws, *names):
        raw = [{"LifecycleHookName": name, "AutoScalingGroupName": "web-a"} for name in names]
        parameters = {"AutoScalingGroupName": "web-a"}
        aws.expect("autoscaling", "describe_lifecycle_hooks", parameters, {"LifecycleHooks": raw})

    def test_hooks_are_read_again_after_a_minute(self, aws, groups, clock):
        self._expect_hooks(aws, "a")
        assert [hook.name for hook in groups.hooks("web-a")] == ["a"]
        clock.advance(seconds=59)
        assert len(groups.hooks("web-a")) == 1
        clock.advance(seconds=1)
        self._expect_hooks(aws, "a", "b")
        assert len(groups.hooks("web-a")) == 2

    def test_a_hook_that_was_just_put_is_seen_at_once(self, aws, groups):
        self._expect_hooks(aws)
        assert groups.hooks("web-a") == ()
        hook = LifecycleHook(name="h", group="web-a", transition=TERMINATING, heartbeat_timeout=600, metadata="mark")
        parameters = {
            "LifecycleHookName": "h",
            "AutoScalingGroupName": "web-a",
            "LifecycleTransition": TERMINATING,
            "HeartbeatTimeout": 600,
            "DefaultResult": "CONTINUE",
            "NotificationMetadata": "mark",
        }
        aws.expect("autoscaling", "put_lifecycle_hook", parameters)
        groups.put_hook(hook, default_result=HookResult.CONTINUE)
        self._expect_hooks(aws, "h")
        assert [hook.name for hook in groups.hooks("web-a")] == ["h"]

    def test_a_group_that_is_gone_has_no_hooks(self, aws, groups):
        aws.refuse("autoscaling", "describe_lifecycle_hooks", "ValidationError", "AutoScalingGroup name not found")
        assert groups.hooks("web-a") == ()

    def test_an_action_is_answered_by_instance_id(self, aws, groups):
        aws.expect("autoscaling", "complete_lifecycle_action", {**NAMED, "LifecycleActionResult": "ABANDON"})
        assert groups.complete(**ACTION, result=HookResult.ABANDON)

    def test_an_action_that_no_longer_waits_is_an_ordinary_answer(self, aws, groups):
        aws.refuse("autoscaling", "complete_lifecycle_action", "ValidationError", NO_ACTION)
        aws.refuse("autoscaling", "record_lifecycle_action_heartbeat", "ValidationError", NO_ACTION)
        assert not groups.complete(**ACTION, result=HookResult.CONTINUE)
        assert not groups.heartbeat(**ACTION)

    def test_a_heartbeat_extends_a_waiting_action(self, aws, groups):
        aws.expect("autoscaling", "record_lifecycle_action_heartbeat", NAMED)
        assert groups.heartbeat(**ACTION)

    @pytest.mark.parametrize(
        ("code", "message", "error"),
        [
            ("ValidationError", "1 validation error detected", TerminalError),
            ("Throttling", "Rate exceeded", ThrottledError),
            ("AccessDenied", "not authorized", AccessDeniedError),
        ],
    )
    def test_any_other_refusal_is_an_error_that_names_the_action(self, aws, groups, code, message, error):
        aws.refuse("autoscaling", "complete_lifecycle_action", code, message)
        with pytest.raises(error, match="CompleteLifecycleAction on web-a/leeward-terminate/i-0abc"):
            groups.complete(**ACTION, result=HookResult.CONTINUE)


class TestLaunching:
    def launch(self, groups):
        return groups.launch(group="web-a", subnet="subnet-a", token="leeward-i-0abc-1")

    def test_one_instance_in_the_subnet_without_the_groups_own_retries(self, aws, groups):
        answer = {"Instances": [{"SubnetId": "subnet-a", "InstanceIds": ["i-0new"]}]}
        aws.expect("autoscaling", "launch_instances", LAUNCH, answer)
        assert self.launch(groups) == Replacement(launched=("i-0new",))

    def test_fewer_than_were_asked_for_are_a_replacement_and_the_place_lacks_capacity(self, aws, groups):
        error = {"ErrorCode": "InsufficientInstanceCapacity", "ErrorMessage": "no more"}
        answer = {"Instances": [{"SubnetId": "subnet-a", "InstanceIds": ["i-1", "i-2"]}], "Errors": [error]}
        aws.expect("autoscaling", "launch_instances", {**LAUNCH, "RequestedCapacity": 3}, answer)
        found = groups.launch(group="web-a", subnet="subnet-a", token="leeward-i-0abc-1", count=3)
        assert found.launched == ("i-1", "i-2")
        assert (found.no_capacity, found.reason) == (True, "InsufficientInstanceCapacity: no more")

    def test_an_instance_type_that_failed_before_another_came_is_no_lack_of_capacity(self, aws, groups):
        error = {"ErrorCode": "InsufficientInstanceCapacity", "ErrorMessage": "no m5.large"}
        answer = {"Instances": [{"SubnetId": "subnet-a", "InstanceIds": ["i-1"]}], "Errors": [error]}
        aws.expect("autoscaling", "launch_instances", LAUNCH, answer)
        assert self.launch(groups) == Replacement(launched=("i-1",))

    @pytest.mark.parametrize(
        ("code", "status"),
        [
            ("ValidationError", 400),
            ("ResourceContention", 500),
            ("IdempotentParameterMismatch", 400),
            ("AccessDenied", 403),
            ("UnauthorizedOperation", 403),
            ("InvalidAction", 400),
        ],
    )
    def test_a_refusal_is_no_replacement_with_its_reason(self, aws, groups, code, status):
        aws.refuse("autoscaling", "launch_instances", code, "because", status=status)
        assert self.launch(groups) == Replacement(reason=f"{code}: because", refused=True)

    def test_a_refusal_inside_a_successful_answer_is_one_too(self, aws, groups):
        error = {"ErrorCode": "UnauthorizedOperation", "ErrorMessage": "not authorized to perform ec2:CreateFleet"}
        aws.expect("autoscaling", "launch_instances", LAUNCH, {"Instances": [], "Errors": [error]})
        reason = "UnauthorizedOperation: not authorized to perform ec2:CreateFleet"
        assert self.launch(groups) == Replacement(reason=reason, refused=True)

    def test_no_capacity_is_no_replacement_with_its_reason(self, aws, groups):
        error = {"ErrorCode": "InsufficientInstanceCapacity", "ErrorMessage": "no m5.large in us-east-1a"}
        aws.expect("autoscaling", "launch_instances", LAUNCH, {"Instances": [], "Errors": [error, error]})
        found = self.launch(groups)
        assert found.reason == "InsufficientInstanceCapacity: no m5.large in us-east-1a"
        assert found.no_capacity, "another zone may have it"

    def test_an_answer_without_anything_still_has_a_reason(self, aws, groups):
        aws.expect("autoscaling", "launch_instances", LAUNCH, {})
        assert self.launch(groups).reason

    def test_a_client_too_old_for_the_call_is_no_replacement(self, clock):
        class Old:
            def get(self, service, **_):
                return object()

        found = self.launch(AutoScalingGroups(Old(), clock))
        assert (found.refused, cause_in(found.reason)) == (True, RefusalCause.UNKNOWN)

    @pytest.mark.parametrize(
        ("code", "error"), [("IdempotentCallInProgress", ThrottledError), ("ExpiredToken", AccessDeniedError)]
    )
    def test_what_says_nothing_about_the_group_is_an_error(self, aws, groups, code, error):
        aws.refuse("autoscaling", "launch_instances", code, "x")
        with pytest.raises(error):
            self.launch(groups)


class TestTerminating:
    def _expect_state(self, aws, state):
        member = {
            "InstanceId": "i-0abc",
            "AutoScalingGroupName": "web-a",
            "LifecycleState": state,
            "AvailabilityZone": "us-east-1a",
            "HealthStatus": "HEALTHY",
            "ProtectedFromScaleIn": False,
        }
        answer = {"AutoScalingInstances": [member] if state else []}
        aws.expect("autoscaling", "describe_auto_scaling_instances", {"InstanceIds": ["i-0abc"]}, answer)

    def test_the_group_is_asked_once_and_without_blind_repeats(self, aws, groups):
        self._expect_state(aws, "InService")
        parameters = {"InstanceId": "i-0abc", "ShouldDecrementDesiredCapacity": True}
        aws.expect("autoscaling", "terminate_instance_in_auto_scaling_group", parameters, retries=False)
        assert groups.terminate(instance="i-0abc", decrement=True)
        client = aws.clients.get("autoscaling", retries=False)
        assert client.meta.config.retries["total_max_attempts"] == 1

    @pytest.mark.parametrize("state", [None, "Terminating:Wait", "Terminating:Proceed", "Terminated"])
    def test_an_instance_on_its_way_out_is_never_decremented_again(self, aws, groups, state):
        self._expect_state(aws, state)
        assert not groups.terminate(instance="i-0abc", decrement=True)

    def test_one_that_its_group_retains_is_asked_to_end(self, aws, groups):
        self._expect_state(aws, "Terminating:Retained")
        parameters = {"InstanceId": "i-0abc", "ShouldDecrementDesiredCapacity": False}
        aws.expect("autoscaling", "terminate_instance_in_auto_scaling_group", parameters, retries=False)
        assert groups.terminate(instance="i-0abc", decrement=False, anyway=True)

    @pytest.mark.parametrize("state", ["Terminating:Retained", "Warmed:Stopped", "Warmed:Running", "Detaching"])
    def test_one_that_stays_by_the_groups_will_is_not_ended_by_the_way(self, aws, groups, state):
        self._expect_state(aws, state)
        assert not groups.terminate(instance="i-0abc", decrement=True)

    def test_an_instance_that_left_in_between_is_no_error(self, aws, groups):
        self._expect_state(aws, "InService")
        aws.refuse(
            "autoscaling",
            "terminate_instance_in_auto_scaling_group",
            "ValidationError",
            "Instance Id not found - No managed instance found for instance ID: i-0abc",
            retries=False,
        )
        assert not groups.terminate(instance="i-0abc", decrement=False)

    @pytest.mark.parametrize(
        ("code", "message", "error"),
        [
            ("ValidationError", "Currently, desiredSize equals minSize (1).", TerminalError),
            ("ScalingActivityInProgress", "later", ThrottledError),
        ],
    )
    def test_a_group_that_cannot_is_an_error(self, aws, groups, code, message, error):
        self._expect_state(aws, "InService")
        aws.refuse("autoscaling", "terminate_instance_in_auto_scaling_group", code, message, retries=False)
        with pytest.raises(error, match="web-a/i-0abc"):
            groups.terminate(instance="i-0abc", decrement=True)


class TestActivities:
    SINCE = datetime(2026, 3, 2, 10, tzinfo=UTC)

    def activity(self, minutes, description="Terminating EC2 instance: i-0abc", cause="because"):
        at = self.SINCE + timedelta(minutes=minutes)
        return {
            "ActivityId": f"a-{minutes}",
            "AutoScalingGroupName": "web-a",
            "Cause": cause,
            "Description": description,
            "StartTime": at,
            "StatusCode": "Successful",
        }

    def test_the_history_is_read_newest_first_and_no_further_than_asked_for(self, aws, groups):
        named = {"AutoScalingGroupName": "web-a"}
        first = {"Activities": [self.activity(5), self.activity(2)], "NextToken": "more"}
        second = {"Activities": [self.activity(1), self.activity(-1)], "NextToken": "never asked for"}
        aws.expect("autoscaling", "describe_scaling_activities", named, first)
        aws.expect("autoscaling", "describe_scaling_activities", {**named, "NextToken": "more"}, second)
        found = groups.activities("web-a", self.SINCE)
        assert [activity.at.minute for activity in found] == [5, 2, 1]

    def test_an_activity_names_the_instance_that_leaves_and_the_reason(self, aws, groups):
        launched = self.activity(1, "Launching a new EC2 instance: i-0new")
        detached = self.activity(2, "Detaching EC2 instance: i-0def", "a user request")
        aws.expect(
            "autoscaling",
            "describe_scaling_activities",
            {"AutoScalingGroupName": "web-a"},
            {"Activities": [detached, launched]},
        )
        found = groups.activities("web-a", self.SINCE)
        assert [(activity.leaves, activity.cause) for activity in found] == [
            ("i-0def", "a user request"),
            (None, "because"),
        ]

    def test_an_activity_names_the_instance_that_comes_and_when_that_was_over(self, aws, groups):
        over = self.SINCE + timedelta(minutes=3)
        came = {**self.activity(1, "Launching a new EC2 instance: i-0feed"), "EndTime": over, "Progress": 100}
        comes = {**came, "StatusCode": "InProgress", "Progress": 40}
        refused = self.activity(2, "Launching a new EC2 instance.  Status Reason: no capacity")
        refused |= {"StatusCode": "Failed", "StatusMessage": "no capacity. Launching failed."}
        aws.expect(
            "autoscaling",
            "describe_scaling_activities",
            {"AutoScalingGroupName": "web-a"},
            {"Activities": [came, comes, refused]},
        )
        found = groups.activities("web-a", self.SINCE)
        assert [(one.enters, one.ended, one.failed) for one in found] == [
            ("i-0feed", over, ""),
            ("i-0feed", None, ""),
            (None, None, "no capacity. Launching failed."),
        ]

    def test_a_group_that_is_gone_has_no_history(self, aws, groups):
        aws.refuse("autoscaling", "describe_scaling_activities", "ValidationError", "AutoScalingGroup name not found")
        assert groups.activities("web-a", self.SINCE) == ()
