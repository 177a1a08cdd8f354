"""One local AWS for the whole run, and builders for the groups that the tests need."""

import json
import time
import uuid
from dataclasses import dataclass

import pytest


@pytest.fixture(scope="session")
def aws(local_aws):
    return local_aws


@pytest.fixture(scope="session")
def asg(aws):
    return aws.client("autoscaling")


@pytest.fixture(scope="session")
def ec2(aws):
    return aws.client("ec2")


@pytest.fixture(autouse=True)
def _nothing_injected_is_left(aws):
    yield
    aws.control("DELETE", "faults")
    aws.control("DELETE", "capacity")


PATIENCE = 120.0  # seconds: only how long a test that fails takes, so that a busy machine fails none


def eventually(probe, *, every=0.05, patience=PATIENCE):
    """The first truthy value of ``probe``; fails with its last value when none comes in time."""
    deadline = time.monotonic() + patience
    while True:
        value = probe()
        if value:
            return value
        assert time.monotonic() < deadline, f"never became true; last value {value!r}"
        time.sleep(every)


@dataclass
class Group:
    """A group of the test, by name, with shorthands for looking at it."""

    asg: object
    ec2: object
    name: str
    subnets: list

    def describe(self):
        return self.asg.describe_auto_scaling_groups(AutoScalingGroupNames=[self.name])["AutoScalingGroups"][0]

    def states(self):
        return {item["InstanceId"]: item["LifecycleState"] for item in self.describe()["Instances"]}

    def in_service(self, count):
        def probe():
            states = self.states()
            return list(states) if len(states) == count and set(states.values()) <= {"InService"} else None

        return eventually(probe) if count else eventually(lambda: not self.states())

    def instances(self, ids):
        found = self.ec2.describe_instances(Filters=[{"Name": "instance-id", "Values": list(ids)}])
        return [instance for item in found["Reservations"] for instance in item["Instances"]]


@pytest.fixture
def a_group(asg, ec2):
    """Builds groups in three zones; every group is deleted after the test."""
    made = []

    def build(*, desired=1, minimum=0, maximum=6, template=None, cidr="10.0.{}.0/24", zones="abc", wait=True, **more):
        name = f"g-{uuid.uuid4().hex[:8]}"
        vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
        subnets = [
            ec2.create_subnet(VpcId=vpc, CidrBlock=cidr.format(i), AvailabilityZone=f"us-east-1{zone}")["Subnet"][
                "SubnetId"
            ]
            for i, zone in enumerate(zones)
        ]
        data = {"ImageId": "ami-12c6146b", "InstanceType": "m5.large", **(template or {})}
        created = ec2.create_launch_template(LaunchTemplateName=name, LaunchTemplateData=data)
        if "MixedInstancesPolicy" in more:
            spec = {"LaunchTemplateName": name, "Version": "$Latest"}
            more["MixedInstancesPolicy"].setdefault("LaunchTemplate", {})["LaunchTemplateSpecification"] = spec
        else:
            more["LaunchTemplate"] = {
                "LaunchTemplateId": created["LaunchTemplate"]["LaunchTemplateId"],
                "Version": "$Latest",
            }
        asg.create_auto_scaling_group(
            AutoScalingGroupName=name,
            MinSize=minimum,
            MaxSize=maximum,
            DesiredCapacity=desired,
            VPCZoneIdentifier=",".join(subnets),
            **more,
        )
        group = Group(asg, ec2, name, subnets)
        made.append(group)
        if wait:
            group.in_service(desired)
        return group

    yield build
    for group in made:
        asg.delete_auto_scaling_group(AutoScalingGroupName=group.name, ForceDelete=True)


@dataclass
class Queue:
    """A queue that collects what a rule delivers."""

    sqs: object
    url: str
    arn: str
    seen: list

    def event(self, matches, patience=PATIENCE):
        """The first event (or message) for which ``matches`` holds."""

        def probe():
            found = self.sqs.receive_message(QueueUrl=self.url, MaxNumberOfMessages=10, WaitTimeSeconds=1)
            for message in found.get("Messages", []):
                self.seen.append(json.loads(message["Body"]))
                self.sqs.delete_message(QueueUrl=self.url, ReceiptHandle=message["ReceiptHandle"])
            return next((body for body in self.seen if matches(body)), None)

        return eventually(probe, patience=patience)


@pytest.fixture
def a_queue(aws):
    """Builds queues, with a rule for the given event sources where asked."""
    sqs, events = aws.client("sqs"), aws.client("events")

    def build(*sources):
        name = f"q-{uuid.uuid4().hex[:8]}"
        url = sqs.create_queue(QueueName=name)["QueueUrl"]
        arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
        if sources:
            events.put_rule(Name=name, EventPattern=json.dumps({"source": list(sources)}))
            events.put_targets(Rule=name, Targets=[{"Id": "q", "Arn": arn}])
        return Queue(sqs, url, arn, [])

    return build
