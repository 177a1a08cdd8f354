"""EKS' own updates, CloudWatch's alarms and the changes to a group: model, fake, and adapters on the local AWS."""

import time
import uuid
from dataclasses import replace

import pytest

from leeward.adapters.aws.monitoring import AwsServiceLimits, CloudWatchAlarms
from leeward.adapters.aws.nodegroups import EksManagedUpdates
from leeward.errors import InvalidInputError, ObjectGoneError, TerminalError
from leeward.model.image import Image
from leeward.model.launch import LaunchSource, LaunchTemplateRef, Override
from leeward.ports.eks import ManagedState
from leeward.workflow.alarms import read_alarms
from local.aws.settings import KUBERNETES_VERSION
from simulation.aws.alarms import SimAlarms
from simulation.aws.managed import SimManagedUpdates
from simulation.aws.templates import SimTemplates, template_of
from simulation.timeline import Timeline
from tests.fakes.builders import a_group
from tests.fakes.groups import FakeGroups
from tests.fakes.upgrades import FakeAlarms, FakeGroupChanges, FakeManagedUpdates, FakeServiceLimits, FakeTemplates

EVERYWHERE = ["the model", "the fake", pytest.param("the emulator", marks=pytest.mark.local)]
PATIENCE = 120.0


class Modelled:
    """One node group of a model, which a test ends."""

    cluster, nodegroup = "blue", "web"

    def __init__(self, port, model, timeline=None):
        self.port, self._model, self._timeline = port, model, timeline
        model.know(self.cluster, self.nodegroup)

    def until_ended(self, update):
        if self._timeline:
            self._timeline.run_until(self._timeline.now() + 3600)
        else:
            self._model.end(update)
        return self.port.look(self.cluster, self.nodegroup, update)


class Emulated:
    """One node group of one node on the local AWS."""

    nodegroup = "web"

    def __init__(self, local_aws, clients):
        self.cluster, self.port = f"c-{uuid.uuid4().hex[:8]}", EksManagedUpdates(clients)
        self._eks, ec2 = local_aws.client("eks"), local_aws.client("ec2")
        role = "arn:aws:iam::000000000000:role/eks"
        self._eks.create_cluster(name=self.cluster, roleArn=role, resourcesVpcConfig={"subnetIds": []})
        vpc = ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
        subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.9.0.0/24", AvailabilityZone="us-east-1a")["Subnet"]
        data = {"ImageId": "ami-12c6146b", "InstanceType": "m5.large"}
        ec2.create_launch_template(LaunchTemplateName=self.cluster, LaunchTemplateData=data)
        ec2.create_launch_template_version(
            LaunchTemplateName=self.cluster, SourceVersion="1", LaunchTemplateData={"ImageId": "ami-03cf127a"}
        )
        self._eks.create_nodegroup(
            clusterName=self.cluster,
            nodegroupName=self.nodegroup,
            nodeRole=role,
            subnets=[subnet["SubnetId"]],
            launchTemplate={"name": self.cluster, "version": "1"},
            scalingConfig={"minSize": 0, "maxSize": 3, "desiredSize": 1},
        )

    def until_ended(self, update):
        late = time.monotonic() + PATIENCE
        while (found := self.port.look(self.cluster, self.nodegroup, update)).state is ManagedState.IN_PROGRESS:
            assert time.monotonic() < late, "the update does not end"
            time.sleep(0.05)
        return found

    def close(self):
        self._eks.delete_nodegroup(clusterName=self.cluster, nodegroupName=self.nodegroup)


@pytest.fixture(params=EVERYWHERE)
def eks(request):
    if request.param == "the emulator":
        local_aws, clients = (request.getfixturevalue(name) for name in ("local_aws", "emulator_clients"))
        local_aws.control("PUT", "pace", {"boot": 1.5, "shutdown": 0.1})  # an update is seen before it ends
        world = Emulated(local_aws, clients)
        yield world
        world.close()
        local_aws.control("PUT", "pace", {"boot": 0.2, "shutdown": 1.0})
    elif request.param == "the fake":
        fake = FakeManagedUpdates()
        yield Modelled(fake, fake.model)
    else:
        timeline = Timeline()
        model = SimManagedUpdates(timeline)
        yield Modelled(model, model, timeline)


def test_an_update_runs_and_ends_and_the_same_token_is_the_same_update(eks):
    update = eks.port.start(eks.cluster, eks.nodegroup, token="t", template_version="2")
    assert eks.port.look(eks.cluster, eks.nodegroup, update).state is ManagedState.IN_PROGRESS
    assert eks.port.start(eks.cluster, eks.nodegroup, token="t", template_version="2") == update
    ended = eks.until_ended(update)
    assert (ended.id, ended.state, ended.errors) == (update, ManagedState.SUCCESSFUL, ())
    assert eks.port.start(eks.cluster, eks.nodegroup, token="t", template_version="2") == update


def test_a_second_update_has_to_wait_for_the_first(eks):
    first = eks.port.start(eks.cluster, eks.nodegroup, token="t1", version="1.33")
    with pytest.raises(TerminalError, match="ResourceInUseException"):
        eks.port.start(eks.cluster, eks.nodegroup, token="t2", version="1.33")
    eks.until_ended(first)
    second = eks.port.start(eks.cluster, eks.nodegroup, token="t2", version="1.33")
    assert second != first
    assert eks.until_ended(second).state is ManagedState.SUCCESSFUL


def test_what_eks_does_not_know_is_gone(eks):
    with pytest.raises(ObjectGoneError):
        eks.port.start(eks.cluster, "no-such-group", token="t")
    with pytest.raises(ObjectGoneError):
        eks.port.look(eks.cluster, eks.nodegroup, "no-such-update")


def test_a_node_group_is_described_as_it_stands_and_says_that_it_is_being_updated(eks):
    assert eks.port.nodegroup(eks.cluster, eks.nodegroup).status == "ACTIVE"
    update = eks.port.start(eks.cluster, eks.nodegroup, token="t", version="1.33")
    assert eks.port.nodegroup(eks.cluster, eks.nodegroup).status == "UPDATING"
    eks.until_ended(update)
    there = eks.port.nodegroup(eks.cluster, eks.nodegroup)
    assert (there.name, there.cluster, there.status) == (eks.nodegroup, eks.cluster, "ACTIVE")
    with pytest.raises(ObjectGoneError):
        eks.port.nodegroup(eks.cluster, "no-such-group")


def test_a_token_serves_one_request(eks):
    first = eks.port.start(eks.cluster, eks.nodegroup, token="t", version="1.33")
    with pytest.raises(TerminalError, match="InvalidParameterException"):
        eks.port.start(eks.cluster, eks.nodegroup, token="t", version="1.32")
    eks.until_ended(first)


GONE = "ami-0123456789abcdef0"


class ModelledBeforehand:
    """An account and a cluster of which a test says how they are."""

    group, cluster, image = "web", "blue", "ami-1"

    def __init__(self, port, model):
        self.port = port
        model.versions[self.cluster] = KUBERNETES_VERSION
        model.known_images[self.image] = Image(
            id=self.image, architecture="amd64", owner="602401143452", alias="amazon"
        )
        model.deregistered.add(GONE)
        self._model = model

    def refresh(self):
        self._model.running[self.group] = ("refresh-1",)
        return "refresh-1"

    def schedule(self):
        self._model.actions[self.group] = ("nightly",)


class EmulatedBeforehand:
    """The same on the local AWS, with a group of its own."""

    def __init__(self, local_aws, clients):
        self.port, self._asg = AwsServiceLimits(clients), local_aws.client("autoscaling")
        self.cluster = self.group = f"b-{uuid.uuid4().hex[:8]}"
        role = "arn:aws:iam::000000000000:role/eks"
        local_aws.client("eks").create_cluster(name=self.cluster, roleArn=role, resourcesVpcConfig={"subnetIds": []})
        ec2 = local_aws.client("ec2")
        self.image = ec2.describe_images(Filters=[{"Name": "architecture", "Values": ["x86_64"]}])["Images"][0][
            "ImageId"
        ]
        data = {"ImageId": self.image, "InstanceType": "m5.large"}
        ec2.create_launch_template(LaunchTemplateName=self.group, LaunchTemplateData=data)
        self._asg.create_auto_scaling_group(
            AutoScalingGroupName=self.group,
            LaunchTemplate={"LaunchTemplateName": self.group, "Version": "1"},
            MinSize=0,
            MaxSize=0,
            AvailabilityZones=["us-east-1a"],
        )

    def refresh(self):
        return self._asg.start_instance_refresh(AutoScalingGroupName=self.group)["InstanceRefreshId"]

    def schedule(self):
        self._asg.put_scheduled_update_group_action(
            AutoScalingGroupName=self.group, ScheduledActionName="nightly", DesiredCapacity=0, Recurrence="0 3 * * *"
        )


@pytest.fixture(params=EVERYWHERE)
def account(request):
    if request.param == "the emulator":
        return EmulatedBeforehand(*(request.getfixturevalue(name) for name in ("local_aws", "emulator_clients")))
    fake = FakeServiceLimits()
    return ModelledBeforehand(fake if request.param == "the fake" else fake.model, fake.model)


def test_what_runs_beside_a_group_is_reported(account):
    assert (account.port.refreshes(account.group), account.port.scheduled(account.group)) == ((), ())
    refresh = account.refresh()
    account.schedule()
    assert account.port.refreshes(account.group) == (refresh,)
    assert account.port.scheduled(account.group) == ("nightly",)


def test_versions_and_images_are_reported_and_an_unknown_image_is_not(account):
    assert account.port.control_plane(account.cluster) == KUBERNETES_VERSION
    images = account.port.images([account.image, GONE])
    assert list(images) == [account.image]
    assert images[account.image].architecture == "amd64"
    assert images[account.image].owner


class LiveAlarms:
    """CloudWatch of the local AWS."""

    def __init__(self, local_aws, clients):
        self.describe, self._cloudwatch = CloudWatchAlarms(clients).describe, local_aws.client("cloudwatch")

    def quiet(self, name):
        self._set(name, "OK")

    def ring(self, name):
        self._set(name, "ALARM")

    def _set(self, name, state):
        self._cloudwatch.put_metric_alarm(
            AlarmName=name,
            ComparisonOperator="GreaterThanThreshold",
            EvaluationPeriods=1,
            MetricName="errors",
            Namespace="web",
            Period=60,
            Statistic="Sum",
            Threshold=1.0,
        )
        self._cloudwatch.set_alarm_state(AlarmName=name, StateValue=state, StateReason="a test")


@pytest.fixture(params=EVERYWHERE)
def alarms(request):
    if request.param == "the emulator":
        return LiveAlarms(*(request.getfixturevalue(name) for name in ("local_aws", "emulator_clients")))
    return FakeAlarms() if request.param == "the fake" else SimAlarms()


def test_those_that_ring_and_those_that_do_not_exist_hold(alarms):
    one, two, three = (f"{word}-{uuid.uuid4().hex[:6]}" for word in ("z", "a", "m"))
    assert read_alarms([one, two], alarms).missing == (one, two)
    alarms.quiet(one)
    alarms.ring(two)
    reading = read_alarms([three, two, one, two], alarms)
    assert ([alarm.name for alarm in reading.ringing], reading.missing) == ([two], (three,))
    assert reading.ringing[0].since is not None
    alarms.quiet(two)
    assert read_alarms([one, two], alarms).holds == ""


IMAGE = "ami-new"


@pytest.fixture(params=["the model", "the fake"])
def templates(request):
    return FakeTemplates() if request.param == "the fake" else SimTemplates([template_of("web-a")])


def test_parameters_and_images_are_there_or_not(templates):
    templates.parameters["/eks/ami"] = IMAGE
    templates.missing.add("ami-gone")
    assert templates.image_behind("/eks/ami") == IMAGE
    assert (templates.image_exists(IMAGE), templates.image_exists("ami-gone")) == (True, False)
    with pytest.raises(ObjectGoneError):
        templates.image_behind("/eks/other")


def test_the_fakes_versions_count_as_the_models_do(templates):
    first = templates.numbered(LaunchTemplateRef(name="web-a"))
    second = templates.version_for(first, IMAGE, token="t")
    assert (first.version, second.version) == ("1", "2")
    assert templates.version_for(first, IMAGE, token="t") == second
    assert templates.version_for(second, IMAGE, token="u") == second
    assert templates.version_for(first, IMAGE, token="u").version == "3"
    with pytest.raises(ObjectGoneError):
        templates.numbered(LaunchTemplateRef(name="no-such-template"))


class TestTheFakeGroup:
    """The steps of `autoscaling/test_upgrading.py` that need no instances that live."""

    @pytest.fixture
    def groups(self):
        override = Override(instance_type="m6g.large")
        source = LaunchSource(template=LaunchTemplateRef(name="web-a", version="1"), overrides=(override,))
        return FakeGroups([replace(a_group("web-a", "i-1", "i-2", maximum=4), launch=source)])

    @pytest.fixture
    def changes(self, groups):
        return FakeGroupChanges(groups)

    def now(self, groups):
        return groups.describe(["web-a"])["web-a"]

    def test_it_points_at_the_version_and_keeps_its_overrides(self, groups, changes):
        new = LaunchTemplateRef(id="lt-web-a", name="web-a", version="2")
        changes.point_at(self.now(groups), new)
        changes.point_at(self.now(groups), new)
        assert self.now(groups).launch.template == new
        assert [one.instance_type for one in self.now(groups).launch.overrides] == ["m6g.large"]

    def test_no_size_is_lowered_and_the_maximum_comes_back_only_above_the_desired_size(self, groups, changes):
        changes.raise_to("web-a", desired=1, maximum=1)
        assert (self.now(groups).desired, self.now(groups).maximum) == (2, 4)
        changes.raise_to("web-a", desired=5, maximum=6)
        assert (self.now(groups).desired, self.now(groups).maximum) == (5, 6)
        assert not changes.put_back_maximum("web-a", 4)
        assert changes.put_back_maximum("web-a", 5)
        assert changes.put_back_maximum("web-a", 9)
        assert self.now(groups).maximum == 5
        with pytest.raises(InvalidInputError):
            changes.raise_to("web-a", desired=6)

    def test_processes_are_suspended_once_and_resumed_once(self, groups, changes):
        for _ in range(2):
            changes.suspend("web-a", "Launch")
        assert self.now(groups).suspended == ("Launch",)
        for _ in range(2):
            changes.resume("web-a", "Launch")
        assert self.now(groups).suspended == ()

    def test_a_group_that_is_not_there_is_gone_and_a_launch_configuration_is_refused(self, groups, changes):
        with pytest.raises(ObjectGoneError):
            changes.suspend("other", "Launch")
        old = replace(self.now(groups), launch=LaunchSource(configuration="old"))
        groups.by_name["web-a"] = old
        with pytest.raises(InvalidInputError):
            changes.point_at(old, LaunchTemplateRef(name="web-a", version="2"))
