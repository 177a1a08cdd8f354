"""EventBridge: events that match our rules reach the queue, at least once, late and out of order at times."""

import json
from collections import Counter
from collections.abc import Callable

from simulation.aws.events import Event
from simulation.faults import Injector
from simulation.timeline import Timeline

DETAIL_TYPES = {
    ("aws.ec2", "EC2 Spot Instance Interruption Warning"),
    ("aws.ec2", "EC2 Instance Rebalance Recommendation"),
    ("aws.ec2", "EC2 Capacity Reservation Instance Interruption Warning"),
    ("aws.ec2", "EC2 Interruptible Capacity Reservation Instance Interruption Warning"),
    ("aws.ec2", "Capacity Block Expiration Warning"),
    ("aws.ec2", "Capacity Block Reservation Expiration Warning"),
    ("aws.ec2", "EC2 Instance State-change Notification"),
    ("aws.health", "AWS Health Event"),
    ("aws.autoscaling", "EC2 Instance-launch Lifecycle Action"),
    ("aws.autoscaling", "EC2 Instance-terminate Lifecycle Action"),
    ("aws.states", "Step Functions Execution Status Change"),
    *(("aws.arc-zonal-shift", f"Autoshift {state}") for state in ("In Progress", "Completed")),
    *(("aws.arc-zonal-shift", f"Practice Run {state}") for state in ("Started", "Succeeded", "Interrupted", "Failed")),
    *(
        ("aws.arc-zonal-shift", f"FIS Experiment Autoshift {state}")
        for state in ("In Progress", "Completed", "Canceled")
    ),
    *(("aws.arc-zonal-shift", f"Manual Shift {state}") for state in ("Started", "Updated", "Canceled")),
}
TERMINATE_ACTION = "EC2 Instance-terminate Lifecycle Action"
STATE_CHANGE = "EC2 Instance State-change Notification"
LEAVING = {"stopping", "stopped", "shutting-down", "terminated"}
ENDED_BADLY = {"FAILED", "TIMED_OUT", "ABORTED"}
VERY_LATE = (3600.0, 3 * 3600.0)  # seconds
USUALLY = 0.5  # seconds from source to queue


def let_through(event: Event) -> bool:
    """Return whether infra's rules match the event."""
    key = (event["source"], event["detail-type"])
    if key not in DETAIL_TYPES:
        return False
    if key[1] == STATE_CHANGE:
        return event["detail"]["state"] in LEAVING
    if key[0] == "aws.states":
        return event["detail"]["status"] in ENDED_BADLY
    return True


class Bus:
    """Event bus of the account. `send` puts a body into the interruption queue, `send_state_change` into that of state
    changes and lifecycle actions.
    """

    def __init__(
        self,
        timeline: Timeline,
        injector: Injector,
        send: Callable[[str], None],
        send_state_change: Callable[[str], None] | None = None,
    ) -> None:
        self._timeline, self._injector, self.send = timeline, injector, send
        self.send_state_change = send_state_change or send
        self.emitted: Counter[str] = Counter()
        self.heard: dict[str, float] = {}  # instance -> when the first event says that a hook keeps it from ending

    def emit(self, event: Event) -> None:
        """Deliver it some time from now, perhaps twice; lifecycle events are best effort and may be lost."""
        if not let_through(event):
            return
        self.emitted[event["detail-type"]] += 1
        faults = self._injector.faults
        lifecycle = event["source"] == "aws.autoscaling"
        if lifecycle and self._injector.happens("lifecycle event lost", faults.lose_lifecycle_event, "bus"):
            return
        copies = 2 if self._injector.happens("event duplicated", faults.duplicate_event, "bus") else 1
        body = json.dumps(self._injector.skewed(event))
        for _ in range(copies):
            delay = self._delay()
            self._timeline.after(delay, lambda: self.deliver(event, body), f"event {event['detail-type']}")
            if event["detail-type"] == TERMINATE_ACTION:
                self._hear(event["detail"]["EC2InstanceId"], self._timeline.now() + delay)

    def deliver(self, event: Event, body: str) -> None:
        """Put the event into the queue of its rule now."""
        of_account = event["detail-type"] == STATE_CHANGE or event["source"] == "aws.autoscaling"
        send = self.send_state_change if of_account else self.send
        send(body)

    def _hear(self, instance: str, comes: float) -> None:
        """Record when the event arrives. An instance that returned from terminating to its warm pool may terminate once
        more.
        """
        earlier = self.heard.get(instance, comes)
        self.heard[instance] = min(comes, earlier) if earlier >= self._timeline.now() else comes

    def _delay(self) -> float:
        faults, random = self._injector.faults, self._injector.random
        if self._injector.happens("event hours late", faults.very_late_event, "bus"):
            return random("very late").uniform(*VERY_LATE)
        if self._injector.happens("event delayed", faults.delay_event, "bus"):
            return random("delay").uniform(10, 180)
        if self._injector.happens("event reordered", faults.reorder_event, "bus"):
            return random("reordering").uniform(0, 5)
        return USUALLY
