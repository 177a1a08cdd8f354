"""Actions of the plays."""

import json
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.request import Request, urlopen
from uuid import uuid4

from botocore.exceptions import ClientError

from account_test import fis
from account_test.context import Context
from account_test.deployment import call
from account_test.errors import StepError
from account_test.groups import GroupPlan, described
from account_test.recording import Recording
from account_test.run import TAG
from account_test.watching import drain_tap, machine_status
from infra import names as naming

NONSENSE = (
    '{"detail-type": "EC2 Spot Instance Interruption Warning", "source": "aws.ec2", "detail": {"instance-id": 42}}'
)
SPOT_WARNING = "EC2 Spot Instance Interruption Warning"
WARNING_SECONDS = 300  # seconds that FIS may take until it warns
DISRUPTION_SECONDS = 600
FOREIGN_HOOK = "another-team"
HELD_SECONDS = 45


def terminate_manually(context: Context, seen: Recording) -> None:
    """Start node-termination with {"instance": "i-..."}, as docs/operations.md says. The queue also gets a malformed
    message.
    """
    victim = seen.members_before[0]
    seen.victims = (victim,)
    context.aws("stepfunctions").start_execution(
        stateMachineArn=context.run.machine(naming.TERMINATION),
        name=f"{victim}-manual",
        input=json.dumps({"instance": victim}),
    )
    if context.base.get("sender"):
        _send(context, NONSENSE)
        seen.nonsense = NONSENSE


def scale_in(context: Context, seen: Recording) -> None:
    """Reduce the group's size by one; the group chooses the instance."""
    now = described(context, seen.group)
    context.aws("autoscaling").set_desired_capacity(
        AutoScalingGroupName=seen.group, DesiredCapacity=now["DesiredCapacity"] - 1, HonorCooldown=False
    )


def interrupt_spot(context: Context, seen: Recording) -> None:
    """Interrupt a spot instance by AWS FIS; on a local endpoint by the event that EC2 would put on the bus. Then send
    the same message again.
    """
    victim = seen.members_before[0]
    seen.victims = (victim,)
    if context.run.endpoint:
        _emit(context.run.endpoint, spot_warning(context, victim))
    else:
        fis.interrupt(context, victim)
    warning = _heard(context, seen, victim)
    if context.base.get("sender"):
        _send(context, json.dumps(warning))


def spot_warning(context: Context, instance: str) -> dict[str, Any]:
    """Return EventBridge's body for a spot warning."""
    run = context.run
    return {
        "version": "0",
        "id": str(uuid4()),
        "source": "aws.ec2",
        "detail-type": SPOT_WARNING,
        "account": run.account,
        "time": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "region": run.region,
        "resources": [f"arn:{run.partition}:ec2:{run.region}a:instance/{instance}"],
        "detail": {"instance-id": instance, "instance-action": "terminate"},
    }


def _heard(context: Context, seen: Recording, victim: str) -> Mapping[str, Any]:
    deadline = time.monotonic() + WARNING_SECONDS
    while time.monotonic() < deadline:
        seen.events += drain_tap(context)
        for event in seen.events:
            if event.get("detail-type") == SPOT_WARNING and event["detail"].get("instance-id") == victim:
                return event
        time.sleep(min(1.0, context.run.look))
    raise StepError(f"no spot warning of {victim} reached the tap within {WARNING_SECONDS} s")


def upgrade(context: Context, seen: Recording) -> None:
    """Start the upgrade of a self-managed group as in the console: {"group", "launchTemplateVersion"}."""
    _start(context, seen, naming.UPGRADE, {"group": seen.group, "launchTemplateVersion": "2"})


def upgrade_managed(context: Context, seen: Recording) -> None:
    """Start the upgrade of a managed node group in the same way."""
    _start(context, seen, naming.MANAGED_UPGRADE, {"group": seen.group, "launchTemplateVersion": "2"})


def consolidate(context: Context, seen: Recording) -> None:
    """Call fn disruption-planner, as its schedule does, until it starts a run. Raises StepError if it does not."""
    deadline = time.monotonic() + DISRUPTION_SECONDS
    while time.monotonic() < deadline:
        disruptions = call(context, "disruption-planner").get("disruptions") or ()
        for execution in disruptions:
            context.base["execution"] = _execution_arn(context, naming.DISRUPTION, str(execution))
            seen.machine = "RUNNING"
            return
        time.sleep(2 * context.run.look)
    raise StepError(f"fn disruption-planner came to no run within {DISRUPTION_SECONDS} s")


def hold_by_another_team(context: Context, seen: Recording) -> None:
    """Put a terminate hook that is not ours on the group, and terminate an instance that it holds."""
    autoscaling, victim = context.aws("autoscaling"), seen.members_before[0]
    autoscaling.put_lifecycle_hook(
        AutoScalingGroupName=seen.group,
        LifecycleHookName=FOREIGN_HOOK,
        LifecycleTransition="autoscaling:EC2_INSTANCE_TERMINATING",
        HeartbeatTimeout=900,
        DefaultResult="ABANDON",
    )
    autoscaling.terminate_instance_in_auto_scaling_group(InstanceId=victim, ShouldDecrementDesiredCapacity=True)
    seen.victims = (victim,)


def held_long_enough(seen: Recording) -> bool:
    """Record the hook's state and return whether the instance was held long enough for every part of Leeward to have
    answered.
    """
    seen.hook_state = seen.samples[-1].members.get(seen.victims[0], "") if seen.samples and seen.victims else ""
    return seen.hook_state == "Terminating:Wait" and seen.samples[-1].at - seen.began > HELD_SECONDS


def managed_over(seen: Recording) -> bool:
    """Return whether the managed upgrade is over. EKS terminates its nodes itself: the execution reports the end."""
    last = seen.samples[-1]
    new = set(last.members) - set(seen.members_before)
    settled = last.serving == last.desired == len(last.nodes) == len(new) and all(
        pod.ready for pod in last.pods.values()
    )
    return seen.machine not in {"", "RUNNING", "SUCCEEDED"} or (seen.machine == "SUCCEEDED" and settled)


def follow_machine(context: Context, seen: Recording) -> None:
    """Record the status of the execution of an upgrade or a disruption run."""
    if seen.machine == "RUNNING":
        seen.machine, seen.machine_error = machine_status(context, context.base["execution"])


def read_versions(context: Context, seen: Recording, plan: GroupPlan) -> None:
    """Record the launch template's version of each member; for a managed group that of the node group."""
    if plan.managed:
        found = context.aws("eks").describe_nodegroup(
            clusterName=context.run.cluster, nodegroupName=context.run.name(plan.part)
        )
        seen.versions = (str((found["nodegroup"].get("launchTemplate") or {}).get("version")),)
        return
    members = described(context, seen.group)["Instances"]
    seen.versions = tuple(str((one.get("LaunchTemplate") or {}).get("Version")) for one in members)


def _start(context: Context, seen: Recording, machine: str, asked: Mapping[str, Any]) -> None:
    answer = context.aws("stepfunctions").start_execution(
        stateMachineArn=context.run.machine(machine),
        name=f"{TAG.rpartition('/')[2]}-{uuid4().hex[:8]}",
        input=json.dumps(asked),
    )
    context.base["execution"] = answer["executionArn"]
    seen.machine = "RUNNING"


def _execution_arn(context: Context, machine: str, name: str) -> str:
    if name.startswith("arn:"):
        return name
    return context.run.arn("states", f"execution:{context.run.names.machine(machine)}:{name}")


def _send(context: Context, body: str) -> None:
    sqs = context.aws("sqs")
    try:
        sqs.send_message(QueueUrl=sqs.get_queue_url(QueueName=context.run.names.queue)["QueueUrl"], MessageBody=body)
    except ClientError as error:
        raise StepError(f"the queue does not take a message of its named sender: {error}") from error


def _emit(endpoint: str, event: Mapping[str, Any]) -> None:
    """Emit an event on the local stack only: on AWS no caller but EC2 puts an event of aws.ec2 on the bus."""
    request = Request(f"{endpoint}/_local/events", method="POST", data=json.dumps(event).encode())
    request.add_header("Content-Type", "application/json")
    with urlopen(request, timeout=30) as answer:
        answer.read()
