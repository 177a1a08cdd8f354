"""Interruption messages after parsing, a class for each kind."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import ClassVar

from leeward.model.capacity_block import CapacityBlock
from leeward.model.group import LAUNCHING, TERMINATING
from leeward.model.zonal_shift import ShiftKind

REPLACE_ROOT_VOLUME = "ReplaceRootVolume"  # value of a lifecycle action's Action
WARM_POOL = "WarmPool"  # value of a lifecycle action's Origin and Destination


class MessageKind(StrEnum):
    """Kinds of messages, as `leeward inspect explain-event` prints them."""

    SPOT_INTERRUPTION = "spot_interruption"
    REBALANCE_RECOMMENDATION = "rebalance_recommendation"
    SCHEDULED_CHANGE = "scheduled_change"
    STATE_CHANGE = "state_change"
    ASG_TERMINATE = "asg_terminate"
    ASG_LAUNCH = "asg_launch"
    REPLACE_ROOT_VOLUME = "replace_root_volume"
    CAPACITY_RESERVATION = "capacity_reservation"
    CAPACITY_BLOCK = "capacity_block"
    ZONAL_SHIFT = "zonal_shift"
    EXECUTION_ENDED = "execution_ended"
    NOOP = "noop"


@dataclass(frozen=True, slots=True, kw_only=True)
class HookAction:
    """Lifecycle action that waits for an answer. `token`: identifies the action to Auto Scaling; `transition`,
    `origin`, `destination`: as in the event; `direct`: the hook sent it to our queue or topic itself, not EventBridge.
    """

    group: str
    hook: str
    token: str
    instance: str
    transition: str
    origin: str = ""
    destination: str = ""
    direct: bool = False
    metadata: str = ""  # the hook's NotificationMetadata, as the event repeats it
    action: str = ""  # of an instance refresh that keeps the instance: ReplaceRootVolume

    @property
    def terminating(self) -> bool:
        """True if the instance leaves its group."""
        return self.transition == TERMINATING

    @property
    def launching(self) -> bool:
        """True if the instance joins its group."""
        return self.transition == LAUNCHING

    @property
    def replaces_root_volume(self) -> bool:
        """True if the instance stays: its group replaces its root volume, which reboots it."""
        return self.action == REPLACE_ROOT_VOLUME

    @property
    def without_pods(self) -> bool:
        """True if the instance is launched into a warm pool or terminated from one: it runs no pods, and its hook is
        answered at once. False for a node that returns to its warm pool, for it may run pods, and for an instance that
        joins the group from its warm pool, for it is launched like any other.
        """
        return self.destination == WARM_POOL if self.launching else self.origin == WARM_POOL


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """Fields of every message. `event_id`: the same on every redelivery; `at`: the event's own time, or when the queue
    received it.
    """

    kind: ClassVar[MessageKind]

    event_id: str
    at: datetime
    instances: tuple[str, ...] = ()
    account: str = ""
    region: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotInterruption(Message):
    """Warning that EC2 interrupts a spot instance at the deadline; None if that time cannot be represented."""

    kind: ClassVar[MessageKind] = MessageKind.SPOT_INTERRUPTION

    deadline: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RebalanceRecommendation(Message):
    """Notice that a spot instance is at an elevated risk of interruption."""

    kind: ClassVar[MessageKind] = MessageKind.REBALANCE_RECOMMENDATION


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityReservationInterruption(Message):
    """Warning that EC2 reclaims the reserved capacity of an instance at the deadline."""

    kind: ClassVar[MessageKind] = MessageKind.CAPACITY_RESERVATION

    deadline: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityBlockExpiration(Message):
    """Warning that a Capacity Block ends. It names the reservation; which instances are in it is read from EC2 before
    the decision. `deadline`: when EC2 begins to terminate them, as far as their types are not known. `unread`: the end
    as the warning says it, where it could not be parsed: `block` then ends when the warning implies it. `listed` False:
    EC2 was asked, and lists no such active block.
    """

    kind: ClassVar[MessageKind] = MessageKind.CAPACITY_BLOCK

    block: CapacityBlock
    deadline: datetime | None
    unread: str = ""
    listed: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduledChange(Message):
    """AWS Health event about a change of instances or their hosts. `deadline`: when the change begins; `reboots`: EC2
    boots the instances again.
    """

    kind: ClassVar[MessageKind] = MessageKind.SCHEDULED_CHANGE

    deadline: datetime | None
    reboots: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StateChange(Message):
    """EC2's report that an instance is stopping, stopped, shutting down or terminated."""

    kind: ClassVar[MessageKind] = MessageKind.STATE_CHANGE

    state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LifecycleTermination(Message):
    """Lifecycle action of an instance that leaves its group."""

    kind: ClassVar[MessageKind] = MessageKind.ASG_TERMINATE

    hook: HookAction


@dataclass(frozen=True, slots=True, kw_only=True)
class RootVolumeReplacement(Message):
    """Lifecycle action of a terminate hook for an instance that stays: an instance refresh replaces its root volume."""

    kind: ClassVar[MessageKind] = MessageKind.REPLACE_ROOT_VOLUME

    hook: HookAction


@dataclass(frozen=True, slots=True, kw_only=True)
class LifecycleLaunch(Message):
    """Lifecycle action of an instance that joins its group."""

    kind: ClassVar[MessageKind] = MessageKind.ASG_LAUNCH

    hook: HookAction


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionEnded(Message):
    """Step Functions' report that an execution of node-termination has failed, timed out or was aborted."""

    kind: ClassVar[MessageKind] = MessageKind.EXECUTION_ENDED

    execution: str
    status: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ZonalShiftNotice(Message):
    """ARC's notice that a zonal shift has begun, changed or ended. `zone_id`: the zone that traffic is shifted away
    from, empty if the event does not name it; `resources`: what the event is about, as far as it says.
    """

    kind: ClassVar[MessageKind] = MessageKind.ZONAL_SHIFT

    zone_id: str
    shift: ShiftKind
    began: bool
    resources: tuple[str, ...] = ()

    def concerns(self, cluster: str) -> bool:
        """Return whether it may be about the cluster: it names no resource by its ARN, or this cluster."""
        arns = [name for name in self.resources if name.startswith("arn:")]
        return not arns or any(arn.endswith(f":cluster/{cluster}") for arn in arns)


@dataclass(frozen=True, slots=True, kw_only=True)
class NoOp(Message):
    """Message without effect, with the reason."""

    kind: ClassVar[MessageKind] = MessageKind.NOOP

    reason: str


LifecycleAction = LifecycleTermination | RootVolumeReplacement | LifecycleLaunch
Warned = (  # messages with a deadline of their own
    SpotInterruption | CapacityReservationInterruption | CapacityBlockExpiration | ScheduledChange
)
NodeMessage = Warned | RebalanceRecommendation | StateChange | LifecycleAction  # messages about nodes
InterruptionMessage = NodeMessage | ZonalShiftNotice | ExecutionEnded | NoOp


def hook_of(message: InterruptionMessage) -> HookAction | None:
    """Return the lifecycle action that waits for an answer, None for any other message."""
    return message.hook if isinstance(message, LifecycleAction) else None


def deadline_of(message: InterruptionMessage) -> datetime | None:
    """Return when EC2 takes the instance or begins its change; None if the message names no such time."""
    return message.deadline if isinstance(message, Warned) else None
