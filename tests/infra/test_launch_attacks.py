"""What a function could launch with its role if it ran foreign code: a launch is denied where one of its requests is.

Contexts as EC2's guide describes them. What Auto Scaling really sends only an account can show
(docs/account-results.md)."""

from dataclasses import dataclass, field

import pytest

from tests.infra.conftest import NODES
from tests.infra.iam_evaluator import Request, allows

HERE = "us-east-1:111122223333"
LAUNCHING = ("drain", "upgrade", "disrupt")
OURS = {"aws:ResourceTag/kubernetes.io/cluster/blue": "owned"}
MANAGED = {"aws:ResourceTag/eks:cluster-name": "blue"}
THEIRS = {"aws:ResourceTag/kubernetes.io/cluster/other": "owned"}
TEMPLATE = f"arn:aws:ec2:{HERE}:launch-template/lt-0123456789abcdef0"
TO_EC2 = {"iam:PassedToService": "ec2.amazonaws.com"}
OF_TEMPLATE = ("image", "security-group", "key-pair", "snapshot")
BESIDE = ("subnet", "network-interface", "volume", "placement-group", "capacity-reservation", "spot-instances-request")
OF_FLEET = ("fleet", "image", "subnet", "security-group", "network-interface", "volume", "instance", "placement-group")


def ec2(kind, name="x-1"):
    owner = "us-east-1:" if kind in {"image", "snapshot"} else HERE
    return f"arn:aws:ec2:{owner}:{kind}/{name}"


@dataclass(frozen=True, kw_only=True)
class Launch:
    """Requests that EC2 evaluates for one launch. `template`: tags of the launch template, None without one;
    `replaced`: what the caller has put in the place of the template's; `keys`: whether the launch template's keys are
    set; `service`: whether Auto Scaling makes the calls; `fleet`: whether by CreateFleet."""

    template: dict[str, str] | None = field(default_factory=lambda: OURS)
    replaced: tuple[str, ...] = ()
    keys: bool = True
    service: bool = False
    fleet: bool = False
    role: str = NODES

    def requests(self):
        """Each with its context."""
        via = {"aws:ViaAWSService": "true" if self.service else "false"}
        for action in ("ec2:CreateFleet", "ec2:RunInstances") if self.fleet else ("ec2:RunInstances",):
            if self.template is not None:
                yield Request(action=action, resource=TEMPLATE, context=self.template | via)
        for kind in OF_FLEET if self.fleet else ():
            yield Request(action="ec2:CreateFleet", resource=ec2(kind), context=via)
        for kind in ("instance", *OF_TEMPLATE, *BESIDE):
            yield Request(action="ec2:RunInstances", resource=ec2(kind), context=self._keys(kind) | via)
        yield Request(action="iam:PassRole", resource=self.role, context=TO_EC2 | via)

    def _keys(self, kind):
        if self.template is None or not self.keys:
            return {}
        named = kind not in self.replaced and kind in {"instance", *OF_TEMPLATE}
        return {"ec2:LaunchTemplate": TEMPLATE, "ec2:IsLaunchTemplateResource": str(named).lower()}


NEEDED = {
    "LaunchInstances": Launch(fleet=True, service=True),
    "LaunchInstances, were it no call in the caller's name": Launch(fleet=True),
    "LaunchInstances, with a template of EKS": Launch(fleet=True, service=True, template=MANAGED),
    "a dry run for UpdateAutoScalingGroup": Launch(service=True),
    "a dry run that does not say which template": Launch(service=True, keys=False),
    "a dry run that is none in the caller's name": Launch(),
}
ATTACKS = {
    "no launch template": Launch(template=None),
    "another team's template": Launch(template=THEIRS),
    "a template without tags": Launch(template={}),
    "a fleet of another team's template": Launch(template=THEIRS, fleet=True),
    "a fleet of a template without tags": Launch(template={}, fleet=True),
    "Auto Scaling with another team's template": Launch(template=THEIRS, fleet=True, service=True),
    "an administrator's role": Launch(role="arn:aws:iam::111122223333:role/admin"),
    "an administrator's role, by Auto Scaling": Launch(
        role="arn:aws:iam::111122223333:role/admin", service=True, fleet=True
    ),
    "its own role": Launch(role="arn:aws:iam::111122223333:role/leeward-us-east-1-drain"),
    **{f"another {kind}": Launch(replaced=(kind,)) for kind in OF_TEMPLATE},
}


def of(everything, function):
    return everything.statements(everything.named("AWS::Lambda::Function")[f"leeward-{function}"]["Role"])


def denied(statements, launch):
    return [f"{one.action} on {one.resource}" for one in launch.requests() if not allows(statements, one)]


@pytest.mark.parametrize("function", LAUNCHING)
@pytest.mark.parametrize("name", NEEDED)
def test_what_auto_scaling_launches_for_the_function_is_allowed(everything, function, name):
    assert denied(of(everything, function), NEEDED[name]) == []


@pytest.mark.parametrize("function", LAUNCHING)
@pytest.mark.parametrize("name", ATTACKS)
def test_a_launch_of_foreign_code_is_denied(everything, function, name):
    assert denied(of(everything, function), ATTACKS[name])


@pytest.mark.parametrize("function", LAUNCHING)
def test_a_node_role_is_passed_to_ec2_alone(everything, function):
    for service in ("lambda.amazonaws.com", "ecs-tasks.amazonaws.com"):
        request = Request(action="iam:PassRole", resource=NODES, context={"iam:PassedToService": service})
        assert not allows(of(everything, function), request)


def test_a_function_that_launches_nothing_may_make_none_of_the_requests(everything):
    for function in ("interruption", "terminate", "disruption-planner", "sync", "notifications"):
        launch = NEEDED["LaunchInstances"]
        assert [one for one in launch.requests() if allows(of(everything, function), one)] == []


@pytest.mark.parametrize("kind", ["image", "subnet"])
def test_what_foreign_code_may_choose_in_a_fleet_is_what_the_documents_say(everything, kind):
    """An override of the fleet, from a template of ours with a node role (infra/risks.py, docs/security.md)."""
    assert allows(of(everything, "drain"), Request(action="ec2:CreateFleet", resource=ec2(kind)))
    in_place = {"ec2:LaunchTemplate": TEMPLATE, "ec2:IsLaunchTemplateResource": "false"}
    run = Request(action="ec2:RunInstances", resource=ec2(kind), context={**in_place, "aws:ViaAWSService": "false"})
    assert allows(of(everything, "drain"), run) is (kind == "subnet")
