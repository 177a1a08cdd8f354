"""Stacks of CloudFormation: their state, and the resource that failed with its reason and the fix."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from account_test.aws import Aws, is_gone

GONE = ""
_STACK = "AWS::CloudFormation::Stack"
_CANCELLED = re.compile(r"cancell?ed", re.IGNORECASE)
_OURS = "a right was not in force when AWS checked it: this is a defect of Leeward, report this line; then deploy again"
# Reasons that CloudFormation gives, the fix, and whether the cause passes by itself. The first that matches counts.
_FIXES: tuple[tuple[str, str, bool], ...] = (
    (
        r"QueueDeletedRecently|wait 60 seconds",
        "SQS keeps a deleted queue's name for 60 s: deploy again then",
        True,
    ),
    (
        r"StateMachineDeleting|being deleted|[Cc]onflicting (?:conditional )?operation|currently in progress",
        "AWS still deletes the resource of that name: deploy again in some minutes",
        True,
    ),
    (r"Throttl|Rate exceeded|ServiceUnavailable|InternalFailure", "AWS was busy: deploy again", True),
    (
        r"log-group.*already exists|LogGroup.*already exists|specified log group already exists",
        "a last call of a function has made it again: aws logs delete-log-group --log-group-name NAME",
        False,
    ),
    (
        r"[Aa]lready ?[Ee]xists",
        "it is left from an earlier deployment or belongs to another stack: delete it, or deploy under another name",
        False,
    ),
    (
        r"not authorized to access the Log Destination|CreateNetworkInterface on EC2|Cannot access stream",
        _OURS,
        False,
    ),
    (
        r"DeleteConflict|must detach|must remove|has dependencies|dependent object|DependencyViolation",
        "something that is not of the stack uses it: detach or delete that, then delete the stack again",
        False,
    ),
    (
        r"UnreservedConcurrentExecution",
        "the account has too few concurrent executions: quota L-B99A9384 of Lambda, or concurrency 0 in the settings",
        False,
    ),
    (
        r"[Nn]etwork interface.*limit|ENILimit|LimitExceeded|[Qq]uota",
        "raise the quota that it names, or delete what is unused",
        False,
    ),
    (
        r"KMS|kms:",
        "the key's policy must let Leeward's names use it, see `A KMS key of your own` in docs/deploy.md; the names of "
        "this test begin with test-",
        False,
    ),
    (
        r"[Ss]ecrets ?[Mm]anager",
        "check the secret's ARN and Region, and that CloudFormation's execution role may read it",
        False,
    ),
    (
        r"not authorized to perform|AccessDenied|Access Denied|UnauthorizedOperation",
        "the execution role of the CDK's bootstrap lacks the right, or a service control policy denies it",
        False,
    ),
    (r"[Ss]ubnet|[Ss]ecurity ?[Gg]roup|InvalidGroup", "check SUBNETS= and SECURITY_GROUPS=: one VPC, existing", False),
)
_OTHERWISE = "aws cloudformation describe-stack-events --stack-name {stack} has all events"


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """First resource of a stack that could not be made or deleted, with CloudFormation's reason."""

    stack: str
    kind: str
    name: str
    status: str
    reason: str

    @property
    def fix(self) -> str:
        """Fix by the reason."""
        known = self._known()
        return known[0] if known else _OTHERWISE.format(stack=self.stack)

    @property
    def passes(self) -> bool:
        """Whether the same deployment succeeds later without a change."""
        known = self._known()
        return known is not None and known[1]

    @property
    def sentence(self) -> str:
        """Sentence with resource, reason and fix."""
        reason = " ".join(self.reason.split()).rstrip(".")
        return f"stack {self.stack}: {self.kind} {self.name} is {self.status}: {reason}. Fix: {self.fix}"

    def _known(self) -> tuple[str, bool] | None:
        text = f"{self.kind} {self.reason}"
        return next(((fix, passes) for pattern, fix, passes in _FIXES if re.search(pattern, text)), None)


def status_of(aws: Aws, stack: str) -> str:
    """Return the stack's status, GONE where there is none."""
    try:
        found = aws("cloudformation").describe_stacks(StackName=stack)["Stacks"]
    except ClientError as error:
        if is_gone(error):
            return GONE
        raise
    status = str(found[0]["StackStatus"]) if found else GONE
    return GONE if status == "DELETE_COMPLETE" else status


def failure_of(aws: Aws, stack: str) -> Failure | None:
    """Return the first failure of the stack's last operation, None where it has none or the stack does not exist."""
    try:
        failed = [event for event in _last_operation(aws, stack) if _is_failure(event)]
    except ClientError as error:
        if is_gone(error):
            return None
        raise
    if not failed:
        return None
    first = failed[-1]  # the events come newest first
    name, physical = str(first["LogicalResourceId"]), str(first.get("PhysicalResourceId") or "")
    return Failure(
        stack=stack,
        kind=str(first["ResourceType"]),
        name=f"{name} ({physical})" if physical and physical != name else name,
        status=str(first["ResourceStatus"]),
        reason=str(first.get("ResourceStatusReason") or "no reason given"),
    )


def _last_operation(aws: Aws, stack: str) -> Iterator[Mapping[str, Any]]:
    """Return the events since the last change of the stack began, the newest first."""
    for page in aws("cloudformation").get_paginator("describe_stack_events").paginate(StackName=stack):
        for event in page["StackEvents"]:
            yield event
            begins = event["ResourceStatus"] in {"CREATE_IN_PROGRESS", "UPDATE_IN_PROGRESS", "DELETE_IN_PROGRESS"}
            if event["ResourceType"] == _STACK and begins:
                return


def _is_failure(event: Mapping[str, Any]) -> bool:
    cancelled = _CANCELLED.search(str(event.get("ResourceStatusReason") or ""))
    return event["ResourceStatus"].endswith("_FAILED") and event["ResourceType"] != _STACK and not cancelled
