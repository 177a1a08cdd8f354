"""Settle time of an empty node: with `auto` nothing, but only where no load balancer can send requests to the node."""

from dataclasses import replace
from datetime import timedelta

import pytest

from leeward.errors import AccessDeniedError, ClusterUnreachableError
from leeward.model.codec import decode, encode
from leeward.model.group import Group
from leeward.model.load_balancing import Service
from leeward.model.seen import Seen, SeenGroup
from leeward.policy.document import DrainPolicy
from leeward.termination.settling import settle_time
from tests.fakes.builders import a_group
from tests.fakes.clock import START

AUTO, MINUTE, NONE = DrainPolicy(settle=None), timedelta(minutes=1), timedelta()
ANNOTATION = "service.beta.kubernetes.io/aws-load-balancer-"
IP = {f"{ANNOTATION}nlb-target-type": "ip"}
PORTED = [{"port": 80, "nodePort": 30080}]


def a_service(annotations=None, **spec):
    meta = {"namespace": "shop", "name": "web", "annotations": annotations or {}}
    return Service.from_json({"metadata": meta, "spec": spec})


@pytest.mark.parametrize(
    ("service", "on_nodes"),
    [
        (a_service(), False),
        (a_service(type="ClusterIP", ports=[{"port": 80}]), False),
        (a_service(type="ClusterIP", externalIPs=["198.51.100.7"]), True),
        (a_service(type="NodePort", ports=PORTED), True),
        (a_service(type="LoadBalancer", ports=PORTED), True),
        (a_service(type="LoadBalancer", ports=[{"port": 80}]), True),
        (a_service(IP, type="LoadBalancer", ports=PORTED), True),  # the cloud provider ignores the annotation
        (a_service({**IP, f"{ANNOTATION}type": "external"}, type="LoadBalancer", ports=PORTED), False),
        (a_service({f"{ANNOTATION}type": "external"}, type="LoadBalancer", ports=PORTED), True),
        (a_service({f"{ANNOTATION}type": "nlb-ip"}, type="LoadBalancer", ports=PORTED), False),
        (a_service(IP, type="LoadBalancer", ports=PORTED, loadBalancerClass="service.k8s.aws/nlb"), False),
        (a_service(IP, type="LoadBalancer", ports=PORTED, loadBalancerClass="io.cilium/bgp"), True),
    ],
)
def test_a_service_is_reached_through_nodes_unless_pods_are_its_targets(service, on_nodes):
    assert service.on_nodes is on_nodes
    assert settle_time(AUTO, a_group(), lambda: [service]) == (MINUTE if on_nodes else NONE)


@pytest.mark.parametrize(
    "attached",
    [
        {"TargetGroupARNs": ["arn:aws:elasticloadbalancing:eu-central-1:111111111111:targetgroup/web/1"]},
        {"LoadBalancerNames": ["web"]},
        {"TrafficSources": [{"Identifier": "targetgroup/tg-1", "Type": "vpc-lattice"}]},
    ],
)
def test_a_load_balancer_of_the_group_calls_for_the_wait_and_no_service_is_read(attached):
    group = Group.from_json({"AutoScalingGroupName": "web", **attached})
    assert settle_time(AUTO, group, lambda: pytest.fail("read")) == MINUTE
    seen = Seen(group=SeenGroup(at=START, facts=replace(group), lifecycle="InService"))
    assert decode(Seen, encode(seen)).group.facts.balancers == group.balancers


@pytest.mark.parametrize("error", [AccessDeniedError("forbidden"), ClusterUnreachableError("no answer")])
def test_anything_unknown_counts_as_reached(error):
    def unread():
        raise error

    assert settle_time(AUTO, a_group(), unread) == MINUTE
    assert settle_time(AUTO, a_group(), lambda: None) == MINUTE
    assert settle_time(AUTO, None, lambda: []) == MINUTE


def test_a_duration_of_the_policy_holds_whatever_there_is():
    assert settle_time(DrainPolicy(), a_group(), lambda: pytest.fail("read")) == MINUTE
    assert settle_time(DrainPolicy(settle=NONE), None, lambda: pytest.fail("read")) == NONE
