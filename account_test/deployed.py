"""Check that the deployment is complete: the stack complete, its functions called once, the cluster granting them
access.
"""

from account_test.context import Context
from account_test.deployment import call
from account_test.errors import StepError
from account_test.judge import Finding
from account_test.results import Result

FUNCTIONS = ("sync", "reconciler")  # functions that a schedule calls, and that access the cluster


def check(context: Context, name: str, proves: str) -> Result:
    """Check the stack's status and an answer of each function that calls the cluster."""
    stack = context.run.names.stack
    status = context.aws("cloudformation").describe_stacks(StackName=stack)["Stacks"][0]["StackStatus"]
    findings = [Finding(promise=f"stack {stack} is complete", kept=status == "CREATE_COMPLETE", found=status)]
    findings += [_called(context, function) for function in FUNCTIONS]
    return Result(name=name, proves=proves, findings=findings)


def _called(context: Context, function: str) -> Finding:
    promise = f"{context.run.names.function(function)} runs and enters the cluster"
    try:
        answer = call(context, function)
    except StepError as error:
        return Finding(promise=promise, kept=False, found=str(error))
    wrong = [*answer.get("errors", ()), *answer.get("warnings", ())]
    mine = [one for one in wrong if "nodes" in one or context.run.deployment in one]
    return Finding(promise=promise, kept=not mine, found="; ".join(mine) or "no errors")
