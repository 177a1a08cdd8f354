"""AWS FIS on the local stack: requests and answers as in botocore's service model, and the refusals of AWS FIS."""

import json
import time
import urllib.request
import uuid
from pathlib import Path
from urllib.error import HTTPError

import botocore.session
import pytest
from botocore.exceptions import ClientError
from botocore.validate import ParamValidator

from documentation.blocks import blocks
from local.aws.fis.actions import ACTIONS, INTERRUPT, SHIFT, WAIT

pytestmark = pytest.mark.local

PATIENCE = 120.0  # seconds: only how long a test that fails takes
MODEL = botocore.session.get_session().get_service_model("fis")
ROLE = "arn:aws:iam::000000000000:role/fis"
INSTANCE = "arn:aws:ec2:us-east-1:000000000000:instance/i-0123456789abcdef0"
CLUSTER = "arn:aws:eks:us-east-1:000000000000:cluster/rehearsed"
SPOT = {"resourceType": "aws:ec2:spot-instance", "resourceArns": [INSTANCE], "selectionMode": "ALL"}
EKS = {"resourceType": "aws:arc:zonal-shift-managed-resource", "resourceArns": [CLUSTER], "selectionMode": "ALL"}
MINUTES = {"durationBeforeInterruption": "PT2M"}
AWAY = {"duration": "PT1M", "availabilityZoneIdentifier": "us-east-1a"}


def interruption(**more):
    return {"actionId": INTERRUPT, "parameters": MINUTES, "targets": {"SpotInstances": "nodes"}, **more}


def shift(**more):
    return {"actionId": SHIFT, "parameters": AWAY, "targets": {"ManagedResources": "nodes"}, **more}


def wait(**more):
    return {"actionId": WAIT, "parameters": {"duration": "PT1M"}, **more}


def template(**more):
    asked = {
        "clientToken": str(uuid.uuid4()),
        "description": "rehearsal",
        "roleArn": ROLE,
        "stopConditions": [{"source": "none"}],
        "targets": {"nodes": SPOT},
        "actions": {"interrupt": interruption()},
    }
    return {**asked, **more}


@pytest.fixture(scope="module")
def fis(local_aws):
    return local_aws.client("fis")


@pytest.fixture
def start(fis):
    """Start an experiment of a template; none is left running."""
    started = []

    def begin(**more):
        made = fis.create_experiment_template(**template(**more))["experimentTemplate"]
        started.append(fis.start_experiment(experimentTemplateId=made["id"])["experiment"]["id"])
        return started[-1]

    yield begin
    for name in started:
        if fis.get_experiment(id=name)["experiment"]["state"]["status"] in {"initiating", "running"}:
            fis.stop_experiment(id=name)


def until(look):
    deadline = time.monotonic() + PATIENCE
    while not (found := look()):
        assert time.monotonic() < deadline, "never true"
        time.sleep(0.05)
    return found


def ended(fis, name):
    def look():
        found = fis.get_experiment(id=name)["experiment"]
        return found if found["state"]["status"] in {"completed", "stopped", "failed"} else None

    return until(look)


def statuses(experiment):
    return {name: action["state"]["status"] for name, action in experiment["actions"].items()}


def sent(local_aws, method, path, body=None):
    """Send a request that no client checks; return the status, the error's code and the document."""
    scope = "Credential=local/20260101/us-east-1/fis/aws4_request"
    headers = {"Authorization": f"AWS4-HMAC-SHA256 {scope}, SignedHeaders=host, Signature=local"}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(local_aws.endpoint + path, data=data, method=method, headers=headers)
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, None, json.load(answer)
    except HTTPError as error:
        with error:
            return error.code, error.headers.get("x-amzn-ErrorType"), json.load(error)


def broken_answer(operation, document):
    """Return how an answer differs from the model, empty if it does not: types, and members that it does not have."""
    shape = MODEL.operation_model(operation).output_shape
    return ParamValidator().validate(document, shape).generate_report()


def test_every_answer_has_the_shape_of_the_service_model(local_aws):
    """botocore's own parser drops members that the model does not have, so this reads what was sent."""
    asked = template(actions={"pause": wait(), "interrupt": interruption(startAfter=["pause"])}, tags={"team": "web"})
    _, _, made = sent(local_aws, "POST", "/experimentTemplates", asked)
    name = made["experimentTemplate"]["id"]
    _, _, begun = sent(local_aws, "POST", "/experiments", {"clientToken": "t", "experimentTemplateId": name})
    path = f"/experiments/{begun['experiment']['id']}"
    until(lambda: sent(local_aws, "GET", path)[2]["experiment"]["state"]["status"] == "failed")
    answers = {
        "CreateExperimentTemplate": made,
        "StartExperiment": begun,
        "GetExperiment": sent(local_aws, "GET", path)[2],
        "ListExperiments": sent(local_aws, "GET", "/experiments")[2],
        "GetExperimentTemplate": sent(local_aws, "GET", f"/experimentTemplates/{name}")[2],
        "ListExperimentTemplates": sent(local_aws, "GET", "/experimentTemplates")[2],
        "GetAction": sent(local_aws, "GET", "/actions/aws:fis:wait")[2],
        "DeleteExperimentTemplate": sent(local_aws, "DELETE", f"/experimentTemplates/{name}")[2],
    }
    assert {operation: broken_answer(operation, document) for operation, document in answers.items()} == dict.fromkeys(
        answers, ""
    )
    assert [found for found in answers.values() if not any(found.values())] == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"stopConditions": []}, "no stop condition"),
        ({"stopConditions": [{"source": "hope"}]}, "hope is not supported"),
        ({"stopConditions": [{"source": "aws:cloudwatch:alarm"}]}, "needs the ARN of an alarm"),
        ({"actions": {}}, "no action"),
        ({"actions": {"a": interruption(actionId="aws:ec2:send-flowers")}}, "send-flowers is not supported"),
        ({"actions": {"a": interruption(targets={"SpotInstances": "others"})}}, "target others is not defined"),
        ({"actions": {"a": interruption(targets={})}}, "expected ['SpotInstances']"),
        ({"actions": {"a": interruption(targets={"Instances": "nodes"})}}, "expected ['SpotInstances']"),
        ({"targets": {"nodes": EKS}}, "expected aws:ec2:spot-instance"),
        ({"targets": {"nodes": {**SPOT, "resourceType": "aws:ec2:toaster"}}}, "toaster is not supported"),
        ({"targets": {"nodes": {**SPOT, "resourceTags": {"a": "b"}}}}, "exclude tags"),
        ({"targets": {"nodes": {**SPOT, "resourceArns": []}}}, "identifies no resource"),
        ({"targets": {"nodes": {**SPOT, "resourceArns": [INSTANCE] * 6}}}, "found a length of 6, expected 0 to 5"),
        ({"targets": {"nodes": {**SPOT, "selectionMode": "SOME"}}}, "selection mode SOME"),
        ({"actions": {"a": interruption(parameters={})}}, "durationBeforeInterruption is missing"),
        ({"actions": {"a": interruption(parameters={"durationBeforeInterruption": "PT1M"})}}, "invalid value PT1M"),
        ({"actions": {"a": interruption(parameters={"durationBeforeInterruption": "PT16M"})}}, "invalid value PT16M"),
        ({"actions": {"a": interruption(parameters={"durationBeforeInterruption": "soon"})}}, "invalid value soon"),
        ({"actions": {"a": interruption(parameters={**MINUTES, "gently": "1"})}}, "has no parameter gently"),
        ({"actions": {"a": interruption(startAfter=["b"])}}, "startAfter names b"),
        ({"actions": {"a": wait(startAfter=["b"]), "b": wait(startAfter=["a"])}}, "in a circle"),
        (
            {
                "targets": {"nodes": EKS},
                "actions": {"a": shift(parameters={**AWAY, "availabilityZoneIdentifier": "cellar"})},
            },
            "invalid value cellar",
        ),
        (
            {"targets": {"nodes": EKS}, "actions": {"a": shift(parameters={**AWAY, "managedResourceTypes": "PIE"})}},
            "invalid value PIE",
        ),
        ({"experimentOptions": {"emptyTargetResolutionMode": "ignore"}}, "expected one of fail, skip"),
        ({"roleArn": "role"}, "Invalid length for parameter roleArn"),
        ({"description": ""}, "expected"),
    ],
)
def test_a_template_that_aws_refuses_is_refused(local_aws, change, words):
    status, code, document = sent(local_aws, "POST", "/experimentTemplates", template(**change))
    assert (status, code) == (400, "ValidationException")
    assert words in document["message"]


def test_a_request_without_a_required_member_is_refused_also_from_a_client_that_checks_nothing(local_aws):
    required = MODEL.operation_model("CreateExperimentTemplate").input_shape.required_members
    answers = {}
    for name in required:
        asked = {key: value for key, value in template().items() if key != name}
        answers[name] = sent(local_aws, "POST", "/experimentTemplates", asked)[:2]
    assert answers == dict.fromkeys(required, (400, "ValidationException"))


@pytest.mark.parametrize("call", ["get_experiment", "stop_experiment", "get_experiment_template", "get_action"])
def test_what_is_not_there_is_not_found(fis, call):
    with pytest.raises(fis.exceptions.ResourceNotFoundException) as refused:
        getattr(fis, call)(id="EXT0000000000000")
    assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] == 404


def test_an_experiment_of_no_template_does_not_start(fis):
    with pytest.raises(fis.exceptions.ResourceNotFoundException):
        fis.start_experiment(experimentTemplateId="EXT0000000000000")


def test_a_repeated_request_with_its_token_makes_one_template_and_another_one_is_a_conflict(fis):
    asked = template()
    first, second = (fis.create_experiment_template(**asked)["experimentTemplate"]["id"] for _ in range(2))
    assert first == second
    with pytest.raises(fis.exceptions.ConflictException):
        fis.create_experiment_template(**{**asked, "description": "another one"})


def test_an_experiment_whose_target_is_not_there_fails_with_the_words_of_fis(fis, start):
    found = ended(fis, start())
    assert found["state"]["status"] == "failed"
    assert found["state"]["reason"] == "Target resolution returned empty set."
    assert found["state"]["error"]["code"] == "InvalidTarget"
    assert statuses(found) == {"interrupt": "cancelled"}


def test_an_empty_target_is_skipped_where_the_template_says_so(fis, start):
    found = ended(fis, start(experimentOptions={"emptyTargetResolutionMode": "skip"}))
    assert (found["state"]["status"], statuses(found)) == ("completed", {"interrupt": "skipped"})


def test_a_cluster_without_zonal_shift_is_no_target(fis, start):
    found = ended(fis, start(targets={"nodes": EKS}, actions={"away": shift()}))
    assert (found["state"]["status"], found["state"]["error"]["code"]) == ("failed", "InvalidTarget")


def test_a_stopped_experiment_ends_its_actions_and_cannot_be_stopped_again(fis, start):
    name = start(targets={}, actions={"first": wait(), "second": wait(startAfter=["first"])})
    until(lambda: fis.get_experiment(id=name)["experiment"]["actions"]["first"]["state"]["status"] == "running")
    assert fis.stop_experiment(id=name)["experiment"]["state"]["status"] == "stopping"
    found = ended(fis, name)
    assert (found["state"]["status"], statuses(found)) == ("stopped", {"first": "stopped", "second": "cancelled"})
    with pytest.raises(fis.exceptions.ValidationException):
        fis.stop_experiment(id=name)


def test_an_alarm_of_a_stop_condition_stops_the_experiment(local_aws, fis, start):
    alarms, name = local_aws.client("cloudwatch"), f"errors-{uuid.uuid4().hex[:6]}"
    alarms.put_metric_alarm(
        AlarmName=name,
        Namespace="Web",
        MetricName="Errors",
        Statistic="Sum",
        Period=60,
        EvaluationPeriods=1,
        Threshold=1,
        ComparisonOperator="GreaterThanThreshold",
    )
    arn = f"arn:aws:cloudwatch:us-east-1:000000000000:alarm:{name}"
    condition = {"source": "aws:cloudwatch:alarm", "value": arn}
    running = start(targets={}, actions={"pause": wait()}, stopConditions=[condition])
    until(lambda: fis.get_experiment(id=running)["experiment"]["state"]["status"] == "running")
    alarms.set_alarm_state(AlarmName=name, StateValue="ALARM", StateReason="the rehearsal hurts")
    assert ended(fis, running)["state"]["status"] == "stopped"


def test_every_action_is_described_as_the_model_has_it(fis):
    for name, action in ACTIONS.items():
        shown = fis.get_action(id=name)["action"]
        assert {key: one["resourceType"] for key, one in shown.get("targets", {}).items()} == action.targets
        assert {key for key, one in shown["parameters"].items() if one["required"]} == {
            key for key, one in action.parameters.items() if one.required
        }


def test_the_templates_of_the_how_to_page_are_accepted(fis):
    texts = [one.text for one in blocks("page", Path("docs/how-to/rehearse.md").read_text()) if one.language == "json"]
    made = [fis.create_experiment_template(**json.loads(text))["experimentTemplate"] for text in texts]
    assert [action["actionId"] for one in made for action in one["actions"].values()] == [INTERRUPT, SHIFT]


def test_a_call_that_is_not_played_is_no_success(fis):
    with pytest.raises(ClientError):
        fis.list_target_resource_types()
