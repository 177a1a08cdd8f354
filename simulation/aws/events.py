"""Bodies that AWS sends, as its user guides show them. Ids come from the caller, so that a run repeats itself."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from email.utils import format_datetime
from typing import Any

from leeward.model.group import TERMINATING, LifecycleHook
from leeward.model.times import format_instant

ACCOUNT = "111122223333"
REGION = "us-east-1"
STATE_MACHINE = f"arn:aws:states:{REGION}:{ACCOUNT}:stateMachine:leeward-node-termination"
SPOT_WARNING = "EC2 Spot Instance Interruption Warning"
RESERVATION_WARNING = "EC2 Capacity Reservation Instance Interruption Warning"
BLOCK_WARNING = "Capacity Block Expiration Warning"
DEPLOYMENT = f"{ACCOUNT}-{REGION}"
QUEUE_ARN = f"arn:aws:sqs:{REGION}:{ACCOUNT}:leeward-interruption"
STATE_CHANGES_ARN = f"arn:aws:sqs:{REGION}:{ACCOUNT}:leeward-state-changes"

Event = dict[str, Any]


def event(id_: str, source: str, detail_type: str, now: datetime, detail: Mapping[str, Any]) -> Event:
    """Build EventBridge's envelope; its time has whole seconds."""
    return {
        "version": "0",
        "id": id_,
        "detail-type": detail_type,
        "source": source,
        "account": ACCOUNT,
        "time": format_instant(now.replace(microsecond=0)),
        "region": REGION,
        "resources": [],
        "detail": dict(detail),
    }


def spot_warning(id_: str, instance: str, now: datetime) -> Event:
    """Build the warning that EC2 takes the instance two minutes later."""
    detail = {"instance-id": instance, "instance-action": "terminate"}
    return event(id_, "aws.ec2", SPOT_WARNING, now, detail)


def reservation_warning(id_: str, instance: str, now: datetime, takes: datetime) -> Event:
    """Build the warning that EC2 takes back the instance's interruptible capacity reservation, and the instance with
    it.
    """
    detail = {
        "instance-id": instance,
        "instance-action": "terminate",
        "instance-termination-time": format_instant(takes.replace(microsecond=0)),
    }
    return event(id_, "aws.ec2", RESERVATION_WARNING, now, detail)


def capacity_block(id_: str, reservation: str, now: datetime, ends: datetime) -> Event:
    """Build the warning that a Capacity Block ends; it names no instance."""
    detail = {"capacity-reservation-id": reservation, "end-date": format_instant(ends)}
    return event(id_, "aws.ec2", BLOCK_WARNING, now, detail)


def rebalance(id_: str, instance: str, now: datetime) -> Event:
    """Build the recommendation that reports an elevated risk."""
    return event(id_, "aws.ec2", "EC2 Instance Rebalance Recommendation", now, {"instance-id": instance})


def state_change(id_: str, instance: str, state: str, now: datetime) -> Event:
    """Build the state change of an instance, for any cause."""
    detail = {"instance-id": instance, "state": state}
    return event(id_, "aws.ec2", "EC2 Instance State-change Notification", now, detail)


def maintenance(
    id_: str, instance: str, now: datetime, starts: datetime, code: str = "AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED"
) -> Event:
    """Build the AWS Health event of a host that is retired at `starts`, or of another scheduled change."""
    detail = {
        "eventArn": f"arn:aws:health:{REGION}::event/EC2/{code}/{id_}",
        "service": "EC2",
        "eventTypeCode": code,
        "eventTypeCategory": "scheduledChange",
        "startTime": format_datetime(starts.replace(microsecond=0), usegmt=True),
        "endTime": format_datetime(starts.replace(microsecond=0) + timedelta(hours=2), usegmt=True),
        "statusCode": "upcoming",
        "eventRegion": REGION,
        "affectedEntities": [{"entityValue": instance, "status": "PENDING"}],
        "affectedAccount": ACCOUNT,
        "page": "1",
        "totalPages": "1",
    }
    return event(id_, "aws.health", "AWS Health Event", now, detail)


def lifecycle_action(id_: str, hook: LifecycleHook, instance: str, token: str, now: datetime) -> Event:
    """Build the event of a hook that holds the instance."""
    leaving = hook.transition == TERMINATING
    detail = {
        "LifecycleActionToken": token,
        "AutoScalingGroupName": hook.group,
        "LifecycleHookName": hook.name,
        "EC2InstanceId": instance,
        "LifecycleTransition": hook.transition,
        "NotificationMetadata": hook.metadata or "",
        "Origin": "AutoScalingGroup" if leaving else "EC2",
        "Destination": "EC2" if leaving else "AutoScalingGroup",
    }
    kind = "terminate" if leaving else "launch"
    return event(id_, "aws.autoscaling", f"EC2 Instance-{kind} Lifecycle Action", now, detail)


def zonal_shift(id_: str, detail_type: str, zone_id: str, now: datetime) -> Event:
    """Build ARC's event of a shift away from the zone; it names no cluster."""
    detail = {"version": "0.0.1", "data": "", "metadata": {"awayFrom": zone_id, "notes": ""}}
    return event(id_, "aws.arc-zonal-shift", detail_type, now, detail)


def execution_status(id_: str, name: str, status: str, now: datetime) -> Event:
    """Build the event by which Step Functions reports how an execution ended."""
    detail = {"stateMachineArn": STATE_MACHINE, "name": name, "status": status}
    return event(id_, "aws.states", "Step Functions Execution Status Change", now, detail)


def gist(event: Event) -> str:
    """Return what a line of the story says of the event: its instance, state, hook and begin."""
    detail = event["detail"]
    parts = (
        detail.get(key)
        for key in (
            "instance-id",
            "capacity-reservation-id",
            "EC2InstanceId",
            "state",
            "LifecycleHookName",
            "startTime",
        )
    )
    return " ".join(part for part in parts if part)
