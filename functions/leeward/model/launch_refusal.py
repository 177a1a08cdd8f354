"""Refusals of LaunchInstances to serve a group. An unknown operation, a missing permission and a group that the API
does not support are one case: the desired size brings the new instance, and the operator learns cause and fix."""

from enum import StrEnum

EVENT = "LaunchRefused"  # reason of the Event that carries the notice


class RefusalCause(StrEnum):
    """Causes for which LaunchInstances did not serve a group."""

    UNKNOWN = "the operation is not known"
    DENIED = "the permission is denied"
    REFUSED = "Auto Scaling refuses it for this group"


_CODES = {
    RefusalCause.UNKNOWN: ("InvalidAction", "UnknownOperation", "UnknownAction"),
    RefusalCause.DENIED: ("AccessDenied", "NotAuthorized", "OptInRequired", "UnauthorizedOperation"),
}
_FIXES = {
    RefusalCause.UNKNOWN: (
        "deploy again, the asset holds the operation's model (AWS_DATA_PATH); "
        "in a Region that does not offer LaunchInstances nothing is to be done"
    ),
    RefusalCause.DENIED: (
        "tag the group's launch template like the group (kubernetes.io/cluster/NAME: owned), name its role in the "
        "setting nodeRoles and deploy again; then look at permissions boundaries and service control policies"
    ),
    RefusalCause.REFUSED: (
        "give the group a launch template, no warm pool, and a mixed instances policy only when it is all On-Demand or "
        "all Spot"
    ),
}


def cause_in(reason: str) -> RefusalCause:
    """Return the cause by the error code that a refusal begins with or quotes."""
    for cause, codes in _CODES.items():
        if any(code in reason for code in codes):
            return cause
    return RefusalCause.REFUSED


def fix_for(cause: RefusalCause) -> str:
    """Return the operator's fix."""
    return _FIXES[cause]


def sentence(group: str, reason: str, instead: str) -> str:
    """Return the notice: group, cause, what happens instead, the fix, and AWS's own words."""
    cause = cause_in(reason)
    return f"LaunchInstances does not serve {group}, {cause.value}: {instead}; {fix_for(cause)} ({reason})"
