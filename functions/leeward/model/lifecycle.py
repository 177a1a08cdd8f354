"""Lifecycle states of the instances of an Auto Scaling group, and the role of each: the only place that reads them.

Source: LifecycleState of the Auto Scaling API. The set is open: AWS adds states. A state that is not in the table has
the role UNKNOWN: its instance is no candidate for anything, Leeward never requests its end, and a terminate hook that
holds it is answered after a drain, as for a root volume that the group replaces."""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import assert_never

IN_SERVICE = "InService"
STANDBY = "Standby"
TERMINATING = "Terminating"
TERMINATE_WAIT = "Terminating:Wait"
TERMINATE_PROCEED = "Terminating:Proceed"
RETAINED = "Terminating:Retained"  # its terminate hook was abandoned: it runs on until a request ends it
LAUNCH_WAIT = "Pending:Wait"
REPLACE_WAIT = "ReplacingRootVolume:Wait"  # a terminate hook holds it; then it is rebooted with another root volume
ROOT_IN_WORK = ("ReplacingRootVolume:Proceed", "RootVolumeReplaced")  # after that: every hook has been answered
POOLED_AND_RUNNING = "Warmed:Running"


class LifecycleRole(StrEnum):
    """Roles of a lifecycle state."""

    LAUNCHING = "launching"
    IN_SERVICE = "in service"
    REPLACING_ROOT = "replacing its root volume"  # the same instance returns to service
    STANDBY = "out of service, by its owner"
    LEAVING = "leaving"  # the group ends it
    RETAINED = "retained"
    ENDED = "ended"
    DETACHING = "detaching"
    POOLED = "in the warm pool"
    LEAVING_POOL = "leaving the warm pool"
    UNKNOWN = "unknown"


_ROLES: Mapping[str, LifecycleRole] = MappingProxyType(
    {
        "Pending": LifecycleRole.LAUNCHING,
        LAUNCH_WAIT: LifecycleRole.LAUNCHING,
        "Pending:Proceed": LifecycleRole.LAUNCHING,
        IN_SERVICE: LifecycleRole.IN_SERVICE,
        "ReplacingRootVolume": LifecycleRole.REPLACING_ROOT,
        REPLACE_WAIT: LifecycleRole.REPLACING_ROOT,
        "ReplacingRootVolume:Proceed": LifecycleRole.REPLACING_ROOT,
        "RootVolumeReplaced": LifecycleRole.REPLACING_ROOT,
        "EnteringStandby": LifecycleRole.STANDBY,
        STANDBY: LifecycleRole.STANDBY,
        "Quarantined": LifecycleRole.STANDBY,  # AWS: "not used"
        TERMINATING: LifecycleRole.LEAVING,
        TERMINATE_WAIT: LifecycleRole.LEAVING,
        TERMINATE_PROCEED: LifecycleRole.LEAVING,
        RETAINED: LifecycleRole.RETAINED,
        "Terminated": LifecycleRole.ENDED,
        "Detaching": LifecycleRole.DETACHING,
        "Detached": LifecycleRole.DETACHING,
        "Warmed:Pending": LifecycleRole.POOLED,
        "Warmed:Pending:Wait": LifecycleRole.POOLED,
        "Warmed:Pending:Proceed": LifecycleRole.POOLED,
        "Warmed:Pending:Retained": LifecycleRole.POOLED,
        "Warmed:Stopped": LifecycleRole.POOLED,
        "Warmed:Hibernated": LifecycleRole.POOLED,
        POOLED_AND_RUNNING: LifecycleRole.POOLED,
        "Warmed:Terminating": LifecycleRole.LEAVING_POOL,
        "Warmed:Terminating:Wait": LifecycleRole.LEAVING_POOL,
        "Warmed:Terminating:Proceed": LifecycleRole.LEAVING_POOL,
        "Warmed:Terminating:Retained": LifecycleRole.LEAVING_POOL,
        "Warmed:Terminated": LifecycleRole.LEAVING_POOL,
    }
)
_WAITS = ":Wait"  # suffix of a state in which lifecycle hooks hold the instance
ENDING = frozenset({LifecycleRole.LEAVING, LifecycleRole.RETAINED})  # the group has begun to end it
OVER = ENDING | {LifecycleRole.ENDED, LifecycleRole.LEAVING_POOL}
IN_POOL = frozenset({LifecycleRole.POOLED, LifecycleRole.LEAVING_POOL})
IN_WORK = frozenset({LifecycleRole.REPLACING_ROOT, LifecycleRole.UNKNOWN})  # of the group, which keeps the instance
PRESENT = frozenset({LifecycleRole.LAUNCHING, LifecycleRole.IN_SERVICE})
STAYING = PRESENT | IN_WORK  # counts towards the desired size


def known_states() -> frozenset[str]:
    """Return the states of the table."""
    return frozenset(_ROLES)


def role_of(lifecycle: str | None) -> LifecycleRole | None:
    """Return the role of a state, None for an instance that the group does not list."""
    return None if lifecycle is None else _ROLES.get(lifecycle, LifecycleRole.UNKNOWN)


def is_held(lifecycle: str | None) -> bool:
    """Return whether terminate hooks hold the instance, until they are answered."""
    held = ENDING | IN_WORK
    return lifecycle is not None and role_of(lifecycle) in held and lifecycle.endswith(_WAITS)


def is_held_at_launch(lifecycle: str | None) -> bool:
    """Return whether launch hooks hold the instance, until they are answered."""
    return lifecycle == LAUNCH_WAIT


def may_be_ended(lifecycle: str, *, anyway: bool) -> bool:
    """Return whether a request to terminate may be sent for an instance in this state. If it is leaving already a
    second request might decrement twice; a retained one, one of the warm pool, or one that the group works on ends only
    `anyway`.
    """
    role = _ROLES.get(lifecycle, LifecycleRole.UNKNOWN)
    match role:
        case LifecycleRole.LAUNCHING | LifecycleRole.IN_SERVICE | LifecycleRole.STANDBY:
            return True
        case LifecycleRole.RETAINED | LifecycleRole.POOLED | LifecycleRole.REPLACING_ROOT:
            return anyway
        case LifecycleRole.LEAVING | LifecycleRole.ENDED | LifecycleRole.DETACHING | LifecycleRole.LEAVING_POOL:
            return False
        case LifecycleRole.UNKNOWN:
            return False
        case _:
            assert_never(role)
