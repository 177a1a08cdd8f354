"""Parsers of queue messages: one small function per message, in a table keyed on (source, detail-type).

Does not decide on actions: unknown messages become no-ops with a reason, malformed ones MalformedMessageError. Field
names of AWS Health events: "AWS Health events Amazon EventBridge schema" in AWS Health's user guide."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from hashlib import sha256
from types import MappingProxyType
from typing import Any, TypedDict

from leeward.interruption import fields
from leeward.interruption.fields import MalformedMessageError
from leeward.model.capacity_block import CapacityBlock
from leeward.model.group import LAUNCHING, TERMINATING
from leeward.model.message import (
    CapacityBlockExpiration,
    CapacityReservationInterruption,
    ExecutionEnded,
    HookAction,
    InterruptionMessage,
    LifecycleAction,
    LifecycleLaunch,
    LifecycleTermination,
    NoOp,
    RebalanceRecommendation,
    RootVolumeReplacement,
    ScheduledChange,
    SpotInterruption,
    StateChange,
    ZonalShiftNotice,
)
from leeward.model.zonal_shift import ShiftKind

WARNING = timedelta(minutes=2)  # between a warning, of spot or of a capacity reservation, and EC2 taking the instance
TEST_NOTIFICATION = "autoscaling:TEST_NOTIFICATION"
FIRST_YEAR, LAST_YEAR = 2000, 9999  # of a time to which days can be added
WARNED_BEFORE_END = timedelta(minutes=40)  # EC2 user guide, "Monitor Capacity Blocks using EventBridge"
LEAVING_STATES = frozenset({"stopping", "stopped", "shutting-down", "terminated"})
STATE_MACHINE = "leeward-node-termination"  # a named deployment's begins with its name
LONGEST_ID = 500  # characters; of a Health event: an ARN, a communication, a page and a date
ENDED_BADLY = frozenset({"FAILED", "TIMED_OUT", "ABORTED"})
FIRST_PAGE = frozenset({"", "1"})
PLANNED_LIFECYCLE = "_PLANNED_LIFECYCLE_EVENT"  # suffix of a type: the end of support of a version, and the like
RESOLVED = "RESOLVED"  # status of an entity that needs nothing any more


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """EventBridge event around its detail. `at` is its time, else when it was received."""

    id: str
    at: datetime
    account: str
    region: str
    raw: Mapping[str, Any]

    @property
    def detail(self) -> Mapping[str, Any]:
        """Detail that the source wrote."""
        return fields.mapping(self.raw, "detail")

    def about(self, *instances: str, event_id: str = "") -> "Common":
        """Return the fields that every message of this envelope has; `event_id` replaces the envelope's."""
        return {
            "event_id": _short(event_id or self.id),
            "at": self.at,
            "instances": instances,
            "account": self.account,
            "region": self.region,
        }

    def noop(self, reason: str, *instances: str) -> NoOp:
        """Build a message without effect, with its reason."""
        return NoOp(**self.about(*instances), reason=reason)


class Common(TypedDict):
    """Fields of `leeward.model.message.Message`."""

    event_id: str
    at: datetime
    instances: tuple[str, ...]
    account: str
    region: str


def parse(body: str, *, received: datetime) -> InterruptionMessage:
    """Parse one SQS body: an EventBridge event, or a lifecycle notification, raw or inside an SNS notification.

    `received` replaces an event time that is missing or cannot be parsed. Raises MalformedMessageError.
    """
    raw = _object(body)
    if "detail-type" not in raw and isinstance(raw.get("Message"), str):
        if raw.get("Type") in ("SubscriptionConfirmation", "UnsubscribeConfirmation"):  # a set cannot look up a list
            return _no_envelope(raw, body, received).noop(f"SNS {raw['Type']}: confirm it where the topic is kept")
        body = raw["Message"]
        raw = _object(body)
        if "detail-type" in raw or "source" in raw:
            return _no_envelope(raw, body, received).noop("an EventBridge event through SNS: only rules deliver them")
    if "detail-type" in raw or "source" in raw:
        return _event(raw, body, received)
    if TEST_NOTIFICATION in (raw.get("Event"), raw.get("LifecycleTransition")):
        return _no_envelope(raw, body, received).noop("test notification of an Auto Scaling group")
    if "LifecycleTransition" in raw:
        return _lifecycle(raw, _no_envelope(raw, body, received), direct=True)
    raise MalformedMessageError("found neither an EventBridge event nor a lifecycle notification")


def _object(body: str) -> dict[str, Any]:
    try:
        raw = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise MalformedMessageError(f"found no JSON ({type(error).__name__}), expected an object") from error
    if not isinstance(raw, dict):
        raise MalformedMessageError(f"found {fields.shown(raw)}, expected a JSON object")
    return raw


def _event(raw: Mapping[str, Any], body: str, received: datetime) -> InterruptionMessage:
    key = (fields.text(raw, "source"), fields.text(raw, "detail-type"))
    read = PARSERS.get(key)
    origin = fields.text if read else fields.optional_text
    envelope = Envelope(
        id=fields.optional_text(raw, "id") or _fingerprint(body),
        at=fields.moment(raw.get("time")) or received,
        account=origin(raw, "account"),
        region=origin(raw, "region"),
        raw=raw,
    )
    return read(envelope) if read else envelope.noop(f"no rule of ours for {key[0]}, {key[1]}")


def _no_envelope(raw: Mapping[str, Any], body: str, received: datetime) -> Envelope:
    return Envelope(
        id=_fingerprint(body),
        at=fields.moment(raw.get("Time")) or received,
        account=fields.optional_text(raw, "AccountId"),
        region="",
        raw=raw,
    )


def _fingerprint(body: str) -> str:
    """Return an id for a body without one, the same on every redelivery."""
    return sha256(body.encode(errors="surrogatepass")).hexdigest()[:32]


def _short(event_id: str) -> str:
    """Return an id that fits a record and a log line, the same on every redelivery; AWS's own are short."""
    return event_id if len(event_id) <= LONGEST_ID else _fingerprint(event_id)


def _spot_interruption(event: Envelope) -> SpotInterruption:
    common = event.about(fields.instance_id(event.detail, "instance-id"))
    return SpotInterruption(**common, deadline=fields.later(event.at, WARNING))


def _rebalance_recommendation(event: Envelope) -> RebalanceRecommendation:
    return RebalanceRecommendation(**event.about(fields.instance_id(event.detail, "instance-id")))


def _capacity_reservation(event: Envelope) -> CapacityReservationInterruption:
    common = event.about(fields.instance_id(event.detail, "instance-id"))
    return CapacityReservationInterruption(**common, deadline=fields.later(event.at, WARNING))


def _capacity_block(event: Envelope) -> CapacityBlockExpiration:
    """Parse the one warning about a block. Its id names block and end, as the minute reconciler does. AWS documents no
    form of the end: where it cannot be parsed it follows from the time of the warning, and EC2's own replaces it.
    """
    detail = event.detail
    ends = fields.any_moment(detail.get("end-date"))
    known = ends is not None and FIRST_YEAR <= ends.year < LAST_YEAR
    block = CapacityBlock(
        reservation=fields.reservation_id(detail, "capacity-reservation-id"),
        ends=ends if ends is not None and known else event.at + WARNED_BEFORE_END,
    )
    common = event.about(event_id=block.event_id)
    unread = "" if known else fields.shown(detail.get("end-date"))
    return CapacityBlockExpiration(**common, block=block, deadline=block.taken_at(), unread=unread)


def _state_change(event: Envelope) -> StateChange | NoOp:
    """Parse a state change. Only whole words act, in any case: a prefix test would drain a node for the state `stop` or
    for an empty one.
    """
    detail = event.detail
    instance = fields.instance_id(detail, "instance-id")
    state = detail.get("state")
    if not isinstance(state, str):
        raise MalformedMessageError(f"state: found {fields.shown(state)}, expected a string")
    if state.lower() not in LEAVING_STATES:
        return event.noop(f"state {fields.shown(state)} takes no node away", instance)
    return StateChange(**event.about(instance), state=state.lower())


def _lifecycle_event(event: Envelope) -> LifecycleAction | NoOp:
    detail = event.detail
    if TEST_NOTIFICATION in (detail.get("Event"), detail.get("LifecycleTransition")):
        return event.noop("test notification of an Auto Scaling group")
    return _lifecycle(detail, event, direct=False)


def _lifecycle(detail: Mapping[str, Any], event: Envelope, *, direct: bool) -> LifecycleAction:
    """Parse a lifecycle action. Its token is the event's id: an action announced in two ways is one cause."""
    transition = fields.text(detail, "LifecycleTransition")
    if direct:
        fields.text(detail, "AccountId")
    if transition not in {TERMINATING, LAUNCHING}:
        raise MalformedMessageError(f"LifecycleTransition: found {fields.shown(transition)}, expected a known one")
    hook = HookAction(
        group=fields.text(detail, "AutoScalingGroupName"),
        hook=fields.text(detail, "LifecycleHookName"),
        token=fields.text(detail, "LifecycleActionToken"),
        instance=fields.instance_id(detail, "EC2InstanceId"),
        transition=transition,
        origin=fields.optional_text(detail, "Origin"),
        destination=fields.optional_text(detail, "Destination"),
        direct=direct,
        metadata=fields.optional_text(detail, "NotificationMetadata"),
        action=fields.optional_text(detail, "Action"),
    )
    common = event.about(hook.instance, event_id=hook.token)
    if hook.launching:
        return LifecycleLaunch(**common, hook=hook)
    if hook.replaces_root_volume:
        return RootVolumeReplacement(**common, hook=hook)
    return LifecycleTermination(**common, hook=hook)


def _execution_ended(event: Envelope) -> ExecutionEnded | NoOp:
    detail = event.detail
    name, status = fields.text(detail, "name"), fields.text(detail, "status")
    if not fields.text(detail, "stateMachineArn").endswith(STATE_MACHINE):
        return event.noop("an execution of a state machine that is not ours")
    if status not in ENDED_BADLY:
        return event.noop(f"execution {fields.shown(name)}: {fields.shown(status)} needs no reaction")
    instance, _, attempt = name.rpartition("-")
    if not fields.INSTANCE_ID.fullmatch(instance) or not attempt.isdecimal():
        return event.noop(f"execution {fields.shown(name)} was started manually")
    return ExecutionEnded(**event.about(instance), execution=name, status=status)


def _scheduled_change(event: Envelope) -> ScheduledChange | NoOp:
    change = read_health_change(event.detail)
    if change.ignored:
        return event.noop(change.ignored, *change.instances)
    message = ScheduledChange(**event.about(*change.instances, event_id=change.id), deadline=change.starts)
    return replace(
        message,
        reboots=change.reboots,
        account=change.account or event.account,
        region=change.region or event.region,
    )


def _zonal_shift(event: Envelope) -> ZonalShiftNotice:
    """Parse a notice of ARC. A zone that it does not name costs nothing: ARC is asked for the shifts."""
    shift, began = SHIFTS[fields.text(event.raw, "detail-type")]
    metadata, resources = event.detail.get("metadata"), event.raw.get("resources")
    return ZonalShiftNotice(
        **event.about(),
        zone_id=fields.optional_text(metadata, "awayFrom") if isinstance(metadata, Mapping) else "",
        shift=shift,
        began=began,
        resources=tuple(str(name) for name in resources) if isinstance(resources, list) else (),
    )


SHIFTS: Mapping[str, tuple[ShiftKind, bool]] = MappingProxyType(
    {
        "Autoshift In Progress": (ShiftKind.AUTOSHIFT, True),
        "Autoshift Completed": (ShiftKind.AUTOSHIFT, False),
        "Practice Run Started": (ShiftKind.PRACTICE_RUN, True),
        "Practice Run Succeeded": (ShiftKind.PRACTICE_RUN, False),
        "Practice Run Interrupted": (ShiftKind.PRACTICE_RUN, False),
        "Practice Run Failed": (ShiftKind.PRACTICE_RUN, False),
        "FIS Experiment Autoshift In Progress": (ShiftKind.FIS, True),
        "FIS Experiment Autoshift Completed": (ShiftKind.FIS, False),
        "FIS Experiment Autoshift Canceled": (ShiftKind.FIS, False),
        "Manual Shift Started": (ShiftKind.MANUAL, True),
        "Manual Shift Updated": (ShiftKind.MANUAL, True),
        "Manual Shift Canceled": (ShiftKind.MANUAL, False),
    }
)
"""Detail types of ARC's events -> the cause of the shift, and whether it is in effect."""

PARSERS: Mapping[tuple[str, str], Callable[[Envelope], InterruptionMessage]] = MappingProxyType(
    {
        ("aws.ec2", "EC2 Spot Instance Interruption Warning"): _spot_interruption,
        ("aws.ec2", "EC2 Instance Rebalance Recommendation"): _rebalance_recommendation,
        # AWS's user guide spells this one both ways
        ("aws.ec2", "EC2 Capacity Reservation Instance Interruption Warning"): _capacity_reservation,
        ("aws.ec2", "EC2 Interruptible Capacity Reservation Instance Interruption Warning"): _capacity_reservation,
        # documents differ in this one too
        ("aws.ec2", "Capacity Block Expiration Warning"): _capacity_block,
        ("aws.ec2", "Capacity Block Reservation Expiration Warning"): _capacity_block,
        ("aws.ec2", "EC2 Instance State-change Notification"): _state_change,
        ("aws.autoscaling", "EC2 Instance-terminate Lifecycle Action"): _lifecycle_event,
        ("aws.autoscaling", "EC2 Instance-launch Lifecycle Action"): _lifecycle_event,
        ("aws.health", "AWS Health Event"): _scheduled_change,
        ("aws.states", "Step Functions Execution Status Change"): _execution_ended,
        **{("aws.arc-zonal-shift", name): _zonal_shift for name in SHIFTS},
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthChange:
    """Scheduled change. `reboots`: its type says that EC2 boots the instances again. `ignored`: why nothing follows;
    empty for a change of instances of this account.
    """

    id: str = ""
    instances: tuple[str, ...] = ()
    starts: datetime | None = None
    account: str = ""
    region: str = ""
    reboots: bool = False
    ignored: str = ""


def read_health_change(detail: Mapping[str, Any]) -> HealthChange:
    """Parse the detail. Every affected instance counts. Fields that older events lack default to their usual values."""
    service = fields.text(detail, "service")
    category = fields.text(detail, "eventTypeCategory")
    if (service, category) != ("EC2", "scheduledChange"):
        return HealthChange(ignored=f"Health event of {service}, {category}: only EC2, scheduledChange counts")
    instances = tuple(dict.fromkeys(_health_instances(detail)))
    ignored = _health_ignored(detail, instances)
    return HealthChange(
        id=_health_id(detail),
        instances=instances,
        starts=fields.moment(detail.get("startTime")),
        account=fields.optional_text(detail, "affectedAccount"),
        region=fields.optional_text(detail, "eventRegion"),
        reboots="_REBOOT_" in fields.optional_text(detail, "eventTypeCode"),
        ignored=ignored,
    )


def _health_ignored(detail: Mapping[str, Any], instances: tuple[str, ...]) -> str:
    scope = fields.optional_text(detail, "eventScopeCode")
    status = fields.optional_text(detail, "statusCode")
    code = fields.optional_text(detail, "eventTypeCode")
    if code.endswith(PLANNED_LIFECYCLE):
        return f"Health event {code}: it announces a change of a service, and names what to update"
    if scope not in {"", "ACCOUNT_SPECIFIC"}:
        return f"Health event with scope {scope}: only ACCOUNT_SPECIFIC counts"
    if status not in {"", "open", "upcoming"}:
        return f"Health event with status {status}: only open and upcoming count"
    return "" if instances else "Health event that names no instance"


def _health_id(detail: Mapping[str, Any]) -> str:
    """Return the id that identifies duplicates. The primary and the backup Region deliver the same event under
    different envelope ids, so ARN and communicationId identify it. A page with further entities is not a duplicate of
    the first, and neither is the same maintenance moved to another date.
    """
    arn = fields.optional_text(detail, "eventArn")
    page = str(detail.get("page") or "")
    communication = fields.optional_text(detail, "communicationId")
    starts = fields.moment(detail.get("startTime"))
    parts = [
        arn,
        communication,
        "" if page in FIRST_PAGE else f"page-{page}",
        f"from-{starts:%Y%m%dT%H%M%S}" if starts else "",
    ]
    return "#".join(part for part in parts if part) if arn else ""


def _health_instances(detail: Mapping[str, Any]) -> Iterator[str]:
    """Yield the instances among the entities, by id or ARN; other resources (a host, a volume), entities without a
    value and resolved ones are skipped.
    """
    entities = detail.get("affectedEntities")
    if entities is None:
        return
    if not isinstance(entities, list):
        raise MalformedMessageError(f"affectedEntities: found {fields.shown(entities)}, expected a list")
    for entity in entities:
        if not isinstance(entity, dict):
            raise MalformedMessageError(f"affectedEntities: found {fields.shown(entity)}, expected objects")
        value = fields.optional_text(entity, "entityValue").rsplit("/", 1)[-1]
        if value.startswith("i-") and fields.optional_text(entity, "status") != RESOLVED:
            yield fields.instance_id({"entityValue": value}, "entityValue")
