"""Suppressed cdk-nag findings, each with its reason; any other finding fails the synth.

The reasons for wildcards in roles are not repeated here: they are those of `permissions.py`, and the worst that a
change on one of them allows is in `risks.py`. Reads of a wildcard share an acknowledgement; a change has another one,
because it stands in another policy (`role.py`).
"""

from collections.abc import Iterable, Iterator
from typing import Any

from aws_cdk import Acknowledgment, App, Validations
from aws_cdk import aws_sqs as sqs
from cdk_nag import AwsSolutionsChecks

from infra.function import LeewardFunction
from infra.permission import Permission
from infra.risks import RISKS
from infra.role import PolicyPart
from infra.scopes import Scopes
from infra.state_machine import Machine

_RUNTIME = (
    "python3.13 is supported until 2029 and is what the asset's packages are chosen for; "
    "the step to the next runtime is taken with a release of Leeward, after its tests"
)
_ERRORS_ONLY = (
    "Step Functions keeps the whole history of a standard execution for 90 days; logging every event again would cost "
    "as much as a sixth of the node's replacement"
)
_LAST_STOP = "it is itself where an event source mapping and rules put what they could not deliver"


def accept(
    app: App,
    scopes: Scopes,
    *,
    functions: Iterable[LeewardFunction],
    state_machines: Iterable[Machine],
    dead_letters: Iterable[sqs.Queue],
) -> None:
    """Apply AWS's solution rules to the app and acknowledge exactly what is listed here."""
    Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    for each in functions:
        Validations.of(each.function).acknowledge(Acknowledgment(id=_finding("L1"), reason=_RUNTIME))
        accept_wildcards(each.policies, scopes, each.shape.name)
    for machine in state_machines:
        Validations.of(machine.state_machine).acknowledge(Acknowledgment(id=_finding("SF1"), reason=_ERRORS_ONLY))
        accept_wildcards(machine.policies, scopes, "")
    for queue in dead_letters:
        accept_as_last_stop(queue)


def accept_as_last_stop(queue: sqs.Queue) -> None:
    """Acknowledge that a dead-letter queue has none of its own."""
    Validations.of(queue).acknowledge(Acknowledgment(id=_finding("SQS3"), reason=_LAST_STOP))


def accept_wildcards(policies: Iterable[PolicyPart], scopes: Scopes, function: str) -> None:
    """Acknowledge the wildcards of each policy. What changes something says the worst that it allows."""
    for part in policies:
        reasons: dict[str, list[str]] = {}
        for permission in part.permissions:
            for resource in scopes.resources(permission.on, function):
                if "*" in resource:
                    written = reasons.setdefault(_flat(scopes.resolved(resource)), [])
                    written.append(_reason(permission))
        for resource, written in reasons.items():
            Validations.of(part.owner).acknowledge(
                Acknowledgment(id=_finding(f"IAM5[Resource::{resource}]"), reason="; ".join(dict.fromkeys(written)))
            )


def _reason(permission: Permission) -> str:
    reason = f"{permission.action}: {permission.reason}"
    return reason if permission.reads else f"{reason} (at worst, with foreign code, it {RISKS[permission.action]})"


def _finding(name: str) -> str:
    return f"AwsSolutions::AwsSolutions-{name}"


def _flat(resolved: Any) -> str:
    """Return an ARN as cdk-nag writes it: a reference in angle brackets where CloudFormation fills in a value."""
    return "".join(_parts(resolved))


def _parts(resolved: Any) -> Iterator[str]:
    match resolved:
        case str():
            yield resolved
        case {"Ref": name}:
            yield f"<{name}>"
        case {"Fn::Join": [separator, parts]}:
            yield separator.join(_flat(part) for part in parts)
        case _:
            raise TypeError(f"an ARN made of {resolved!r}")
