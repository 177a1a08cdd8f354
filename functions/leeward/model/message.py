"""Interruption message after parsing."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from leeward.model.group import LAUNCHING, TERMINATING

WARM_POOL = "WarmPool"  # of a lifecycle action's Origin and Destination


class Kind(StrEnum):
    """Closed set of message kinds, as `leeward explain-event` prints them."""

    SPOT_INTERRUPTION = "spot_interruption"
    REBALANCE_RECOMMENDATION = "rebalance_recommendation"
    SCHEDULED_CHANGE = "scheduled_change"
    STATE_CHANGE = "state_change"
    ASG_TERMINATE = "asg_terminate"
    ASG_LAUNCH = "asg_launch"
    CAPACITY_RESERVATION = "capacity_reservation"
    EXECUTION_ENDED = "execution_ended"
    NOOP = "noop"

    @property
    def about_nodes(self) -> bool:
        """True if the instances that it names are looked up to decide the actions on their nodes."""
        return self not in {Kind.EXECUTION_ENDED, Kind.NOOP}


@dataclass(frozen=True, slots=True, kw_only=True)
class HookAction:
    """Lifecycle action that waits for an answer. `direct`: the hook notified our queue or topic itself."""

    group: str
    hook: str
    token: str
    instance: str
    transition: str
    origin: str = ""
    destination: str = ""
    direct: bool = False
    metadata: str = ""  # the hook's NotificationMetadata, as the event repeats it

    @property
    def terminating(self) -> bool:
        """True if the instance is leaving (else it is arriving)."""
        return self.transition == TERMINATING

    @property
    def launching(self) -> bool:
        """True if the instance is arriving."""
        return self.transition == LAUNCHING

    @property
    def without_pods(self) -> bool:
        """True if the instance enters a warm pool from EC2 or leaves one for EC2: it runs no pods, and its hook is
        answered at once. A node that returns to its warm pool is full of pods; one that leaves it for the group is
        launched like any other.
        """
        return self.destination == WARM_POOL if self.launching else self.origin == WARM_POOL


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """Content of one queue record. `event_id`: the same on every redelivery; `deadline`: when the instance is taken."""

    kind: Kind
    event_id: str
    at: datetime
    instances: tuple[str, ...] = ()
    deadline: datetime | None = None
    hook: HookAction | None = None
    state: str = ""  # of a state change: stopping, stopped, shutting-down, terminated ...
    account: str = ""
    region: str = ""
    reason: str = ""  # why a no-op is one; how an execution ended
    ended_execution: str = ""  # of `execution_ended`: the name of a node-termination execution that ended badly
