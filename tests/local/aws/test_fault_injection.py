"""What experiments of AWS FIS cause: EC2's notices and interruptions, ARC's shifts and events."""

import uuid
from datetime import UTC, datetime, timedelta

import pytest

from leeward.model.zonal_shift import ShiftKind
from tests.local.aws.conftest import PATIENCE, eventually
from tests.local.aws.test_zonal_shifts import controller

pytestmark = pytest.mark.local

ROLE = "arn:aws:iam::000000000000:role/fis"
ALL_SPOT = {"InstancesDistribution": {"OnDemandBaseCapacity": 0, "OnDemandPercentageAboveBaseCapacity": 0}}
SECOND = timedelta(seconds=1)  # events have whole seconds


@pytest.fixture
def run(aws):
    """Start an experiment; none is left running."""
    fis, started = aws.client("fis"), []

    def begin(targets, actions):
        made = fis.create_experiment_template(
            clientToken=str(uuid.uuid4()),
            description="rehearsal",
            roleArn=ROLE,
            stopConditions=[{"source": "none"}],
            targets=targets,
            actions=actions,
        )
        name = fis.start_experiment(experimentTemplateId=made["experimentTemplate"]["id"])["experiment"]["id"]
        started.append(name)
        return name

    yield begin
    for name in started:
        if fis.get_experiment(id=name)["experiment"]["state"]["status"] in {"initiating", "running"}:
            fis.stop_experiment(id=name)
            ended(aws, name)


def state(aws, name):
    return aws.client("fis").get_experiment(id=name)["experiment"]["state"]


def ended(aws, name):
    return eventually(lambda: (found := state(aws, name))["status"] in {"completed", "stopped", "failed"} and found)


def spot(mode="ALL", **more):
    return {"resourceType": "aws:ec2:spot-instance", "selectionMode": mode, **more}


def interrupt(before="PT2M"):
    parameters = {"durationBeforeInterruption": before}
    action = "aws:ec2:send-spot-instance-interruptions"
    return {"actionId": action, "parameters": parameters, "targets": {"SpotInstances": "nodes"}}


def away(zone="us-east-1c", lasts="PT1M", **more):
    parameters = {"availabilityZoneIdentifier": zone, "duration": lasts, **more}
    return {
        "actionId": "aws:arc:start-zonal-autoshift",
        "parameters": parameters,
        "targets": {"ManagedResources": "cluster"},
    }


def arn_of(aws, instance):
    return f"arn:aws:ec2:{aws.region}:{aws.account}:instance/{instance}"


def cluster(aws, autoshift="ENABLED"):
    """Enable zonal shift for a cluster of the test's own; return it as a target."""
    name = f"rehearsed-{uuid.uuid4().hex[:6]}"
    aws.control("PUT", f"managed-resources/{name}", {"autoshift": autoshift})
    arn = f"arn:aws:eks:{aws.region}:{aws.account}:cluster/{name}"
    kind = "aws:arc:zonal-shift-managed-resource"
    return name, {"cluster": {"resourceType": kind, "resourceArns": [arn], "selectionMode": "ALL"}}


def about(instance, kind):
    return lambda event: event["detail-type"] == kind and event["detail"].get("instance-id") == instance


def instance_state(instance, name):
    return lambda event: (
        about(instance, "EC2 Instance State-change Notification")(event) and (event["detail"]["state"] == name)
    )


def at(event):
    return datetime.fromisoformat(event["time"].replace("Z", "+00:00"))


@pytest.mark.long
def test_a_spot_instance_is_recommended_for_rebalance_then_warned_and_then_interrupted(aws, a_group, a_queue, run):
    """Three minutes: the notice comes after the first of them."""
    group, queue = a_group(desired=2, MixedInstancesPolicy=dict(ALL_SPOT)), a_queue("aws.ec2")
    victim, other = group.in_service(2)
    name = run({"nodes": spot(resourceArns=[arn_of(aws, victim)])}, {"interrupt": interrupt("PT3M")})
    recommended = queue.event(about(victim, "EC2 Instance Rebalance Recommendation"))
    assert recommended["resources"] == [arn_of(aws, victim)]
    assert ended(aws, name)["status"] == "completed"
    warned = queue.event(about(victim, "EC2 Spot Instance Interruption Warning"))
    assert warned["detail"] == {"instance-id": victim, "instance-action": "terminate"}
    (described,) = group.instances([victim])
    assert warned["resources"] == [f"arn:aws:ec2:{described['Placement']['AvailabilityZone']}:instance/{victim}"]
    assert at(warned) - at(recommended) >= timedelta(minutes=1) - SECOND
    taken = queue.event(instance_state(victim, "shutting-down"), patience=PATIENCE + 120)
    assert at(taken) - at(warned) >= timedelta(minutes=2) - SECOND
    assert [event for event in queue.seen if about(other, "EC2 Spot Instance Interruption Warning")(event)] == []


def test_on_demand_instances_are_no_target(aws, a_group, run):
    group = a_group(desired=1)
    (instance,) = group.in_service(1)
    name = run({"nodes": spot(resourceArns=[arn_of(aws, instance)])}, {"interrupt": interrupt()})
    assert ended(aws, name)["reason"] == "Target resolution returned empty set."


def test_tags_and_filters_select_and_a_count_limits(aws, a_group, a_queue, run):
    tags = [{"Key": "rehearsal", "Value": "yes", "PropagateAtLaunch": True}]
    group = a_group(desired=4, zones="ab", MixedInstancesPolicy=dict(ALL_SPOT), Tags=tags)
    queue, members = a_queue("aws.ec2"), group.in_service(4)
    zones = {one["InstanceId"]: one["Placement"]["AvailabilityZone"] for one in group.instances(members)}
    in_a = [{"path": "Placement.AvailabilityZone", "values": ["us-east-1a"]}]
    target = spot("COUNT(1)", resourceTags={"rehearsal": "yes"}, filters=in_a)
    assert ended(aws, run({"nodes": target}, {"interrupt": interrupt()}))["status"] == "completed"
    kind = "EC2 Spot Instance Interruption Warning"
    queue.event(lambda event: event["detail-type"] == kind)
    warned = [event["detail"]["instance-id"] for event in queue.seen if event["detail-type"] == kind]
    assert [zones.get(instance) for instance in warned] == ["us-east-1a"]


def test_more_instances_than_the_quota_allows_fail_the_experiment(aws, a_group, run):
    tags = [{"Key": "rehearsal", "Value": "many", "PropagateAtLaunch": True}]
    a_group(desired=6, MixedInstancesPolicy=dict(ALL_SPOT), Tags=tags)
    name = run({"nodes": spot(resourceTags={"rehearsal": "many"})}, {"interrupt": interrupt()})
    found = ended(aws, name)
    assert (found["status"], found["error"]["code"]) == ("failed", "QuotaExceeded")


@pytest.mark.long  # the shortest action lasts a minute
def test_a_shift_lasts_as_long_as_its_action(aws, a_queue, run):
    name, target = cluster(aws)
    queue = a_queue("aws.arc-zonal-shift")
    experiment = run(target, {"away": away()})
    begun = queue.event(lambda event: event["detail-type"] == "FIS Experiment Autoshift In Progress")
    assert begun["detail"]["metadata"]["awayFrom"] == "use1-az2"
    (shift,) = controller(aws, name).shifts(name, datetime.now(UTC))
    assert (shift.zone_id, shift.kind, shift.until) == ("use1-az2", ShiftKind.FIS, None)
    assert ended(aws, experiment)["status"] == "completed"
    over = queue.event(lambda event: event["detail-type"] == "FIS Experiment Autoshift Completed")
    assert at(over) - at(begun) >= timedelta(minutes=1) - SECOND
    assert controller(aws, name).shifts(name, datetime.now(UTC)) == ()


def test_a_stopped_experiment_ends_its_shift_at_once(aws, a_queue, run):
    name, target = cluster(aws)
    queue = a_queue("aws.arc-zonal-shift")
    experiment = run(target, {"away": away("use1-az2", "PT12H")})
    queue.event(lambda event: event["detail-type"] == "FIS Experiment Autoshift In Progress")
    aws.client("fis").stop_experiment(id=experiment)
    queue.event(lambda event: event["detail-type"] == "FIS Experiment Autoshift Canceled")
    assert ended(aws, experiment)["status"] == "stopped"
    assert controller(aws, name).shifts(name, datetime.now(UTC)) == ()


def test_a_cluster_without_autoshift_is_shifted_only_where_the_action_says_any(aws, run):
    name, target = cluster(aws, autoshift="DISABLED")
    found = ended(aws, run(target, {"away": away()}))
    assert (found["status"], found["error"]["code"]) == ("failed", "InvalidTarget")
    run(target, {"away": away(zonalAutoshiftStatus="ANY")})
    eventually(lambda: controller(aws, name).shifts(name, datetime.now(UTC)))


def test_a_cluster_that_is_shifted_already_fails_the_experiment(aws, run):
    name, target = cluster(aws)
    aws.control("PUT", f"zonal-shifts/{name}", {"awayFrom": "use1-az1", "silent": True})
    found = ended(aws, run(target, {"away": away()}))
    assert (found["status"], found["error"]["code"]) == ("failed", "ConflictException")
    (shift,) = controller(aws, name).shifts(name, datetime.now(UTC))
    assert (shift.zone_id, shift.kind) == ("use1-az1", ShiftKind.MANUAL)
