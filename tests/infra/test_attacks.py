"""What a function could do with its role if it ran foreign code: each attack is denied, the call beside it, which the
function needs, is allowed."""

import json
from dataclasses import replace

import pytest
import yaml

from tests.infra.conftest import ROOT, SENDER
from tests.infra.iam_evaluator import Request, allows, denies
from tests.infra.table_requests import table_request
from tests.infra.template import statements_of

HERE = "us-east-1:111122223333"
ADMIN = "arn:aws:iam::111122223333:role/admin"
OURS = {"aws:ResourceTag/kubernetes.io/cluster/blue": "owned"}
THEIRS = {"aws:ResourceTag/kubernetes.io/cluster/other": "owned"}
TEMPLATE = f"arn:aws:ec2:{HERE}:launch-template/lt-0123456789abcdef0"
GROUP = f"arn:aws:autoscaling:{HERE}:autoScalingGroup:0a1b:autoScalingGroupName/web"
TO_EC2 = {"iam:PassedToService": "ec2.amazonaws.com"}


def on(resource, action, **context):
    return Request(action=action, resource=resource, context=context)


def cases():
    """(name, function, attack, the call that the function needs)."""
    version = "ec2:CreateLaunchTemplateVersion"
    yield (
        "a version of another team's template",
        "upgrade",
        Request(action=version, resource=TEMPLATE, context=THEIRS),
        Request(action=version, resource=TEMPLATE, context=OURS),
    )
    for one, action in (
        ("interruption", "autoscaling:CompleteLifecycleAction"),
        ("interruption", "autoscaling:RecordLifecycleActionHeartbeat"),
        ("terminate", "autoscaling:CompleteLifecycleAction"),
        ("reconciler", "autoscaling:CompleteLifecycleAction"),
        ("drain", "autoscaling:RecordLifecycleActionHeartbeat"),
        ("sync", "autoscaling:DeleteLifecycleHook"),
        ("disrupt", "autoscaling:UpdateAutoScalingGroup"),
        ("terminate", "autoscaling:TerminateInstanceInAutoScalingGroup"),
        ("reconciler", "autoscaling:UpdateAutoScalingGroup"),
        ("sync", "autoscaling:PutLifecycleHook"),
        ("upgrade", "autoscaling:SuspendProcesses"),
        ("drain", "autoscaling:LaunchInstances"),
    ):
        yield (
            "a group of another team",
            one,
            Request(action=action, resource=GROUP, context=THEIRS),
            Request(action=action, resource=GROUP, context=OURS),
        )
    machine = f"arn:aws:ec2:{HERE}:instance/i-1"
    yield (
        "a reboot of another team's instance",
        "drain",
        Request(action="ec2:RebootInstances", resource=machine, context=THEIRS),
        Request(action="ec2:RebootInstances", resource=machine, context=OURS),
    )
    policies = f"arn:aws:ssm:{HERE}:parameter/leeward"
    read = "ssm:GetParametersByPath"
    yield (
        "policies of another cluster",
        "drain",
        on(f"{policies}/other/policies", read),
        on(f"{policies}/blue/policies", read),
    )
    for name in ("default", "leeward-notifications"):
        bus, send = f"arn:aws:events:{HERE}:event-bus/{name}", "events:PutEvents"
        yield (
            f"an event in the name of EC2 on the bus {name}",
            "notifications",
            Request(action=send, resource=bus, context={"events:source": "aws.ec2"}),
            Request(action=send, resource=bus, context={"events:source": "leeward"}),
        )


TERMINATION, FACTS, UPGRADE, DISRUPTION = "termination#i-1", "facts#blue#prices", "upgrade#web", "disruption#blue"
GET, MANY, PUT, CHANGE = (f"dynamodb:{name}" for name in ("GetItem", "BatchGetItem", "PutItem", "UpdateItem"))


def table_cases():
    """The same for items of the table: function, action, keys of the attack, keys that the function needs."""
    for what, one, action, keys, needed in (
        ("an upgrade's lease", "interruption", PUT, [UPGRADE], [TERMINATION]),
        ("an upgrade's pause switch", "interruption", CHANGE, [UPGRADE], [TERMINATION]),
        ("a disruption run", "interruption", PUT, [DISRUPTION], [TERMINATION]),
        ("prices", "interruption", PUT, [FACTS], [TERMINATION]),
        ("a record among others", "interruption", MANY, [TERMINATION, UPGRADE], [TERMINATION, "termination#i-2"]),
        ("no key", "interruption", PUT, [], [TERMINATION]),
        ("a termination record", "sync", PUT, [TERMINATION], [FACTS]),
        ("a termination record", "sync", MANY, [TERMINATION], [FACTS]),
        ("a termination record", "disruption-planner", PUT, [TERMINATION], [DISRUPTION]),
        ("an upgrade's lease", "disruption-planner", PUT, [UPGRADE], [DISRUPTION]),
        ("an upgrade's lease", "disrupt", PUT, [UPGRADE], [DISRUPTION]),
        ("an upgrade's lease", "terminate", PUT, [UPGRADE], [TERMINATION]),
        ("an upgrade's lease", "drain", PUT, [UPGRADE], ["maximum#web"]),
        ("a disruption run", "upgrade", PUT, [DISRUPTION], [UPGRADE]),
        ("the facts of fn sync", "upgrade", PUT, [FACTS], [UPGRADE]),
        ("a pre-flight plan", "drain", GET, ["plan#web"], [TERMINATION]),
    ):
        yield f"{what} ({', '.join(keys)})", one, table_request(action, *keys), table_request(action, *needed)


def cluster_role(cluster, access):
    """Ask to wear the role of a cluster."""
    arn = f"arn:aws:iam::111122223333:role/leeward-us-east-1-{cluster}-{access}"
    return Request(action="sts:AssumeRole", resource=arn)


def role_cases():
    """The same for the roles of clusters."""
    for one in ("interruption", "reconciler", "sync", "upgrade", "disruption-planner", "disrupt"):
        yield "a stronger role", one, cluster_role("blue", "act"), cluster_role("blue", "taint")
        yield "the role of another cluster", one, cluster_role("other", "taint"), cluster_role("blue", "taint")
    yield "the role of another cluster", "drain", cluster_role("other", "act"), cluster_role("blue", "act")
    yield "a role that is not its own", "drain", cluster_role("blue", "taint"), cluster_role("blue", "act")


def resource_policy_cases():
    """(resource's policy, attack of an administrator, the call that is needed): what no identity's policy can allow."""
    bus, put = f"arn:aws:events:{HERE}:event-bus/leeward-notifications", "events:PutEvents"
    function = {"aws:PrincipalArn": "{notifications}"}
    yield (
        "a forged event for the webhooks",
        "bus",
        on(bus, put, **{"aws:PrincipalArn": ADMIN}),
        on(bus, put, **function),
    )
    yield (
        "an event that a rule of others forwards",
        "bus",
        on(bus, put, **{"aws:PrincipalArn": ADMIN, "aws:SourceArn": f"arn:aws:events:{HERE}:rule/another"}),
        on(bus, put, **function),
    )
    send, rule = "sqs:SendMessage", {"aws:SourceArn": f"arn:aws:events:{HERE}:rule/leeward-spot-interruption"}
    change = {"aws:SourceArn": f"arn:aws:events:{HERE}:rule/leeward-state-change"}
    webhook = {"aws:SourceArn": f"arn:aws:events:{HERE}:rule/leeward-notifications/leeward-blue-notifications"}
    for queue, needed in (
        ("leeward-interruption", rule),
        ("leeward-interruption", {"aws:PrincipalArn": SENDER}),
        ("leeward-state-changes", change),
        ("leeward-interruption-dead-letters", rule),
        ("leeward-interruption-dead-letters", change),
        ("leeward-interruption-dead-letters", {"aws:PrincipalArn": "{interruption}"}),
        ("leeward-notifications-undelivered", {"aws:PrincipalArn": "{notifications}"}),
        ("leeward-notifications-undelivered", webhook),
    ):
        arn = f"arn:aws:sqs:{HERE}:{queue}"
        for attacker in ({"aws:PrincipalArn": ADMIN}, {"aws:SourceArn": f"arn:aws:events:{HERE}:rule/another"}):
            yield f"a message in {queue}", queue, on(arn, send, **attacker), on(arn, send, **needed)


def resource_policy(stack, name):
    """Statements of the policy of the webhooks' bus, or of a queue."""
    if name == "bus":
        return list(statements_of({"Statement": [stack.one("AWS::Events::EventBusPolicy")["Statement"]]}))
    (found,) = [
        policy["PolicyDocument"]
        for policy in stack.resources("AWS::SQS::QueuePolicy").values()
        if policy["Queues"][0].endswith(f"/{name}")
    ]
    return list(statements_of(found))


@pytest.mark.parametrize(
    ("name", "attack", "needed"),
    [pytest.param(*case[1:], id=f"{number}: {case[0]}") for number, case in enumerate(resource_policy_cases())],
)
def test_an_administrator_puts_nothing_where_leeward_alone_may(everything, name, attack, needed):
    statements = resource_policy(everything, name)
    functions = everything.named("AWS::Lambda::Function")
    roles = {function: functions[f"leeward-{function}"]["Role"] for function in ("interruption", "notifications")}
    context = {key: value.format(**roles) for key, value in needed.context.items()}
    assert denies(statements, attack)
    assert not denies(statements, replace(needed, context=context))


@pytest.mark.parametrize("bus", ["default", "leeward-members"])
def test_no_event_on_a_bus_that_others_write_to_reaches_a_webhook(everything, bus):
    """On the default bus any principal with events:PutEvents may use the source `leeward`."""
    assert everything.named("AWS::Events::ApiDestination")
    for rule in everything.resources("AWS::Events::Rule").values():
        if rule.get("EventBusName", "default") == bus:
            assert "api-destination" not in json.dumps(rule["Targets"])


@pytest.mark.parametrize("queue", ["leeward-interruption-dead-letters", "leeward-notifications-undelivered"])
def test_no_queue_of_others_moves_its_messages_to_the_dead_letters(everything, queue):
    """SQS moves them by the redrive policy of the source, without a SendMessage that a Deny would hold against."""
    allowed = everything.named("AWS::SQS::Queue")[queue]["RedriveAllowPolicy"]
    sources = [f"arn:aws:sqs:{HERE}:leeward-{name}" for name in ("interruption", "state-changes")]
    by_queue = {"redrivePermission": "byQueue", "sourceQueueArns": sources}
    assert allowed == (by_queue if queue.endswith("dead-letters") else {"redrivePermission": "denyAll"})


ALL = [
    pytest.param(function, attack, needed, id=f"{function}: {what}: {attack.action}")
    for what, function, attack, needed in (*cases(), *table_cases(), *role_cases())
]


@pytest.mark.parametrize(("function", "attack", "needed"), ALL)
def test_the_attack_is_denied_and_the_call_beside_it_is_allowed(everything, function, attack, needed):
    statements = everything.statements(everything.named("AWS::Lambda::Function")[f"leeward-{function}"]["Role"])
    assert not allows(statements, attack)
    assert allows(statements, needed)


def rules(group):
    """What a Kubernetes group may do by all manifests together, `patch nodes`."""
    documents = [one for path in (ROOT / "manifests").glob("*.yaml") for one in yaml.safe_load_all(path.read_text())]
    bound = {
        document["roleRef"]["name"]
        for document in documents
        if document["kind"] == "ClusterRoleBinding" and group in [one["name"] for one in document["subjects"]]
    }
    return {
        f"{verb} {resource}"
        for document in documents
        if document["kind"] == "ClusterRole" and document["metadata"]["name"] in bound
        for rule in document["rules"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


@pytest.mark.parametrize("name", ["interruption", "reconciler", "sync", "upgrade", "disruption-planner", "disrupt"])
@pytest.mark.parametrize(
    "attack",
    [
        "patch deployments/scale",
        "create pods/eviction",
        "patch pods/status",
        "delete pods",
        "delete nodes",
        "get secrets",
    ],
)
def test_no_function_but_the_drain_removes_pods_or_scales_kube_system(everything, name, attack):
    function = everything.named("AWS::Lambda::Function")[f"leeward-{name}"]
    allowed = rules(f"leeward:{function['Environment']['Variables']['KUBERNETES_ACCESS']}")
    assert attack not in allowed
    assert "patch nodes" in allowed


@pytest.mark.parametrize("access", ["read", "taint", "act"])
def test_no_role_changes_the_images_of_pods(access):
    """`patch pods` would run any image as the service account of any pod."""
    assert rules(f"leeward:{access}").isdisjoint({"patch pods", "update pods", "patch deployments", "create pods"})


@pytest.mark.parametrize("access", ["taint", "act"])
def test_a_cluster_role_trusts_no_function_of_the_other_one(everything, access):
    """The function's own role names the cluster's role, and the cluster's role names the function: both are needed."""
    functions = everything.named("AWS::Lambda::Function").values()
    wearers = {
        function["Role"]
        for function in functions
        if function["Environment"]["Variables"]["KUBERNETES_ACCESS"] == access
    }
    role = everything.named_roles("leeward-us-east-1-blue-")[access]
    (statement,) = role["AssumeRolePolicyDocument"]["Statement"]
    trusted = statement["Principal"]["AWS"]
    assert set([trusted] if isinstance(trusted, str) else trusted) == wearers
    assert statement["Action"] == "sts:AssumeRole"


WRITES_NOTHING_ELSEWHERE = (
    "iam:CreateRole",
    "iam:PutRolePolicy",
    "lambda:UpdateFunctionCode",
    "ec2:CreateLaunchTemplate",
    "ec2:ModifyInstanceAttribute",
    "autoscaling:CreateOrUpdateTags",
    "sts:AssumeRole",
    "ssm:PutParameter",
    "eks:CreateAccessEntry",
)


@pytest.mark.parametrize("action", WRITES_NOTHING_ELSEWHERE)
def test_no_function_can_widen_its_own_rights(everything, action):
    target = ADMIN if action.startswith(("iam:", "sts:")) else f"arn:aws:x:{HERE}:y/z"
    request = Request(action=action, resource=target, context={**OURS, **TO_EC2, "aws:ViaAWSService": "true"})
    for function in everything.named("AWS::Lambda::Function").values():
        assert not allows(everything.statements(function["Role"]), request), function["FunctionName"]
