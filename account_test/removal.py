"""Removal of the resources of a journal, the last made first. A missing resource counts as removed.

A resource that cannot be removed stays in the journal and is listed with the command that removes it.
"""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from types import FrameType
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError, WaiterError

from account_test.aws import Aws, gone_is_fine
from account_test.errors import AccountTestError
from account_test.journal import Journal, Made
from account_test.kubernetes import Kube
from account_test.stack_removal import Say, remove_interfaces, remove_late_logs, remove_stack
from leeward.errors import LeewardError

GONE_SECONDS = 600  # seconds that a group may take to end its instances
PROCESS_SECONDS = 60


class RemovalInterruptedError(AccountTestError):
    """Interruption by a second Ctrl-C during the removal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """Resource that could not be removed, the reason, and the command for it."""

    made: Made
    reason: str
    command: str


@dataclass(kw_only=True)
class Remover:
    """Remover of resources. `kube` None: the cluster cannot be reached; resources in it are listed. `say` prints the
    progress of a removal that takes minutes.
    """

    aws: Aws
    kube: Kube | None
    pause: float = 5.0
    say: Say = field(default=lambda _: None)

    def remove(self, made: Made) -> None:
        """Remove a resource. Raises any error of AWS or the cluster but `not found`."""
        _KINDS[made.kind](self, made)

    def command(self, made: Made) -> str:
        """Return the command that a person types."""
        template = _COMMANDS[made.kind]
        text = template.format(name=made.name, **made.more)
        role = f"   # with credentials of {made.more['role']}" if made.more.get("role") else ""
        return f"{text} {self.aws.arguments()}{role}" if text.startswith("aws ") else text

    def _stack(self, made: Made) -> None:
        aws = self.aws.assumed(made.more["role"]) if made.more.get("role") else self.aws
        remove_stack(aws, made.name, pause=self.pause, say=self.say)
        if made.more.get("logs"):
            remove_late_logs(aws, made.more["logs"], self.pause)
        if made.more.get("subnets"):
            subnets = made.more["subnets"].split(",")
            remove_interfaces(aws, made.more["functions"], subnets, pause=self.pause, say=self.say)

    def _group(self, made: Made) -> None:
        client = self.aws("autoscaling")
        gone_is_fine(lambda: client.delete_auto_scaling_group(AutoScalingGroupName=made.name, ForceDelete=True))
        deadline = time.monotonic() + GONE_SECONDS
        while client.describe_auto_scaling_groups(AutoScalingGroupNames=[made.name])["AutoScalingGroups"]:
            if time.monotonic() > deadline:
                raise AccountTestError(f"it still ends its instances after {GONE_SECONDS} s")
            time.sleep(self.pause)

    def _node_group(self, made: Made) -> None:
        client, names = self.aws("eks"), {"clusterName": made.more["cluster"], "nodegroupName": made.name}
        gone_is_fine(lambda: client.delete_nodegroup(**names))
        client.get_waiter("nodegroup_deleted").wait(**names)

    def _template(self, made: Made) -> None:
        gone_is_fine(lambda: self.aws("ec2").delete_launch_template(LaunchTemplateName=made.name))

    def _role(self, made: Made) -> None:
        client = self.aws("iam")

        def strip() -> None:
            for policy in client.list_attached_role_policies(RoleName=made.name)["AttachedPolicies"]:
                client.detach_role_policy(RoleName=made.name, PolicyArn=policy["PolicyArn"])
            for policy in client.list_role_policies(RoleName=made.name)["PolicyNames"]:
                client.delete_role_policy(RoleName=made.name, PolicyName=policy)
            client.delete_role(RoleName=made.name)

        gone_is_fine(strip)

    def _profile(self, made: Made) -> None:
        client = self.aws("iam")

        def strip() -> None:
            for role in client.get_instance_profile(InstanceProfileName=made.name)["InstanceProfile"]["Roles"]:
                client.remove_role_from_instance_profile(InstanceProfileName=made.name, RoleName=role["RoleName"])
            client.delete_instance_profile(InstanceProfileName=made.name)

        gone_is_fine(strip)

    def _entry(self, made: Made) -> None:
        names = {"clusterName": made.more["cluster"], "principalArn": made.name}
        gone_is_fine(lambda: self.aws("eks").delete_access_entry(**names))

    def _queue(self, made: Made) -> None:
        client = self.aws("sqs")
        gone_is_fine(lambda: client.delete_queue(QueueUrl=client.get_queue_url(QueueName=made.name)["QueueUrl"]))

    def _rule(self, made: Made) -> None:
        client = self.aws("events")
        gone_is_fine(lambda: client.remove_targets(Rule=made.name, Ids=["tap"]))
        gone_is_fine(lambda: client.delete_rule(Name=made.name))

    def _function(self, made: Made) -> None:
        gone_is_fine(lambda: self.aws("lambda").delete_function(FunctionName=made.name))

    def _log_group(self, made: Made) -> None:
        gone_is_fine(lambda: self.aws("logs").delete_log_group(logGroupName=made.name))

    def _experiment(self, made: Made) -> None:
        """Remove the experiment template by the tag of the run: its id is known only after its creation."""
        client, tag = self.aws("fis"), made.more["tag"]
        for page in client.get_paginator("list_experiment_templates").paginate():
            for one in page["experimentTemplates"]:
                if (one.get("tags") or {}).get(tag) == made.name:
                    gone_is_fine(partial(client.delete_experiment_template, id=one["id"]))

    def _process(self, made: Made) -> None:
        """Terminate a `cdk deploy` that still runs: it would recreate the stack. The command line is compared, because
        the process id may be another process's by now.
        """
        deadline = time.monotonic() + PROCESS_SECONDS
        asked = ["ps", "-o", "command=", "-p", made.name]
        while made.more["words"] in subprocess.run(asked, capture_output=True, text=True, check=False).stdout:
            if time.monotonic() > deadline:
                raise AccountTestError("it does not end")
            with suppress(ProcessLookupError):
                os.kill(int(made.name), signal.SIGTERM)
            time.sleep(1)

    def _object(self, made: Made) -> None:
        if self.kube is None:
            raise AccountTestError("the cluster cannot be reached")
        self.kube.delete(made.more["object"], made.name, made.more.get("namespace", ""))


_KINDS: Mapping[str, Callable[[Remover, Made], None]] = {
    "stack": Remover._stack,
    "auto-scaling-group": Remover._group,
    "node-group": Remover._node_group,
    "launch-template": Remover._template,
    "role": Remover._role,
    "instance-profile": Remover._profile,
    "access-entry": Remover._entry,
    "queue": Remover._queue,
    "rule": Remover._rule,
    "function": Remover._function,
    "log-group": Remover._log_group,
    "experiment-template": Remover._experiment,
    "process": Remover._process,
    "kubernetes": Remover._object,
}
_COMMANDS: Mapping[str, str] = {
    "stack": "aws cloudformation delete-stack --stack-name {name}",
    "auto-scaling-group": "aws autoscaling delete-auto-scaling-group --force-delete --auto-scaling-group-name {name}",
    "node-group": "aws eks delete-nodegroup --cluster-name {cluster} --nodegroup-name {name}",
    "launch-template": "aws ec2 delete-launch-template --launch-template-name {name}",
    "role": "aws iam delete-role --role-name {name}",
    "instance-profile": "aws iam delete-instance-profile --instance-profile-name {name}",
    "access-entry": "aws eks delete-access-entry --cluster-name {cluster} --principal-arn {name}",
    "queue": "aws sqs delete-queue --queue-url $(aws sqs get-queue-url --queue-name {name} --output text)",
    "rule": "aws events delete-rule --name {name}",
    "function": "aws lambda delete-function --function-name {name}",
    "log-group": "aws logs delete-log-group --log-group-name {name}",
    "experiment-template": "aws fis delete-experiment-template --id ID-OF-THE-ONE-TAGGED-{tag}={name}",
    "process": "kill {name}",
    "kubernetes": "kubectl delete {object} {name}",
}


def remove_all(journal: Journal, remover: Remover, say: Say) -> list[Left]:
    """Remove everything, the last made first; a failure does not stop the rest. Return what is left.

    Raises RemovalInterruptedError at a second Ctrl-C, after listing what is left.
    """
    left: list[Left] = []
    with _patient(lambda: say(f"the removal goes on, {len(journal.left)} things are left; Ctrl-C once more stops it")):
        try:
            for made in journal.left:
                reason = _try(remover, made)
                if reason is None:
                    journal.removed(made)
                    say(f"removed {made}")
                else:
                    left.append(Left(made=made, reason=reason, command=remover.command(made)))
        except RemovalInterruptedError:
            report(
                [Left(made=made, reason="not removed", command=remover.command(made)) for made in journal.left],
                journal.run.id,
                say,
            )
            raise
    report(left, journal.run.id, say)
    return left


def _try(remover: Remover, made: Made) -> str | None:
    """Remove a resource; return None on success, else the reason of the failure."""
    try:
        remover.remove(made)
    except (AccountTestError, LeewardError, BotoCoreError, ClientError, WaiterError, OSError) as error:
        if isinstance(error, RemovalInterruptedError):
            raise
        return str(error)
    return None


def report(left: list[Left], run: str, say: Say) -> None:
    """Print what is left, the reason, and the command to type."""
    for one in left:
        say(f"LEFT: {one.made}: {one.reason}\n      {one.command}")
    if left:
        say(f"or all of it again: make account-test REMOVE={run}")


@contextmanager
def _patient(warn: Callable[[], None]) -> Iterator[None]:
    """Answer the first Ctrl-C (or SIGTERM) by a sentence and stop at the next one."""
    count = 0

    def interrupted(_number: int, _frame: FrameType | None) -> None:
        nonlocal count
        count += 1
        if count > 1:
            raise RemovalInterruptedError("stopped during the removal")
        warn()

    before: dict[signal.Signals, Any] = {}
    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            before[number] = signal.signal(number, interrupted)
    except ValueError:
        pass  # not the main thread: no signal can interrupt it
    try:
        yield
    finally:
        for restored, handler in before.items():
            signal.signal(restored, handler)
