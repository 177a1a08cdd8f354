"""A node group upgrade on the deployed stack, started as in the console."""

import json
from collections import Counter

import pytest

from local import fleet
from local.demo import ledger
from tests.local.chain.conftest import called

pytestmark = pytest.mark.local

MACHINE = "leeward-node-group-upgrade"


@pytest.fixture
def rolled(stack, crew):
    """Three nodes, a workload that may run anywhere under a budget of one, and everything that fn sync knows."""
    team = crew(3)
    workload = [fleet.deployment("rolled", 6, cpu="500m", grace=1), fleet.budget("rolled", maxUnavailable=1)]
    stack.kubectl("apply", "-f", "-", stdin=fleet.manifests(workload))

    def ready():
        found = stack.kubernetes("GET", "/apis/apps/v1/namespaces/default/deployments/rolled")
        return found.get("status", {}).get("readyReplicas") == 6

    team.until(ready, "the workload")
    called(stack, "sync")
    yield team
    stack.kubectl("delete", "deployment,pdb", "rolled")


def start(stack, name, state_machine=MACHINE, **asked):
    machine = f"arn:aws:states:{stack.region}:{stack.account}:stateMachine:{state_machine}"
    answer = stack.client("stepfunctions").start_execution(stateMachineArn=machine, name=name, input=json.dumps(asked))
    return answer["executionArn"]


def ended(stack, team, execution):
    def look():
        found = stack.client("stepfunctions").describe_execution(executionArn=execution)
        return found if found["status"] != "RUNNING" else None

    return team.until(look, f"the end of {execution}")


def group_of(stack, name):
    described = stack.client("autoscaling").describe_auto_scaling_groups(AutoScalingGroupNames=[name])
    return described["AutoScalingGroups"][0]


def pin(stack, group):
    """As most Terraform does it: a version by its number, and no room above the size."""
    template = group_of(stack, group)["LaunchTemplate"]["LaunchTemplateId"]
    stack.client("autoscaling").update_auto_scaling_group(
        AutoScalingGroupName=group, MaxSize=3, LaunchTemplate={"LaunchTemplateId": template, "Version": "1"}
    )


def zones_of(group):
    return Counter(member["AvailabilityZone"] for member in group["Instances"])


def another_image(stack, group):
    template = group_of(stack, group)["LaunchTemplate"]["LaunchTemplateId"]
    ec2 = stack.client("ec2")
    versions = ec2.describe_launch_template_versions(LaunchTemplateId=template, Versions=["$Latest"])
    now = versions["LaunchTemplateVersions"][0]["LaunchTemplateData"]["ImageId"]
    return next(image["ImageId"] for image in ec2.describe_images()["Images"] if image["ImageId"] != now)


def test_a_group_is_rolled_to_another_image_and_keeps_its_sizes(stack, rolled):
    group, old = rolled.group, set(rolled.instances)
    pin(stack, group)
    before = group_of(stack, group)
    image = another_image(stack, group)
    outcome = ended(stack, rolled, start(stack, f"{group}-manual", group=group, ami=image))
    assert outcome["status"] == "SUCCEEDED", outcome
    after = group_of(stack, group)
    members = {member["InstanceId"]: member for member in after["Instances"]}
    assert not old & members.keys()
    assert len(members) == after["DesiredCapacity"] == 3
    assert (after["MinSize"], after["MaxSize"]) == (before["MinSize"], before["MaxSize"])
    assert {member["LaunchTemplate"]["Version"] for member in members.values()} == {"2"}
    assert zones_of(after) == zones_of(before)
    assert after["LaunchTemplate"]["Version"] == "2"
    assert after["SuspendedProcesses"] == []
    reservations = stack.client("ec2").describe_instances(InstanceIds=list(members))["Reservations"]
    assert {one["ImageId"] for each in reservations for one in each["Instances"]} == {image}
    nodes = ledger.nodes(stack)
    assert not [
        name for name in members if nodes[name]["spec"].get("unschedulable") or nodes[name]["spec"].get("taints")
    ]
    assert not old & nodes.keys()


def mix(stack, group):
    """The group's own template in a mixed instances policy with two types, pinned to its nodes' version."""
    now = group_of(stack, group)
    spec = {"LaunchTemplateId": now["LaunchTemplate"]["LaunchTemplateId"], "Version": "1"}
    own = now["Instances"][0]["InstanceType"]
    overrides = [{"InstanceType": own}, {"InstanceType": "m5a.large"}]
    policy = {
        "LaunchTemplate": {"LaunchTemplateSpecification": spec, "Overrides": overrides},
        "InstancesDistribution": {"OnDemandPercentageAboveBaseCapacity": 100},
    }
    stack.client("autoscaling").update_auto_scaling_group(AutoScalingGroupName=group, MixedInstancesPolicy=policy)
    return group_of(stack, group)["MixedInstancesPolicy"]


@pytest.mark.long
def test_a_mixed_instances_policy_stays_but_for_the_version(stack, rolled):
    group, old = rolled.group, set(rolled.instances)
    image = another_image(stack, group)
    before = mix(stack, group)
    outcome = ended(stack, rolled, start(stack, f"{group}-mixed", group=group, ami=image))
    assert outcome["status"] == "SUCCEEDED", outcome
    after = group_of(stack, group)
    policy = after["MixedInstancesPolicy"]
    assert policy["LaunchTemplate"]["LaunchTemplateSpecification"]["Version"] == "2"
    assert policy["LaunchTemplate"]["Overrides"] == before["LaunchTemplate"]["Overrides"]
    assert policy["InstancesDistribution"] == before["InstancesDistribution"]
    members = {member["InstanceId"]: member for member in after["Instances"]}
    assert not old & members.keys()
    assert len(members) == after["DesiredCapacity"] == 3
    assert {member["LaunchTemplate"]["Version"] for member in members.values()} == {"2"}


@pytest.fixture
def alarm(stack):
    """The alarm that the policy of `alarmed-*` names: `alarm("ALARM")`."""
    cloudwatch = stack.client("cloudwatch")
    metric = {"Namespace": "shop", "MetricName": "errors", "Statistic": "Sum", "Period": 60, "EvaluationPeriods": 1}
    cloudwatch.put_metric_alarm(
        AlarmName="alarmed-errors", Threshold=1.0, ComparisonOperator="GreaterThanThreshold", **metric
    )

    def state(value):
        cloudwatch.set_alarm_state(AlarmName="alarmed-errors", StateValue=value, StateReason="a test")

    yield state
    cloudwatch.delete_alarms(AlarmNames=["alarmed-errors"])


def test_an_alarm_holds_an_upgrade_and_no_abort(stack, crew, leeward, alarm):
    team = crew(2, name="alarmed")
    group, old = team.group, set(team.instances)
    called(stack, "sync")
    alarm("ALARM")
    execution = start(stack, f"{group}-alarmed", group=group, ami=another_image(stack, group))

    def held():
        _, found, _ = leeward("upgrade", "status", group)
        status = json.loads(found)
        return status if status["phase"] == "held" else None

    status = team.until(held, "the upgrade held")
    assert status["cause"].startswith("alarm alarmed-errors is in ALARM since ")
    assert any(event["reason"] == "UpgradeHeld" for name in old for event in team.reported_about(team.node_name(name)))
    start(stack, f"{group}-abort", group=group, action="abort")
    outcome = ended(stack, team, execution)
    assert outcome["status"] == "SUCCEEDED", outcome
    assert {member["InstanceId"] for member in group_of(stack, group)["Instances"]} == old
    assert not any(team.record(name) for name in old)
