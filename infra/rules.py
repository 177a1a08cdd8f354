"""EventBridge patterns of the interruption queue and of the queue of state changes, as plain data so that tests match
golden events.

`functions/leeward/interruption` interprets an event and decides whether its instance is ours.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_EC2 = ["aws.ec2"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRule:
    """EventBridge rule and its pattern."""

    name: str
    description: str
    pattern: Mapping[str, Any]


def live(pattern: Mapping[str, Any]) -> dict[str, Any]:
    """Return the pattern for events as they happen. A replay of an archive goes to all rules of a bus, and would drain
    nodes for warnings of the past; each of its events has a `replay-name` (EventBridge user guide, "Replaying archived
    events").
    """
    return {**pattern, "replay-name": [{"exists": False}]}


RULES = (
    EventRule(
        name="spot-interruption",
        description="EC2 takes a spot instance back in two minutes",
        pattern={"source": _EC2, "detail-type": ["EC2 Spot Instance Interruption Warning"]},
    ),
    EventRule(
        name="rebalance-recommendation",
        description="A spot instance is at an elevated risk of interruption",
        pattern={"source": _EC2, "detail-type": ["EC2 Instance Rebalance Recommendation"]},
    ),
    EventRule(
        name="scheduled-change",
        description="AWS Health announces a retirement, reboot or maintenance of an instance",
        pattern={
            "source": ["aws.health"],
            "detail-type": ["AWS Health Event"],
            "detail": {"service": ["EC2"], "eventTypeCategory": ["scheduledChange"]},
        },
    ),
    EventRule(
        name="capacity-reservation",
        description="An interruptible capacity reservation is taken back, and its instances with it",
        pattern={
            "source": _EC2,
            "detail-type": [
                "EC2 Capacity Reservation Instance Interruption Warning",
                "EC2 Interruptible Capacity Reservation Instance Interruption Warning",  # both spellings occur
            ],
        },
    ),
    EventRule(
        name="capacity-block",
        description="A Capacity Block ends in about 40 minutes, and EC2 terminates its instances before that",
        pattern={
            "source": _EC2,
            "detail-type": [
                "Capacity Block Expiration Warning",
                "Capacity Block Reservation Expiration Warning",  # both spellings occur
            ],
        },
    ),
    EventRule(
        name="zonal-shift",
        description="ARC shifts traffic away from a zone, or back: no node may be launched or replaced there",
        pattern={
            "source": ["aws.arc-zonal-shift"],
            "detail-type": [
                *(f"Autoshift {state}" for state in ("In Progress", "Completed")),
                *(f"Practice Run {state}" for state in ("Started", "Succeeded", "Interrupted", "Failed")),
                *(f"FIS Experiment Autoshift {state}" for state in ("In Progress", "Completed", "Canceled")),
                *(f"Manual Shift {state}" for state in ("Started", "Updated", "Canceled")),
            ],
        },
    ),
)
"""Warnings and announcements of AWS about single instances and zones: few, and the first ones are urgent."""

STATE_CHANGE = EventRule(
    name="state-change",
    description="An instance stops or terminates, whatever the cause",
    pattern={
        "source": _EC2,
        "detail-type": ["EC2 Instance State-change Notification"],
        "detail": {"state": ["stopping", "stopped", "shutting-down", "terminated"]},
    },
)
LIFECYCLE_ACTION = EventRule(
    name="lifecycle-action",
    description="A lifecycle hook holds an instance that arrives or leaves, and waits for an answer",
    pattern={
        "source": ["aws.autoscaling"],
        "detail-type": ["EC2 Instance-launch Lifecycle Action", "EC2 Instance-terminate Lifecycle Action"],
    },
)
OF_THE_ACCOUNT = (STATE_CHANGE, LIFECYCLE_ACTION)
"""Events of every instance and group of the account, those of other teams too: EventBridge knows no tags."""


def execution_rule(name: str, machine: str, *arns: str) -> EventRule:
    """Return the rule for executions of the state machines with these ARNs that ended where no Catch could act.
    `machine`: their name in the description."""
    return EventRule(
        name=name,
        description=f"An execution of {machine} failed, timed out or was stopped",
        pattern={
            "source": ["aws.states"],
            "detail-type": ["Step Functions Execution Status Change"],
            "detail": {"status": ["FAILED", "TIMED_OUT", "ABORTED"], "stateMachineArn": list(arns)},
        },
    )
