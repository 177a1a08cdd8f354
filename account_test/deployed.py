"""Check that the deployment is complete: the stack complete, its functions called once, the cluster granting them
access.
"""

import time
from collections.abc import Collection, Iterator

from account_test.cloudformation import status_of
from account_test.context import Context
from account_test.deployment import call
from account_test.errors import StepError
from account_test.judge import Finding, unproven
from account_test.results import Difference
from account_test.run import Extra
from infra.member_permissions import member_permissions
from infra.permissions import PERMISSIONS
from leeward.adapters.account_check import CHECK

FUNCTIONS = ("sync", "reconciler")  # functions that a schedule calls, and that access the cluster
ENTRY_SECONDS = 120.0  # seconds that EKS may take until a new access entry is in force
QUICK_SECONDS = 5.0
DELIVERS = "EventBridge delivers into the encrypted queue"
ENTERS = "access entry in force"


def findings_of(context: Context, extras: Collection[Extra]) -> tuple[list[Finding], list[Difference]]:
    """Return what a deployment with these extras shows: the stack's status, an answer of each function that calls the
    cluster, and what the extra itself promises.
    """
    stack = context.run.names.stack
    status = status_of(context.aws, stack)
    findings = [Finding(promise=f"stack {stack} is complete", kept=status == "CREATE_COMPLETE", found=status)]
    entering = Extra.MEMBER not in extras and (Extra.VPC in extras or not context.run.behind)
    differences: list[Difference] = []
    if entering:
        entered, differences = _entered(context)
        findings += entered
    if Extra.KMS_KEY in extras and not context.run.endpoint:
        findings.append(unproven(DELIVERS, "no event happens in this step: a spot interruption shows it"))
    if Extra.WEBHOOK in extras:
        findings.append(_authorized(context))
    if Extra.MEMBER in extras:
        findings += _assumed(context)
    return findings, differences


def _entered(context: Context) -> tuple[list[Finding], list[Difference]]:
    """Call each function until the cluster lets it in: an access entry takes some seconds until it is in force."""
    began = time.monotonic()
    findings = [_called(context, function) for function in FUNCTIONS]
    while not all(one.kept for one in findings) and time.monotonic() - began < ENTRY_SECONDS:
        time.sleep(context.run.look)
        findings = [_called(context, function) for function in FUNCTIONS]
    took = time.monotonic() - began
    same = took < QUICK_SECONDS
    measured = f"{took:.0f} s after the deployment, calls included"
    return findings, [Difference(about=ENTERS, model="at once", measured=measured, same=same)]


def _called(context: Context, function: str) -> Finding:
    promise = f"{context.run.names.function(function)} runs and enters the cluster"
    try:
        answer = call(context, function)
    except StepError as error:
        return Finding(promise=promise, kept=False, found=str(error))
    wrong = [*answer.get("errors", ()), *answer.get("warnings", ())]
    mine = [one for one in wrong if "nodes" in one or context.run.deployment in one]
    return Finding(promise=promise, kept=not mine, found="; ".join(mine) or "no errors")


def _authorized(context: Context) -> Finding:
    """Check that EventBridge took the secret: the connection of the webhook is authorized."""
    name = context.run.names.webhook(context.run.cluster)
    state = str(context.aws("events").describe_connection(Name=name).get("ConnectionState"))
    return Finding(promise="the webhook's connection has its secret", kept=state == "AUTHORIZED", found=state)


def _assumed(context: Context) -> Iterator[Finding]:
    """Check that each function that acts in other accounts can assume its role in the member account."""
    cluster = f"{context.run.deployment}-member"
    for function in PERMISSIONS:
        if not member_permissions(function):
            continue  # it acts at home alone
        promise = f"{context.run.names.function(function)} assumes its role in the member account"
        try:
            answer = call(context, function, CHECK).get("accounts") or {}
        except StepError as error:
            yield Finding(promise=promise, kept=False, found=str(error))
            continue
        refused = answer.get(cluster, f"it does not serve {cluster}")
        yield Finding(promise=promise, kept=not refused, found=refused or "EC2 of that account answers")
