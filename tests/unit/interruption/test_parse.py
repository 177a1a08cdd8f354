"""What each message says, in the shapes that AWS documents and the broken ones that AWS never promised not to send."""

import json
from datetime import UTC, datetime, timedelta
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leeward.interruption.fields import MalformedMessageError
from leeward.interruption.parse import PARSERS, SHIFTS, parse
from leeward.model.capacity_block import CapacityBlock
from leeward.model.group import LAUNCHING, TERMINATING
from leeward.model.message import InterruptionMessage, Message, MessageKind
from leeward.model.zonal_shift import ShiftKind
from tests.events import NAMES, event

AT = datetime(2026, 3, 2, 10, 0, tzinfo=UTC)
RECEIVED = datetime(2026, 3, 2, 10, 7, tzinfo=UTC)


def parsed(name, **changes):
    return parse(event(name, **changes), received=RECEIVED)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("spot_interruption", MessageKind.SPOT_INTERRUPTION),
        ("rebalance_recommendation", MessageKind.REBALANCE_RECOMMENDATION),
        ("capacity_reservation", MessageKind.CAPACITY_RESERVATION),
        ("state_change", MessageKind.STATE_CHANGE),
        ("scheduled_change", MessageKind.SCHEDULED_CHANGE),
        ("asg_terminate", MessageKind.ASG_TERMINATE),
        ("asg_terminate_direct", MessageKind.ASG_TERMINATE),
        ("asg_terminate_sns", MessageKind.ASG_TERMINATE),
        ("asg_launch", MessageKind.ASG_LAUNCH),
        ("test_notification", MessageKind.NOOP),
        ("execution_aborted", MessageKind.EXECUTION_ENDED),
        ("zonal_shift", MessageKind.ZONAL_SHIFT),
        ("unknown", MessageKind.NOOP),
    ],
)
def test_every_golden_event_has_its_kind_and_time(name, kind):
    message = parsed(name)
    assert message.kind is kind
    assert message.at == AT
    if kind not in {MessageKind.NOOP, MessageKind.ZONAL_SHIFT}:
        assert "i-0abc" in message.instances


def test_there_is_a_golden_event_for_every_parser():
    keys = {(raw.get("source"), raw.get("detail-type")) for raw in (json.loads(event(name)) for name in NAMES)}
    spelled_twice = {
        ("aws.ec2", "EC2 Capacity Reservation Instance Interruption Warning"),
        ("aws.ec2", "Capacity Block Reservation Expiration Warning"),
    }
    shifts = {("aws.arc-zonal-shift", name) for name in SHIFTS}  # all of one shape
    assert set(PARSERS) - spelled_twice - shifts <= keys
    assert keys & shifts


@pytest.mark.parametrize(
    ("detail_type", "kind", "began"),
    [
        ("Autoshift In Progress", ShiftKind.AUTOSHIFT, True),
        ("Autoshift Completed", ShiftKind.AUTOSHIFT, False),
        ("Practice Run Started", ShiftKind.PRACTICE_RUN, True),
        ("Practice Run Interrupted", ShiftKind.PRACTICE_RUN, False),
        ("FIS Experiment Autoshift In Progress", ShiftKind.FIS, True),
        ("FIS Experiment Autoshift Canceled", ShiftKind.FIS, False),
        ("Manual Shift Updated", ShiftKind.MANUAL, True),
        ("Manual Shift Canceled", ShiftKind.MANUAL, False),
    ],
)
def test_a_notice_of_a_zonal_shift_says_its_cause_its_zone_id_and_whether_it_is_in_effect(detail_type, kind, began):
    notice = parsed("zonal_shift", **{"detail_x_type": detail_type})
    assert (notice.kind, notice.shift, notice.began) == (MessageKind.ZONAL_SHIFT, kind, began)
    assert (notice.zone_id, notice.instances) == ("use1-az1", ())


def test_a_notice_without_a_zone_is_read_all_the_same():
    assert parsed("zonal_shift", detail__metadata=...).zone_id == ""


def test_a_notice_that_names_a_resource_concerns_that_cluster_alone():
    arn = "arn:aws:eks:us-east-1:111122223333:cluster/blue"
    notice = parsed("zonal_shift", resources=[arn])
    assert [notice.concerns(name) for name in ("blue", "blue-2", "green")] == [True, False, False]
    assert parsed("zonal_shift", resources=["TEST-EXAMPLE-2023-11-16-23-28-11-5"]).concerns("green")


def test_a_spot_instance_is_taken_two_minutes_after_its_warning():
    assert parsed("spot_interruption").deadline == AT + timedelta(minutes=2)


@pytest.mark.parametrize(
    "spelling",
    [
        "EC2 Capacity Reservation Instance Interruption Warning",
        "EC2 Interruptible Capacity Reservation Instance Interruption Warning",
    ],
)
def test_both_spellings_of_the_capacity_reservation_warning_are_known(spelling):
    message = parsed("capacity_reservation", **{"detail-type": spelling})
    assert (message.kind, message.deadline) == (MessageKind.CAPACITY_RESERVATION, AT + timedelta(minutes=2))


@pytest.mark.parametrize(
    "spelling", ["Capacity Block Expiration Warning", "Capacity Block Reservation Expiration Warning"]
)
def test_both_spellings_of_the_warning_about_a_capacity_block_name_its_end(spelling):
    message = parsed("capacity_block", **{"detail-type": spelling})
    assert (message.kind, message.instances) == (MessageKind.CAPACITY_BLOCK, ())
    assert message.block == CapacityBlock(reservation="cr-0abc", ends=AT + timedelta(minutes=40))
    assert message.deadline == AT + timedelta(minutes=10)
    assert message.event_id == "capacity-block#cr-0abc#2026-03-02T10:40:00Z"


@pytest.mark.parametrize(
    "end",
    [
        "2026-03-02T10:40:00Z",
        "2026-03-02T10:40:00.000Z",
        "2026-03-02T12:40:00+02:00",
        "2026-03-02T10:40:00",
        "2026-03-02 10:40:00.0",
        "Mon, 02 Mar 2026 10:40:00 GMT",
        1772448000,
        1772448000000,
        "1772448000",
        "1772448000000",
        1772448000.0,
    ],
)
def test_the_end_of_a_capacity_block_is_parsed_in_every_form_that_can_be_told(end):
    message = parsed("capacity_block", detail__end_x_date=end)
    assert (message.block.ends, message.unread) == (AT + timedelta(minutes=40), "")


@pytest.mark.parametrize(
    "end", [..., "", "0001-01-01T00:00:00Z", "2026-03-02", "in an hour", True, float("nan"), 1e300, -1, [], {}]
)
def test_an_end_that_cannot_be_parsed_follows_from_the_time_of_the_warning(end):
    """AWS documents no form of it: a warning that is malformed for that would be lost, and its drain late."""
    message = parsed("capacity_block", detail__end_x_date=end)
    assert message.block.ends == AT + timedelta(minutes=40)
    assert message.unread


def test_a_warning_about_a_capacity_block_without_a_reservation_is_malformed():
    with pytest.raises(MalformedMessageError, match="expected a capacity reservation's id"):
        parsed("capacity_block", detail__capacity_x_reservation_x_id="i-0abc")


@pytest.mark.parametrize("state", ["stopping", "stopped", "shutting-down", "terminated"])
def test_a_leaving_state_acts(state):
    message = parsed("state_change", detail__state=state)
    assert (message.kind, message.state) == (MessageKind.STATE_CHANGE, state)


@pytest.mark.parametrize("state", ["Stopping", "SHUTTING-DOWN", "Terminated"])
def test_a_leaving_state_acts_in_any_case(state):
    message = parsed("state_change", detail__state=state)
    assert (message.kind, message.state) == (MessageKind.STATE_CHANGE, state.lower())


@pytest.mark.parametrize("state", ["", "stop", "pending", "running", "shutting", "stopping,stopped"])
def test_any_other_state_does_nothing_not_even_a_part_of_a_leaving_one(state):
    message = parsed("state_change", detail__state=state)
    assert message.kind is MessageKind.NOOP
    assert repr(state) in message.reason


class TestLifecycleActions:
    def test_an_event_carries_all_that_an_answer_needs(self):
        hook = parsed("asg_terminate").hook
        assert (hook.group, hook.hook, hook.instance) == ("web-a", "leeward-terminate", "i-0abc")
        assert hook.token == "87654321-4321-4321-4321-210987654321"
        assert (hook.transition, hook.direct, hook.metadata) == (TERMINATING, False, "leeward.dev/v1")
        assert (hook.origin, hook.destination, hook.without_pods) == ("AutoScalingGroup", "EC2", False)

    def test_a_launch_is_distinguished_from_a_termination_by_its_transition(self):
        assert parsed("asg_launch").hook.transition == LAUNCHING
        swapped = parsed("asg_terminate", detail__LifecycleTransition=LAUNCHING)
        assert swapped.kind is MessageKind.ASG_LAUNCH

    @pytest.mark.parametrize("name", ["asg_terminate_direct", "asg_terminate_sns"])
    def test_a_notification_without_envelope_is_direct(self, name):
        message = parsed(name)
        assert message.hook.direct
        assert (message.account, message.region) == ("111122223333", "")

    def test_the_same_action_on_two_ways_is_one_event(self):
        ids = {parsed(name).event_id for name in ("asg_terminate", "asg_terminate_direct", "asg_terminate_sns")}
        assert len(ids) == 1

    @pytest.mark.parametrize("name", ["asg_terminate", "spot_interruption", "state_change"])
    def test_an_event_bridge_event_through_sns_is_not_acted_on(self, name):
        """A publisher to the topic may write any source into it."""
        wrapped = json.dumps({"Type": "Notification", "Message": event(name)})
        assert parse(wrapped, received=RECEIVED).kind is MessageKind.NOOP

    def test_a_message_inside_a_bare_sns_body_is_read_as_well(self):
        wrapped = json.dumps({"Message": event("asg_terminate_direct")})
        assert parse(wrapped, received=RECEIVED).hook.direct

    @pytest.mark.parametrize("where", ["Event", "LifecycleTransition"])
    @pytest.mark.parametrize("name", ["asg_terminate_direct", "asg_terminate"])
    def test_a_test_notification_is_a_noop_wherever_it_says_so(self, name, where):
        prefix = "" if name.endswith("direct") else "detail__"
        message = parsed(name, **{f"{prefix}{where}": "autoscaling:TEST_NOTIFICATION"})
        assert message.kind is MessageKind.NOOP

    def test_a_subscription_confirmation_is_a_noop(self):
        body = json.dumps({"Type": "SubscriptionConfirmation", "Message": "You have chosen to subscribe"})
        assert parse(body, received=RECEIVED).kind is MessageKind.NOOP

    @pytest.mark.parametrize(
        ("name", "origin", "destination", "without_pods"),
        [
            ("asg_terminate", "WarmPool", "EC2", True),
            ("asg_terminate", "AutoScalingGroup", "WarmPool", False),
            ("asg_launch", "EC2", "WarmPool", True),
            ("asg_launch", "WarmPool", "AutoScalingGroup", False),
        ],
    )
    def test_only_moves_between_ec2_and_a_warm_pool_hold_no_pods(self, name, origin, destination, without_pods):
        hook = parsed(name, detail__Origin=origin, detail__Destination=destination).hook
        assert hook.without_pods is without_pods


class TestHealthEvents:
    def test_every_affected_instance_counts_by_id_or_arn(self):
        """The peer's defect: all entities shared one event id, and only the first was ever drained."""
        assert parsed("scheduled_change").instances == ("i-0abc", "i-0def")

    def test_the_region_is_that_of_the_event_not_of_its_delivery(self):
        message = parsed("scheduled_change")
        assert (message.account, message.region) == ("111122223333", "us-east-1")

    def test_the_affected_account_wins_in_an_organizational_view(self):
        assert parsed("scheduled_change", account="999900001111").account == "111122223333"

    @pytest.mark.parametrize(
        "start", ["Mon, 02 Mar 2026 18:00:00 GMT", "Mon, 2 Mar 2026 18:00:00 -0000", "2026-03-02T18:00:00Z"]
    )
    def test_the_deadline_is_the_start_time_in_either_spelling(self, start):
        message = parsed("scheduled_change", detail__startTime=start)
        assert message.deadline == datetime(2026, 3, 2, 18, 0, tzinfo=UTC)

    @pytest.mark.parametrize("start", [..., None, "soon", 12, ""])
    def test_a_start_time_that_cannot_be_read_is_no_deadline(self, start):
        assert parsed("scheduled_change", detail__startTime=start).deadline is None

    def test_the_same_event_delivered_by_two_regions_has_one_id(self):
        twice = parsed("scheduled_change", id="another-envelope", region="us-east-1")
        assert twice.event_id == parsed("scheduled_change").event_id

    def test_a_maintenance_moved_to_another_date_is_not_a_duplicate(self):
        moved = parsed("scheduled_change", detail__startTime="Fri, 27 Mar 2026 13:00:00 GMT")
        assert moved.event_id != parsed("scheduled_change").event_id

    def test_a_second_page_is_not_a_duplicate_of_the_first(self):
        assert parsed("scheduled_change", detail__page="2").event_id != parsed("scheduled_change").event_id

    @pytest.mark.parametrize(
        "change",
        [
            {"detail__service": "RDS"},
            {"detail__eventTypeCategory": "issue"},
            {"detail__eventScopeCode": "PUBLIC"},
            {"detail__statusCode": "closed"},
            {"detail__affectedEntities": []},
            {"detail__affectedEntities": ...},
            {"detail__affectedEntities": [{"entityValue": "vol-0abc"}]},
            {"detail__affectedEntities": [{}, {"entityValue": ""}, {"entityValue": None}]},
            {"detail__affectedEntities": [{"entityValue": "i-0abc", "status": "RESOLVED"}]},
            {"detail__eventTypeCode": "AWS_EC2_PLANNED_LIFECYCLE_EVENT"},
        ],
        ids=str,
    )
    def test_what_is_not_a_change_of_our_instances_is_a_noop_with_a_reason(self, change):
        message = parsed("scheduled_change", **change)
        assert message.kind is MessageKind.NOOP
        assert message.reason.startswith("Health event")

    @pytest.mark.parametrize("status", ["open", "upcoming", ...])
    def test_open_and_upcoming_changes_count(self, status):
        assert parsed("scheduled_change", detail__statusCode=status).kind is MessageKind.SCHEDULED_CHANGE

    @pytest.mark.parametrize("entities", ["i-0abc", [7], [{"entityValue": "i-nope"}], [{"entityValue": 1}]])
    def test_broken_entities_are_malformed(self, entities):
        with pytest.raises(MalformedMessageError):
            parsed("scheduled_change", detail__affectedEntities=entities)


class TestExecutionsOfOurs:
    @pytest.mark.parametrize("status", ["FAILED", "TIMED_OUT", "ABORTED"])
    def test_one_that_ended_badly_is_named(self, status):
        message = parsed("execution_aborted", detail__status=status)
        assert (message.kind, message.execution) == (MessageKind.EXECUTION_ENDED, "i-0abc-1")
        assert message.instances == ("i-0abc",)

    @pytest.mark.parametrize(
        "change",
        [
            {"detail__status": "SUCCEEDED"},
            {"detail__name": "manual"},
            {"detail__name": "i-0abc-x"},
            {"detail__stateMachineArn": "arn:aws:states:us-east-1:111122223333:stateMachine:other"},
        ],
        ids=str,
    )
    def test_any_other_starts_no_execution(self, change):
        message = parsed("execution_aborted", **change)
        assert message.kind is MessageKind.NOOP


@pytest.mark.parametrize(
    "time", [..., None, "yesterday", 1772445600, "2026-03-02T10:00:00", "0001-01-01T00:00:00+14:00"]
)
def test_an_event_without_a_readable_time_happened_when_it_was_received(time):
    message = parsed("spot_interruption", time=time)
    assert (message.at, message.deadline) == (RECEIVED, RECEIVED + timedelta(minutes=2))


def test_a_time_before_1970_is_a_time():
    assert parsed("spot_interruption", time="1969-07-20T20:17:40Z").at.year == 1969


def test_the_end_of_time_breaks_nothing():
    assert parsed("spot_interruption", time="9999-12-31T23:59:59Z").deadline is None


@pytest.mark.parametrize("key", [{"source": "aws.s3"}, {"detail-type": "Something New"}, {"source": "my.app"}])
def test_an_unknown_event_is_a_noop_whatever_its_detail(key):
    message = parsed("spot_interruption", detail=7, **key)
    assert message.kind is MessageKind.NOOP
    assert "no rule of ours" in message.reason


def test_a_body_without_an_id_has_the_same_one_on_every_redelivery():
    first, second = (parsed("spot_interruption", id=...).event_id for _ in range(2))
    assert first == second
    assert first != parsed("spot_interruption", id=..., region="eu-west-1").event_id


NO_EVENTS = [
    "",
    "not json",
    "[]",
    "null",
    "7",
    '"i-0abc"',
    "{}",
    '{"a": 1}',
    "[" * 100_000,
    '{"Message": "", "Type": []}',
]


@pytest.mark.parametrize("body", NO_EVENTS)
def test_what_is_no_event_at_all_is_malformed(body):
    with pytest.raises(MalformedMessageError):
        parse(body, received=RECEIVED)


@pytest.mark.parametrize("name", ["spot_interruption", "rebalance_recommendation", "capacity_reservation"])
@pytest.mark.parametrize(
    "instance", [..., None, "", 5, "0abc", "i-", "i-XYZ", "I-0abc", "i-0abc\n", "i-0abc,i-0def", "i-٣"]
)
def test_an_instance_id_is_i_and_hexadecimal_digits(name, instance):
    with pytest.raises(MalformedMessageError, match="instance-id"):
        parsed(name, **{"detail__instance_x_id": instance})


@pytest.mark.parametrize(
    "key", ["AutoScalingGroupName", "LifecycleHookName", "LifecycleActionToken", "EC2InstanceId", "LifecycleTransition"]
)
@pytest.mark.parametrize("value", [..., None, 7, "", ["web-a"]])
def test_a_lifecycle_action_without_all_its_fields_is_malformed(key, value):
    with pytest.raises(MalformedMessageError, match=key):
        parsed("asg_terminate", **{f"detail__{key}": value})


@pytest.mark.parametrize(
    "change",
    [
        {"source": 7},
        {"source": ...},
        {"detail_x_type": ...},
        {"detail": ...},
        {"detail": []},
        {"account": 1},
        {"account": ...},
        {"account": ""},
        {"region": ...},
    ],
)
def test_an_envelope_of_wrong_types_is_malformed(change):
    with pytest.raises(MalformedMessageError):
        parsed("spot_interruption", **change)


@pytest.mark.parametrize("account", [..., "", 7])
def test_a_direct_notification_names_its_account(account):
    with pytest.raises(MalformedMessageError, match="AccountId"):
        parsed("asg_terminate_direct", AccountId=account)


def test_an_instance_id_is_short():
    with pytest.raises(MalformedMessageError, match="instance-id"):
        parsed("spot_interruption", **{"detail__instance_x_id": f"i-{'0' * 33}"})


@pytest.mark.parametrize("key", ["LifecycleHookName", "AutoScalingGroupName", "LifecycleActionToken", "Origin"])
def test_a_text_is_short(key):
    with pytest.raises(MalformedMessageError, match=f"{key}: found 4001 characters, expected at most 4000"):
        parsed("asg_terminate", **{f"detail__{key}": "x" * 4001})


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("spot_interruption", {"id": "9" * 501}),
        ("asg_terminate", {"detail__LifecycleActionToken": "t" * 4000}),
        ("scheduled_change", {"detail__eventArn": "arn:" + "a" * 900, "detail__page": "9" * 900}),
    ],
)
def test_an_id_fits_a_record_and_is_the_same_on_every_redelivery(name, change):
    message = parsed(name, **change)
    assert 0 < len(message.event_id) <= 500
    assert message.event_id == parsed(name, **change).event_id != parsed(name).event_id


def test_a_reason_shows_what_was_found_cut_short():
    with pytest.raises(MalformedMessageError) as caught:
        parsed("spot_interruption", **{"detail__instance_x_id": "x" * 10_000})
    assert len(str(caught.value)) < 200


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
KEYS = [
    "instance-id",
    "state",
    "EC2InstanceId",
    "LifecycleTransition",
    "service",
    "affectedEntities",
    "startTime",
    "name",
]


def test_each_kind_of_message_has_a_class_of_its_own():
    kinds = [message.kind for message in get_args(InterruptionMessage)]
    assert sorted(kinds) == sorted(MessageKind)


@given(st.sampled_from(NAMES), st.sampled_from(KEYS), JSON)
def test_any_value_in_a_field_is_understood_or_malformed_never_a_crash(name, key, value):
    raw = json.loads(event(name))
    raw.get("detail", raw)[key] = value
    try:
        message = parse(json.dumps(raw), received=RECEIVED)
    except MalformedMessageError:
        return
    assert isinstance(message, Message)
    assert message.at.tzinfo is not None


@given(st.text() | JSON.map(json.dumps))
def test_any_text_is_understood_or_malformed_never_a_crash(body):
    try:
        parse(body, received=RECEIVED)
    except MalformedMessageError:
        return
