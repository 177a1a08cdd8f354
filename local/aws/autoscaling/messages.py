"""Messages of Auto Scaling to EventBridge and to a hook's target, with the bodies as its user guide documents them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from local.aws.autoscaling.hooks import Transition
from local.aws.autoscaling.waits import OpenAction
from local.aws.outbox import Event, Outbox

_SERVICE = "AWS Auto Scaling"
_ENDS = {
    Transition.LAUNCHING: {"Origin": "EC2", "Destination": "AutoScalingGroup"},
    Transition.TERMINATING: {"Origin": "AutoScalingGroup", "Destination": "EC2"},
}

_KEPT = {"Origin": "AutoScalingGroup", "Destination": "AutoScalingGroup", "Action": "ReplaceRootVolume"}


def timestamp() -> str:
    """Return the present time as Auto Scaling writes it: UTC with milliseconds and Z."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def lifecycle_action(outbox: Outbox, group: Any, instance_id: str, action: OpenAction, *, keeps: bool = False) -> None:
    """Report one hook that now holds an instance: always to EventBridge, and raw to the hook's own target. ``keeps``:
    the instance stays, and its root volume is replaced.
    """
    hook = action.hook
    body: dict[str, Any] = {
        "LifecycleActionToken": action.token,
        "AutoScalingGroupName": group.name,
        "LifecycleHookName": hook.name,
        "EC2InstanceId": instance_id,
        "LifecycleTransition": hook.transition.value,
        **(_KEPT if keeps else _ENDS[hook.transition]),
    }
    if hook.metadata is not None:
        body["NotificationMetadata"] = hook.metadata
    verb = "terminate" if hook.transition is Transition.TERMINATING else "launch"
    outbox.emit(_event(group, f"EC2 Instance-{verb} Lifecycle Action", body))
    if hook.target_arn:
        outbox.notify(hook.target_arn, {**_envelope(group), **body})


def test_notification(outbox: Outbox, group: Any, target_arn: str) -> None:
    """Return the message that a new notification target gets."""
    body = {**_envelope(group), "AutoScalingGroupARN": group.arn, "AutoScalingGroupName": group.name}
    outbox.notify(target_arn, {**body, "Event": "autoscaling:TEST_NOTIFICATION"})


def outcome(outbox: Outbox, group: Any, activity: Mapping[str, Any], *, transition: Transition, ok: bool) -> None:
    """Report an instance that was launched or terminated, or could not be."""
    verb = "Launch" if transition is Transition.LAUNCHING else "Terminate"
    instance_id = str(activity.get("InstanceId") or "")
    body = {
        "StatusCode": "InProgress" if ok else "Failed",
        "AutoScalingGroupName": group.name,
        "ActivityId": activity["ActivityId"],
        "Details": dict(activity["Place"]),
        "RequestId": activity["ActivityId"],
        "EndTime": activity["EndTime"].isoformat().replace("+00:00", "Z"),
        "EC2InstanceId": instance_id,
        "StartTime": activity["StartTime"].isoformat().replace("+00:00", "Z"),
        "Cause": activity["Cause"],
        "Description": activity["Description"],
        "StatusMessage": activity["StatusMessage"],
        **_ENDS[transition],
    }
    word = "Successful" if ok else "Unsuccessful"
    arn = f"arn:aws:ec2:{group.region}:{group.account_id}:instance/{instance_id}"
    outbox.emit(_event(group, f"EC2 Instance {verb} {word}", body, *((arn,) if instance_id else ())))


def _envelope(group: Any) -> dict[str, Any]:
    return {"AccountId": group.account_id, "RequestId": str(uuid4()), "Service": _SERVICE, "Time": timestamp()}


def _event(group: Any, detail_type: str, detail: Mapping[str, Any], *more: str) -> Event:
    return Event(
        source="aws.autoscaling",
        detail_type=detail_type,
        detail=detail,
        account=group.account_id,
        region=group.region,
        resources=(group.arn, *more),
    )
