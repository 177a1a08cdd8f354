"""Refusals of LaunchInstances to serve a group. An unknown operation, a missing permission and a group that the API
does not support are one case: the desired size brings the new instance, and the operator learns cause and fix.

Refusals to let a group use a launch template for want of a right: there is no other way, and the upgrade ends."""

import re
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


_NAMED = re.compile(r"not authorized to perform: (?P<action>[\w-]+:\w+)(?: on resource: (?P<resource>\S+))?")
_NOT_NAMED = "ec2:RunInstances or ec2:CreateFleet on it, or iam:PassRole for its role (AWS does not say which)"
_FORBIDDEN = ("explicit deny", "service control policy", "resource control policy", "permissions boundary")


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


def is_denial(reason: str) -> bool:
    """Return whether AWS's words say that a permission is missing, whatever the code: Auto Scaling also quotes the
    denial of its dry run in a ValidationError.
    """
    return cause_in(reason) is RefusalCause.DENIED or "not authorized" in reason


def template_denied(group: str, template: str, cluster: str, reason: str) -> str:
    """Return the sentence for a group that may not use a launch template: the missing right as far as AWS names it, the
    fix, and AWS's own words. Auto Scaling tries the launch with the caller's rights before it takes the template.
    """
    named = _NAMED.search(reason)
    right = " on ".join(word for word in named.groups() if word) if named else _NOT_NAMED
    fix = _fix_for_right(named["action"] if named else "", cluster, reason)
    return (
        f"Auto Scaling does not let {group} use launch template {template}: the function lacks {right}; {fix}, and "
        f"start the upgrade again (docs/deploy.md, Tag your launch templates); {reason}"
    )


def _fix_for_right(action: str, cluster: str, reason: str) -> str:
    tag = f"kubernetes.io/cluster/{cluster}: owned"
    if any(words in reason for words in _FORBIDDEN):
        return "let the policy that AWS names allow it"
    match action.partition(":"):
        case ("iam", _, _):
            return "name the role in the setting nodeRoles, deploy again"
        case ("ssm", _, _):
            return "name the parameter of the image in the setting imageParameters, deploy again"
        case ("autoscaling", _, _):
            return f"tag the group {tag}"
        case _:
            return f"tag the template {tag}, name the role of its nodes in the setting nodeRoles, deploy again"
