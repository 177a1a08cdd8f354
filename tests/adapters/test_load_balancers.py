"""Target groups, tags and health: which calls are made, how often, and what errors become."""

from dataclasses import replace

import pytest

from leeward.adapters.aws.load_balancers import (
    LISTED,
    SEEN,
    TAGS_PER_CALL,
    AwsLoadBalancers,
    ClassicLoadBalancers,
    TargetGroups,
)
from leeward.errors import AccessDeniedError, ThrottledError
from leeward.model.instance import Instance
from leeward.model.load_balancing import LoadBalancerTarget, TargetKind, is_of
from tests.fakes.builders import CLUSTER, an_instance
from tests.fakes.clock import FakeClock

MINE = {"Key": "elbv2.k8s.aws/cluster", "Value": CLUSTER}
OTHERS = {"Key": "elbv2.k8s.aws/cluster", "Value": "green"}
I = an_instance()  # noqa: E741


def arn(number):
    return f"arn:aws:elasticloadbalancing:us-east-1:111122223333:targetgroup/g-{number}/{number:016x}"


def listed(aws, *numbers, kind="instance"):
    groups = [
        {"TargetGroupArn": arn(number), "TargetGroupName": f"g-{number}", "TargetType": kind} for number in numbers
    ]
    aws.expect("elbv2", "describe_target_groups", {}, {"TargetGroups": groups})


def tagged(aws, tags):
    answer = [{"ResourceArn": arn(number), "Tags": [tag]} for number, tag in tags.items()]
    aws.expect("elbv2", "describe_tags", {"ResourceArns": [arn(n) for n in tags]}, {"TagDescriptions": answer})


def healthy(aws, number, *ids, state="healthy"):
    found = [{"Target": {"Id": one, "Port": 30080}, "TargetHealth": {"State": state}} for one in ids]
    aws.expect("elbv2", "describe_target_health", {"TargetGroupArn": arn(number)}, {"TargetHealthDescriptions": found})


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def balancers(aws, clock):
    return TargetGroups(aws.clients, clock)


def test_only_groups_of_the_cluster_are_asked_for_health(aws, balancers):
    listed(aws, 1, 2)
    tagged(aws, {1: MINE, 2: OTHERS})
    healthy(aws, 1, I.id, "i-0other")
    (target,) = balancers.targets(CLUSTER, I)
    assert target == LoadBalancerTarget(group="g-1", kind=TargetKind.INSTANCE, id=I.id, port=30080, state="healthy")


def test_an_account_without_target_groups_costs_one_call(aws, balancers):
    listed(aws)
    assert list(balancers.targets(CLUSTER, I)) == []


def test_many_drains_at_once_share_their_calls(aws, balancers, clock):
    listed(aws, 1)
    tagged(aws, {1: MINE})
    healthy(aws, 1, I.id, "i-0other")
    for name in (I.id, "i-0other", "i-0third"):
        balancers.targets(CLUSTER, an_instance(name))
    clock.advance(seconds=SEEN.total_seconds() + 1)
    healthy(aws, 1)
    assert list(balancers.targets(CLUSTER, I)) == []


def test_tags_are_asked_once_twenty_at_a_time_and_groups_again_after_a_minute(aws, balancers, clock):
    numbers = range(TAGS_PER_CALL + 5)
    listed(aws, *numbers)
    tagged(aws, dict.fromkeys(numbers[:TAGS_PER_CALL], OTHERS))
    tagged(aws, dict.fromkeys(numbers[TAGS_PER_CALL:], OTHERS))
    assert list(balancers.targets(CLUSTER, I)) == []
    clock.advance(seconds=LISTED.total_seconds() + 1)
    listed(aws, *numbers, 99)
    tagged(aws, {99: OTHERS})
    assert list(balancers.targets(CLUSTER, I)) == []


def test_a_group_that_is_removed_while_its_tags_are_asked_costs_no_other_its_answer(aws, balancers):
    listed(aws, 1, 2)
    aws.refuse("elbv2", "describe_tags", "TargetGroupNotFound")
    aws.refuse("elbv2", "describe_tags", "TargetGroupNotFound", parameters={"ResourceArns": [arn(1)]})
    tagged(aws, {2: MINE})
    healthy(aws, 2, I.id)
    assert [target.group for target in balancers.targets(CLUSTER, I)] == ["g-2"]


def test_a_group_that_is_removed_before_its_health_is_asked_has_none(aws, balancers):
    listed(aws, 1)
    tagged(aws, {1: MINE})
    aws.refuse("elbv2", "describe_target_health", "TargetGroupNotFound")
    assert list(balancers.targets(CLUSTER, I)) == []


def test_targets_of_no_use_and_groups_of_functions_are_left_out(aws, balancers):
    listed(aws, 1)
    tagged(aws, {1: MINE})
    healthy(aws, 1, I.id, state="unused")
    assert list(balancers.targets(CLUSTER, I)) == []
    other = TargetGroups(aws.clients, FakeClock())
    listed(aws, 3, kind="lambda")
    assert list(other.targets(CLUSTER, I)) == []


@pytest.mark.parametrize(("code", "error"), [("Throttling", ThrottledError), ("AccessDenied", AccessDeniedError)])
def test_what_is_refused_is_named_with_its_call(aws, balancers, code, error):
    aws.refuse("elbv2", "describe_target_groups", code)
    with pytest.raises(error, match="elasticloadbalancing:DescribeTargetGroups"):
        balancers.targets(CLUSTER, I)


@pytest.mark.parametrize(
    ("address", "at_it"),
    [("10.0.0.7", True), ("10.0.1.15", True), ("10.0.1.16", False), ("fd00::7", True), ("no-address", False)],
)
def test_an_address_belongs_to_the_instance_whose_interfaces_have_it_or_its_prefix(address, at_it):
    instance = replace(I, networks=("10.0.0.7", "10.0.1.0/28", "fd00::7"))
    target = LoadBalancerTarget(group="g", kind=TargetKind.IP, id=address, port=80, state="healthy")
    assert is_of(target, instance) is at_it


def test_an_instance_knows_the_addresses_and_prefixes_of_all_its_interfaces():
    interfaces = [
        {"PrivateIpAddresses": [{"PrivateIpAddress": "10.0.0.7"}, {"PrivateIpAddress": "10.0.0.8"}]},
        {"Ipv4Prefixes": [{"Ipv4Prefix": "10.0.1.0/28"}], "Ipv6Addresses": [{"Ipv6Address": "fd00::7"}]},
        {"Ipv6Prefixes": [{"Ipv6Prefix": "fd00:1::/80"}]},
    ]
    raw = {"InstanceId": "i-0abc", "NetworkInterfaces": interfaces}
    assert Instance.from_json(raw).networks == ("10.0.0.7", "10.0.0.8", "fd00::7", "10.0.1.0/28", "fd00:1::/80")


class TestClassic:
    @pytest.fixture
    def classic(self, aws, clock):
        return ClassicLoadBalancers(aws.clients, clock)

    def listed(self, aws, *names):
        found = [{"LoadBalancerName": name} for name in names]
        aws.expect("elb", "describe_load_balancers", {}, {"LoadBalancerDescriptions": found})

    def tagged(self, aws, **clusters):
        found = [
            {"LoadBalancerName": name, "Tags": [{"Key": f"kubernetes.io/cluster/{of}", "Value": "owned"}]}
            for name, of in clusters.items()
        ]
        aws.expect("elb", "describe_tags", {"LoadBalancerNames": list(clusters)}, {"TagDescriptions": found})

    def says(self, aws, name, state, description="N/A"):
        found = [{"InstanceId": I.id, "State": state, "Description": description}]
        aws.expect("elb", "describe_instance_health", {"LoadBalancerName": name}, {"InstanceStates": found})

    def test_an_instance_is_a_target_of_the_clusters_load_balancers_until_it_is_deregistered(self, aws, classic):
        self.listed(aws, "mine", "theirs")
        self.tagged(aws, mine=CLUSTER, theirs="green")
        self.says(aws, "mine", "InService")
        (target,) = classic.targets(CLUSTER, I)
        assert (target.group, target.state, target.draining) == ("mine", "InService", False)
        self.says(aws, "mine", "InService", "Instance deregistration currently in progress.")
        assert [one.draining for one in classic.targets(CLUSTER, I)] == [True]

    def test_one_that_is_removed_meanwhile_costs_no_other_its_answer(self, aws, classic, clock):
        self.listed(aws, "gone", "mine")
        aws.refuse("elb", "describe_tags", "LoadBalancerNotFound")
        aws.refuse("elb", "describe_tags", "LoadBalancerNotFound")
        self.tagged(aws, mine=CLUSTER)
        aws.refuse("elb", "describe_instance_health", "LoadBalancerNotFound")
        assert list(classic.targets(CLUSTER, I)) == []

    def test_a_name_that_comes_again_is_asked_for_its_tags_again(self, aws, classic, clock):
        for names, tags in ((("mine",), {"mine": "green"}), ((), {}), (("mine",), {"mine": CLUSTER})):
            self.listed(aws, *names)
            if tags:
                self.tagged(aws, **tags)
            if tags.get("mine") == CLUSTER:
                self.says(aws, "mine", "InService")
            found = classic.targets(CLUSTER, I)
            clock.advance(seconds=LISTED.total_seconds() + 1)
        assert [target.group for target in found] == ["mine"]

    def test_both_generations_are_reported_together(self, aws, clock):
        listed(aws, 1)
        tagged(aws, {1: MINE})
        healthy(aws, 1, I.id)
        self.listed(aws, "mine")
        self.tagged(aws, mine=CLUSTER)
        self.says(aws, "mine", "InService")
        found = AwsLoadBalancers(aws.clients, clock).targets(CLUSTER, I)
        assert [target.group for target in found] == ["g-1", "mine"]
