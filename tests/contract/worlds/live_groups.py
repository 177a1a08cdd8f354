"""EC2 and Auto Scaling behind AWS's own API: the local AWS of this repository, or an account named by the environment.

The product's adapters make the calls that the product makes, boto3 the calls of all others."""

import json
import time
import uuid
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from leeward.adapters.aws.clients import AwsClients
from leeward.adapters.aws.group_changes import AutoScalingGroupChanges
from leeward.adapters.aws.groups import AutoScalingGroups
from leeward.adapters.aws.instances import Ec2Instances
from leeward.adapters.aws.launch_templates import Ec2Templates
from leeward.adapters.wiring import SystemClock
from simulation.aws.bus import let_through

SOURCES = ["aws.ec2", "aws.autoscaling"]


class Mailbox:
    """A queue with a rule that hears EC2 and Auto Scaling; everything that came so far is in `seen`."""

    def __init__(self, client: Callable[[str], Any]) -> None:
        self.name = f"leeward-contract-{uuid.uuid4().hex[:8]}"
        self._sqs, self._events = client("sqs"), client("events")
        self.url = self._sqs.create_queue(QueueName=self.name)["QueueUrl"]
        arn = self._sqs.get_queue_attributes(QueueUrl=self.url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
        rule = self._events.put_rule(Name=self.name, EventPattern=json.dumps({"source": SOURCES}))["RuleArn"]
        allowed = {
            "Effect": "Allow",
            "Principal": {"Service": "events.amazonaws.com"},
            "Action": "sqs:SendMessage",
            "Resource": arn,
            "Condition": {"ArnEquals": {"aws:SourceArn": rule}},
        }
        policy = json.dumps({"Version": "2012-10-17", "Statement": [allowed]})
        self._sqs.set_queue_attributes(QueueUrl=self.url, Attributes={"Policy": policy})
        self._events.put_targets(Rule=self.name, Targets=[{"Id": "queue", "Arn": arn}])
        self.seen: list[dict[str, Any]] = []

    def read(self) -> list[dict[str, Any]]:
        """Take in what has come."""
        while found := self._sqs.receive_message(QueueUrl=self.url, MaxNumberOfMessages=10).get("Messages", []):
            for message in found:
                self.seen.append(json.loads(message["Body"]))
                self._sqs.delete_message(QueueUrl=self.url, ReceiptHandle=message["ReceiptHandle"])
        return self.seen

    def close(self) -> None:
        """Take rule and queue away."""
        self._events.remove_targets(Rule=self.name, Ids=["queue"])
        self._events.delete_rule(Name=self.name)
        self._sqs.delete_queue(QueueUrl=self.url)


class LiveGroups:
    """What the local AWS and an account have in common. `patience` and `pace` in seconds."""

    patience = 120.0  # only how long a scenario that fails takes
    pace = 0.05

    def __init__(self, client: Callable[[str], Any], clients: AwsClients, mailbox: Mailbox) -> None:
        self.groups, self.instances = AutoScalingGroups(clients, SystemClock()), Ec2Instances(clients)
        self.changes, self.templates = AutoScalingGroupChanges(clients), Ec2Templates(clients)
        self.asg, self.ec2 = client("autoscaling"), client("ec2")
        self._mailbox = mailbox

    def resize(self, group: str, desired: int) -> None:
        self.asg.set_desired_capacity(AutoScalingGroupName=group, DesiredCapacity=desired)

    def keep_at_least(self, group: str, minimum: int) -> None:
        self.asg.update_auto_scaling_group(AutoScalingGroupName=group, MinSize=minimum)

    def end(self, instance: str) -> None:
        self.ec2.terminate_instances(InstanceIds=[instance])

    def call_unhealthy(self, instance: str) -> None:
        self.asg.set_instance_health(InstanceId=instance, HealthStatus="Unhealthy", ShouldRespectGracePeriod=False)

    def reported(self, instance: str) -> Sequence[dict[str, Any]]:
        about = [event for event in self._mailbox.read() if let_through(event)]
        return [event for event in about if instance in event["detail"].values()]

    def until(self, condition: Callable[[], Any], what: str) -> Any:
        deadline = time.monotonic() + self.patience
        while not (value := condition()):
            assert time.monotonic() < deadline, f"never came: {what}"
            time.sleep(self.pace)
        return value

    def at_size(self, group: str, size: int) -> str:
        """Wait until all of it is in service and nothing else is there."""

        def there() -> bool:
            states = [member.lifecycle for member in self.groups.describe([group])[group].instances]
            return states == ["InService"] * size

        self.until(there, f"{group} at {size}")
        return group


class LocalGroups(LiveGroups):
    """The local AWS: groups as they are needed, and a journal that misses nothing."""

    exact = True
    short = 1
    long = 300

    def __init__(self, local: Any, clients: AwsClients, mailbox: Mailbox) -> None:
        super().__init__(local.client, clients, mailbox)
        self._local = local
        self._made: list[str] = []

    def group(self, *, size: int = 1, maximum: int = 4, rebalance: bool = False) -> str:
        name = f"contract-{uuid.uuid4().hex[:8]}"
        network = self.ec2.create_vpc(CidrBlock="10.7.0.0/16")["Vpc"]["VpcId"]
        subnets = [
            self.ec2.create_subnet(VpcId=network, CidrBlock=f"10.7.{part}.0/24", AvailabilityZone=f"us-east-1{zone}")
            for part, zone in enumerate("ab")
        ]
        data = {"ImageId": "ami-12c6146b", "InstanceType": "m5.large"}
        self.ec2.create_launch_template(LaunchTemplateName=name, LaunchTemplateData=data)
        self.asg.create_auto_scaling_group(
            AutoScalingGroupName=name,
            MinSize=0,
            MaxSize=maximum,
            DesiredCapacity=size,
            CapacityRebalance=rebalance,
            VPCZoneIdentifier=",".join(made["Subnet"]["SubnetId"] for made in subnets),
            LaunchTemplate={"LaunchTemplateName": name, "Version": "$Latest"},
        )
        self._made.append(name)
        return self.at_size(name, size)

    def recommend_rebalance(self, instance: str) -> None:
        kind = "EC2 Instance Rebalance Recommendation"
        self._local.control(
            "POST", "events", {"source": "aws.ec2", "detail-type": kind, "detail": {"instance-id": instance}}
        )

    def impair(self, instance: str) -> None:
        self._local.control("PUT", f"status-checks/{instance}", {"impaired": ["system"]})

    def balance(self) -> None:
        self._local.control("POST", "balance")

    def journal(self, instance: str) -> Sequence[str]:
        found: list[str] = self._local.control("GET", f"journal/{instance}")
        return found

    def close(self) -> None:
        """Groups go, with all that is in them."""
        for name in self._made:
            self.asg.delete_auto_scaling_group(AutoScalingGroupName=name, ForceDelete=True)


class AccountGroups(LiveGroups):
    """One group of an account, given for this alone: launch template, two zones, MaxSize 4 or more, no hooks.

    Its sizes are set for each scenario, so that nothing may depend on it. States are polled: moments are not seen.
    """

    exact = False
    short = 30
    long = 300
    patience = 900.0
    pace = 3.0

    def __init__(self, name: str, client: Callable[[str], Any], clients: AwsClients, mailbox: Mailbox) -> None:
        super().__init__(client, clients, mailbox)
        self._name = name
        self._wait_key: dict[str, list[str]] = {}

    def group(self, *, size: int = 1, maximum: int = 4, rebalance: bool = False) -> str:
        self.close()
        self.asg.update_auto_scaling_group(
            AutoScalingGroupName=self._name,
            MinSize=0,
            MaxSize=maximum,
            DesiredCapacity=size,
            CapacityRebalance=rebalance,
        )
        return self.at_size(self._name, size)

    def recommend_rebalance(self, instance: str) -> None:
        pytest.fail("an account's EC2 recommends when it wants to")

    def impair(self, instance: str) -> None:
        pytest.fail("an account's hosts fail when they want to")

    def balance(self) -> None:
        pytest.fail("an account's Auto Scaling balances when it wants to")

    def journal(self, instance: str) -> Sequence[str]:
        self._look()
        return self._wait_key.get(instance, [])

    def until(self, condition: Callable[[], Any], what: str) -> Any:
        def looking() -> Any:
            value = condition()
            self._look()  # afterwards: what the scenario has seen is in the journal
            return value

        return super().until(looking, what)

    def _look(self) -> None:
        held = {member.id: member.lifecycle for member in self.groups.describe([self._name])[self._name].instances}
        for name, seen in self.instances.describe({*held, *self._wait_key}).items():
            words = self._wait_key.setdefault(name, [])
            for word in (seen.state, held.get(name, "Terminated")):
                last = next((known for known in reversed(words) if known.islower() == word.islower()), None)
                if word != last:
                    words.append(word)

    def close(self) -> None:
        """Leave the group empty and without hooks."""
        for hook in self.groups.hooks(self._name):
            self.asg.delete_lifecycle_hook(AutoScalingGroupName=self._name, LifecycleHookName=hook.name)
        self.asg.update_auto_scaling_group(AutoScalingGroupName=self._name, MinSize=0, DesiredCapacity=0)
        self.at_size(self._name, 0)
