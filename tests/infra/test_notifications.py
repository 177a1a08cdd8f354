"""Events on the bus, and the webhook that a cluster's settings name: who calls it and what becomes of a failure."""

import json

import pytest

from leeward.errors import InvalidInputError
from leeward.notifications.events import EventType
from leeward.notifications.workflow_events import PauseEventType, RunEventType, UpgradeEventType
from tests.infra.conftest import NODES, synthesize
from tests.infra.event_pattern import matches

URL = "https://hooks.example.com/T1"
SECRET = "arn:aws:secretsmanager:us-east-1:111122223333:secret:leeward-webhook-AbCdEf"
VERSION = "EXAMPLE1-90ab-cdef-fedc-ba987EXAMPLE"
RULE = "arn:aws:events:us-east-1:111122223333:rule/leeward-notifications/leeward-blue-notifications"
BUS = "arn:aws:events:us-east-1:111122223333:event-bus/leeward-notifications"
QUEUE_URL = "https://sqs.us-east-1.amazonaws.com/111122223333/leeward-notifications-undelivered"
QUEUE = "arn:aws:sqs:us-east-1:111122223333:leeward-notifications-undelivered"


def settings_file(folder, cluster, webhook):
    path = folder / f"{cluster}.yaml"
    head = f"apiVersion: leeward.dev/v1\nkind: ClusterSettings\nmetadata: {{name: {cluster}}}\n"
    path.write_text(f"{head}spec: {json.dumps({'webhook': webhook})}\n")
    return str(path)


def deployment(folder, url=URL, green=None, **webhook):
    blue = {
        "name": "blue",
        "policies": ["policies/default.yaml", settings_file(folder, "blue", {"url": url, **webhook})],
    }
    green = {"name": "green", "policies": ["policies/default.yaml", settings_file(folder, "green", green)]}
    home = {"account": "111122223333", "region": "us-east-1"}
    return synthesize(folder / "out", leeward={"clusters": [blue | home, green | home], "nodeRoles": [NODES]})


@pytest.fixture(scope="module")
def reported(tmp_path_factory):
    return deployment(tmp_path_factory.mktemp("webhook"))


def event(cluster, turn=EventType.DETECTED, source="leeward"):
    return {"source": source, "detail-type": turn.value, "detail": {"cluster": cluster}}


@pytest.mark.parametrize("turn", [*EventType, *PauseEventType, *UpgradeEventType, *RunEventType])
def test_every_event_of_the_cluster_goes_to_its_webhook_and_no_other(reported, turn):
    rule = reported.named("AWS::Events::Rule")["leeward-blue-notifications"]
    assert matches(rule["EventPattern"], event("blue", turn))
    assert not matches(rule["EventPattern"], event("green", turn))
    assert not matches(rule["EventPattern"], event("blue", turn, source="forged"))
    assert "leeward-green-notifications" not in reported.named("AWS::Events::Rule")


def test_the_webhook_gets_the_detail_and_what_it_does_not_take_is_kept(reported):
    (target,) = reported.named("AWS::Events::Rule")["leeward-blue-notifications"]["Targets"]
    assert (target["InputPath"], target["DeadLetterConfig"]) == ("$.detail", {"Arn": QUEUE})
    destination = reported.one("AWS::Events::ApiDestination")
    assert (destination["InvocationEndpoint"], destination["HttpMethod"]) == (URL, "POST")
    policies = reported.resources("AWS::SQS::QueuePolicy").values()
    (policy,) = [p for p in policies if p["Queues"] == [QUEUE_URL]]
    (ours,) = [s for s in policy["PolicyDocument"]["Statement"] if s.get("Sid") == "OurRules"]
    assert ours["Condition"] == {"ArnEquals": {"aws:SourceArn": [RULE]}}


def test_only_our_rule_may_wear_the_role_that_calls_it(reported):
    (role,) = [r for r in reported.resources("AWS::IAM::Role").values() if "webhooks" in r.get("Description", "")]
    (trust,) = role["AssumeRolePolicyDocument"]["Statement"]
    assert trust["Principal"] == {"Service": "events.amazonaws.com"}
    assert trust["Condition"]["ArnEquals"]["aws:SourceArn"] == [RULE]
    (policy,) = role["Policies"]
    (statement,) = policy["PolicyDocument"]["Statement"]
    assert statement["Action"] == "events:InvokeApiDestination"


def test_without_a_webhook_there_is_nothing_of_it(template):
    assert not template.resources("AWS::Events::ApiDestination")
    assert not template.resources("AWS::Events::Connection")
    assert not template.resources("AWS::Events::EventBus")
    assert (
        "WEBHOOK_BUS"
        not in template.named("AWS::Lambda::Function")["leeward-notifications"]["Environment"]["Variables"]
    )


@pytest.fixture(scope="module")
def secret(tmp_path_factory):
    """Blue's webhook has a secret in a header of its own, green's has none."""
    folder = tmp_path_factory.mktemp("secret")
    return deployment(folder, green={"url": URL}, secretArn=SECRET, secretVersion=VERSION, header="Authorization")


def test_a_secret_is_in_the_template_by_its_reference_alone(secret):
    connections = secret.named("AWS::Events::Connection")
    blue = connections["leeward-blue-webhook"]["AuthParameters"]
    assert blue["ApiKeyAuthParameters"] == {
        "ApiKeyName": "Authorization",
        "ApiKeyValue": f"{{{{resolve:secretsmanager:{SECRET}:SecretString:::{VERSION}}}}}",
    }
    headers = blue["InvocationHttpParameters"]["HeaderParameters"]
    assert headers == [{"Key": "Leeward-Event", "Value": "1", "IsValueSecret": False}]
    green = connections["leeward-webhook"]["AuthParameters"]
    assert green == {"ApiKeyAuthParameters": {"ApiKeyName": "Leeward-Event", "ApiKeyValue": "1"}}


@pytest.mark.parametrize(
    ("form", "place", "key"),
    [("teams", "QueryStringParameters", "sig"), ("pagerduty", "BodyParameters", "routing_key")],
)
def test_a_message_goes_to_the_webhook_with_the_secret_in_its_own_place(tmp_path, form, place, key):
    made = deployment(tmp_path, format=form, secretArn=SECRET, secretVersion=VERSION)
    rule = made.named("AWS::Events::Rule")["leeward-blue-notifications"]
    assert rule["Targets"][0]["InputPath"] == "$.detail.message"
    with_message = event("blue")
    assert not matches(rule["EventPattern"], with_message)  # PagerDuty has no use for each event
    with_message["detail"]["format"] = form
    assert matches(rule["EventPattern"], with_message)
    parameters = made.named("AWS::Events::Connection")["leeward-blue-webhook"]["AuthParameters"]
    reference = f"{{{{resolve:secretsmanager:{SECRET}:SecretString:::{VERSION}}}}}"
    assert parameters["InvocationHttpParameters"][place] == [{"Key": key, "Value": reference, "IsValueSecret": True}]
    assert parameters["ApiKeyAuthParameters"] == {"ApiKeyName": "Leeward-Event", "ApiKeyValue": "1"}
    environment = made.named("AWS::Lambda::Function")["leeward-notifications"]["Environment"]["Variables"]
    assert json.loads(environment["WEBHOOKS"]) == {"blue": form}
    assert environment["WEBHOOK_BUS"] == "leeward-notifications"


def test_each_webhook_is_called_with_its_own_connection(secret):
    destinations = secret.named("AWS::Events::ApiDestination")
    assert destinations["leeward-blue-webhook"]["ConnectionArn"].endswith("connection/leeward-blue-webhook")
    assert destinations["leeward-green-webhook"]["ConnectionArn"].endswith("connection/leeward-webhook")


def test_a_secret_of_another_region_is_refused_at_synth(tmp_path):
    with pytest.raises(InvalidInputError, match=r"webhook\.secretArn in eu-west-1, expected one in us-east-1"):
        deployment(tmp_path, secretArn=SECRET.replace("us-east-1", "eu-west-1"))


def test_without_a_version_the_current_one_is_read_at_the_deployment(tmp_path):
    made = deployment(tmp_path, secretArn=SECRET)
    key = made.one("AWS::Events::Connection")["AuthParameters"]["ApiKeyAuthParameters"]
    assert key == {
        "ApiKeyName": "Leeward-Secret",
        "ApiKeyValue": f"{{{{resolve:secretsmanager:{SECRET}:SecretString:::}}}}",
    }


@pytest.mark.parametrize(
    "url",
    ["https://user:hunter2@hooks.example.com/", "https://hooks.example.com/in?token=hunter2"],
)
def test_a_secret_in_the_url_is_refused_without_repeating_it(tmp_path, url):
    with pytest.raises(InvalidInputError, match=r"spec\.webhook\.url: found .*Secrets Manager.*secretArn") as refused:
        deployment(tmp_path, url)
    assert "hunter2" not in str(refused.value)


def test_a_webhook_that_eventbridge_cannot_call_is_refused_at_synth(tmp_path):
    with pytest.raises(InvalidInputError, match=r"http://hooks\.example\.com.*https://"):
        deployment(tmp_path, "http://hooks.example.com/T1")


def test_the_table_streams_its_changes_and_the_function_reads_what_it_announces_alone(template):
    table = template.named("AWS::DynamoDB::Table")["leeward"]
    assert table["StreamSpecification"] == {"StreamViewType": "NEW_AND_OLD_IMAGES"}
    mappings = template.resources("AWS::Lambda::EventSourceMapping").values()
    (mapping,) = [m for m in mappings if m["FunctionName"] == "leeward-notifications"]
    (filter_,) = mapping["FilterCriteria"]["Filters"]
    keys = [{"prefix": f"{kind}#"} for kind in ("termination", "pause", "upgrade", "disruption")]
    assert json.loads(filter_["Pattern"]) == {"dynamodb": {"Keys": {"pk": {"S": keys}}}}
    assert mapping["StartingPosition"] == "TRIM_HORIZON"
    assert mapping["BisectBatchOnFunctionError"] is True
    assert mapping["DestinationConfig"] == {"OnFailure": {"Destination": QUEUE}}


def test_what_the_function_puts_on_the_buses_comes_from_leeward_alone(template, reported):
    default = "arn:aws:events:us-east-1:111122223333:event-bus/default"
    for stack, buses in ((template, (default,)), (reported, (default, BUS))):
        role = stack.named("AWS::Lambda::Function")["leeward-notifications"]["Role"]
        (statement,) = [s for s in stack.statements(role) if s.actions == ("events:PutEvents",)]
        assert statement.conditions == {"StringEquals": {"events:source": "leeward"}}
        assert statement.resources == buses


def test_no_other_function_may_put_events(reported):
    roles = {name: each["Role"] for name, each in reported.named("AWS::Lambda::Function").items()}
    may = {
        name
        for name, role in roles.items()
        if any("events:PutEvents" in statement.actions for statement in reported.statements(role))
    }
    assert may == {"leeward-notifications"}


def test_the_webhooks_read_a_bus_on_which_the_function_alone_may_put_events(reported):
    rule = reported.named("AWS::Events::Rule")["leeward-blue-notifications"]
    assert rule["EventBusName"] == reported.one("AWS::Events::EventBus")["Name"] == "leeward-notifications"
    policy = reported.one("AWS::Events::EventBusPolicy")
    role = reported.named("AWS::Lambda::Function")["leeward-notifications"]["Role"]
    assert policy["EventBusName"] == "leeward-notifications"
    assert policy["Statement"] == {
        "Effect": "Deny",
        "Principal": "*",
        "Action": "events:PutEvents",
        "Resource": BUS,
        "Condition": {"ArnNotEquals": {"aws:PrincipalArn": role}},
    }


def test_the_undelivered_events_take_no_message_of_others(template, reported):
    for stack, rules in ((template, {}), (reported, {"aws:SourceArn": [RULE]})):
        policies = stack.resources("AWS::SQS::QueuePolicy").values()
        (policy,) = [p for p in policies if p["Queues"] == [QUEUE_URL]]
        (refusal,) = [s for s in policy["PolicyDocument"]["Statement"] if s.get("Sid") == "RefuseOthers"]
        role = stack.named("AWS::Lambda::Function")["leeward-notifications"]["Role"]
        assert (refusal["Effect"], refusal["Action"]) == ("Deny", "sqs:SendMessage")
        assert refusal["Condition"]["ArnNotEquals"] == {**rules, "aws:PrincipalArn": [role]}
