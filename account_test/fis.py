"""Spot interruption by AWS Fault Injection Service: the rebalance recommendation, the warning, and two minutes later
the termination (FIS user guide, "aws:ec2:send-spot-instance-interruptions")."""

import json
import time
from typing import Any

from botocore.exceptions import ClientError

from account_test.aws import code, served
from account_test.context import Context
from account_test.errors import NotServedError, StepError
from account_test.foundation import trust_of
from account_test.run import TAG

ACTION = "aws:ec2:send-spot-instance-interruptions"
DENIED = {"AccessDeniedException", "AccessDenied", "UnauthorizedOperation"}
ROLE_SECONDS = 60  # until FIS can assume a role that has just been made


def interrupt(context: Context, instance: str) -> None:
    """Interrupt a spot instance. Raises NotServedError where there is no FIS, StepError where it refuses."""
    run = context.run
    role = _role(context)
    context.journal.making("experiment-template", run.id, tag=TAG)
    template = _template(context, role, run.arn("ec2", f"instance/{instance}"))
    experiment = context.aws("fis").start_experiment(experimentTemplateId=template, tags=run.tags)["experiment"]
    time.sleep(run.look)
    state = context.aws("fis").get_experiment(id=experiment["id"])["experiment"]["state"]
    if state["status"] == "failed":
        raise StepError(f"AWS FIS: {state.get('reason', 'the experiment failed')}")


def _role(context: Context) -> str:
    iam, name = context.aws("iam"), context.run.name("fis")
    context.journal.making("role", name)
    tags = [{"Key": key, "Value": value} for key, value in context.run.tags.items()]
    made = iam.create_role(RoleName=name, AssumeRolePolicyDocument=trust_of("fis.amazonaws.com"), Tags=tags)
    statement = {
        "Effect": "Allow",
        "Action": "ec2:SendSpotInstanceInterruptions",
        "Resource": context.run.arn("ec2", "instance/*"),
        "Condition": {"StringEquals": {f"aws:ResourceTag/{TAG}": context.run.id}},
    }
    look = {"Effect": "Allow", "Action": "ec2:DescribeInstances", "Resource": "*"}
    document = json.dumps({"Version": "2012-10-17", "Statement": [statement, look]})
    iam.put_role_policy(RoleName=name, PolicyName="interrupt", PolicyDocument=document)
    return str(made["Role"]["Arn"])


def _template(context: Context, role: str, instance: str) -> str:
    """Create the experiment template, with retries: IAM is eventually consistent, so FIS refuses a new role for a
    while.
    """
    deadline = time.monotonic() + ROLE_SECONDS
    asked: dict[str, Any] = {
        "clientToken": context.run.id,
        "description": f"one spot instance of {TAG}={context.run.id}",
        "roleArn": role,
        "stopConditions": [{"source": "none"}],
        "targets": {
            "one": {"resourceType": "aws:ec2:spot-instance", "resourceArns": [instance], "selectionMode": "ALL"}
        },
        "actions": {
            "interrupt": {
                "actionId": ACTION,
                "parameters": {"durationBeforeInterruption": "PT2M"},
                "targets": {"SpotInstances": "one"},
            }
        },
        "tags": context.run.tags,
    }
    while True:
        try:
            with served("fis:CreateExperimentTemplate"):
                return str(context.aws("fis").create_experiment_template(**asked)["experimentTemplate"]["id"])
        except ClientError as error:
            if code(error) in DENIED:
                raise NotServedError(f"AWS FIS may not be used here: {error}") from error
            if time.monotonic() > deadline:
                raise StepError(f"AWS FIS refuses the experiment: {error}") from error
            time.sleep(5)
