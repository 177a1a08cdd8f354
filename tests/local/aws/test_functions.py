"""Lambda functions run as real processes, fail under their own names and are counted."""

import io
import json
import textwrap
import time
import uuid
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import boto3
import pytest
from botocore.signers import RequestSigner

from local.aws.process import running

from .conftest import eventually

ROLE = "arn:aws:iam::000000000000:role/worker"


@pytest.fixture(scope="module")
def functions(aws):
    return aws.client("lambda")


@pytest.fixture
def a_function(functions):
    made = []

    def build(source, **more):
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr("index.py", textwrap.dedent(source))
        name = f"f-{uuid.uuid4().hex[:8]}"
        functions.create_function(
            FunctionName=name,
            Runtime="python3.13",
            Architectures=["arm64"],
            Handler="index.handler",
            Role=ROLE,
            Code={"ZipFile": packed.getvalue()},
            Timeout=60,
            **more,
        )
        functions.get_waiter("function_active_v2").wait(FunctionName=name, WaiterConfig={"Delay": 0.1})
        made.append(name)
        return name

    yield build
    for name in made:
        functions.delete_function(FunctionName=name)


@pytest.fixture
def a_task(aws):
    sfn = aws.client("stepfunctions")

    def run(state, data=None):
        definition = {
            "QueryLanguage": "JSONata",
            "StartAt": "Do",
            "States": {"Do": {"Type": "Task", "End": True, **state}, "Caught": {"Type": "Pass", "End": True}},
        }
        machine = sfn.create_state_machine(
            name=f"m-{uuid.uuid4().hex[:8]}", definition=json.dumps(definition), roleArn=ROLE
        )["stateMachineArn"]
        arn = sfn.start_execution(stateMachineArn=machine, input=json.dumps(data or {}))["executionArn"]

        def probe():
            found = sfn.describe_execution(executionArn=arn)
            return found if found["status"] != "RUNNING" else None

        return eventually(probe)

    return run


def invoke(functions, name, payload=None):
    answer = functions.invoke(FunctionName=name, Payload=json.dumps(payload or {}))
    return answer.get("FunctionError"), json.loads(answer["Payload"].read())


def test_a_function_fails_under_its_exceptions_class_and_a_catch_by_name_takes_it(a_function, functions, a_task):
    name = a_function("""
        class BudgetExhausted(Exception): ...
        def handler(event, context):
            raise BudgetExhausted("no more")
    """)
    failed, body = invoke(functions, name)
    assert (failed, body["errorType"], body["errorMessage"]) == ("Unhandled", "BudgetExhausted", "no more")
    invocation = {"Resource": "arn:aws:states:::lambda:invoke", "Arguments": {"FunctionName": name, "Payload": {}}}
    caught = a_task({**invocation, "Catch": [{"ErrorEquals": ["BudgetExhausted"], "Next": "Caught"}]})
    assert caught["status"] == "SUCCEEDED"
    # the same call as a pause: a failing function fails the task instead of leaving it waiting
    pause = {**invocation, "Resource": "arn:aws:states:::lambda:invoke.waitForTaskToken", "TimeoutSeconds": 60}
    assert a_task(pause)["error"] == "BudgetExhausted"


def test_processes_of_one_package_share_its_unpacked_and_compiled_code(a_function, functions):
    source = """
        import os, sys, time
        import index
        def handler(event, context):
            time.sleep(event["seconds"])
            cached = index.__spec__.cached
            return [os.getpid(), os.path.realpath(index.__file__), os.stat(cached).st_mtime_ns]
    """
    name = a_function(source)
    first = invoke(functions, name, {"seconds": 0})[1]
    with ThreadPoolExecutor(3) as threads:
        answers = [first, *threads.map(lambda seconds: invoke(functions, name, {"seconds": seconds})[1], [1, 1, 1])]
    processes, files, compiled = (set(column) for column in zip(*answers, strict=True))
    assert (len(processes), len(files), len(compiled)) == (3, 1, 1)

    changed = a_function(source + "\n        CHANGED = True")
    assert invoke(functions, changed, {"seconds": 0})[1][1] not in files


def test_a_function_that_cannot_be_imported_says_so(a_function, functions):
    name = a_function("import nothing_of_that_name\n")
    assert invoke(functions, name)[1]["errorType"] == "Runtime.ImportModuleError"


@pytest.mark.parametrize(
    ("end", "error", "said"),
    [
        ("os.kill(os.getpid(), 9)", "Runtime.OutOfMemory", "Runtime exited with error: signal: killed"),
        ("os.kill(os.getpid(), 11)", "Runtime.ExitError", "Runtime exited with error: signal: segmentation fault"),
        ("os._exit(3)", "Runtime.ExitError", "Runtime exited with error: exit status 3"),
        ("os._exit(0)", "Runtime.ExitError", "Runtime exited without providing a reason"),
        ("time.sleep(5)", "Sandbox.Timedout", "Task timed out after 1.00 seconds"),
    ],
)
def test_a_process_that_ends_carries_the_name_of_its_end(a_function, functions, end, error, said):
    name = a_function(f"import os, time\ndef handler(event, context):\n    {end}\n")
    functions.update_function_configuration(FunctionName=name, Timeout=1)
    body = invoke(functions, name)[1]
    assert (body["errorType"], body["errorMessage"].partition(" Error: ")[2]) == (error, said)


def test_a_killed_process_fails_its_invocation_and_a_retry_succeeds(a_function, aws, a_task):
    name = a_function("""
        import time
        def handler(event, context):
            time.sleep(0.6)
            return "done"
    """)
    aws.control("POST", "lambda/kill", {"function": name, "afterSeconds": 0.2, "times": 1})
    retry = {"ErrorEquals": ["Runtime.OutOfMemory"], "IntervalSeconds": 1, "MaxAttempts": 2}
    arguments = {"FunctionName": name, "Payload": {}}
    execution = a_task({"Resource": "arn:aws:states:::lambda:invoke", "Arguments": arguments, "Retry": [retry]})
    assert json.loads(execution["output"])["Payload"] == "done"
    assert aws.control("GET", "lambda/kill")[name] == 0
    events = aws.client("stepfunctions").get_execution_history(executionArn=execution["executionArn"])["events"]
    failures = [event["taskFailedEventDetails"]["error"] for event in events if event["type"] == "TaskFailed"]
    assert failures == ["Runtime.OutOfMemory"]


def test_a_throttled_function_is_named_as_aws_names_it(a_function, functions, a_task):
    name = a_function("def handler(event, context): return 1")
    functions.put_function_concurrency(FunctionName=name, ReservedConcurrentExecutions=0)
    arguments = {"FunctionName": name, "Payload": {}}
    execution = a_task({"Resource": "arn:aws:states:::lambda:invoke", "Arguments": arguments})
    assert execution["error"] == "Lambda.TooManyRequestsException"
    with pytest.raises(functions.exceptions.TooManyRequestsException):
        functions.invoke(FunctionName=name)


def test_no_more_than_twelve_processes_run_at_once(a_function, functions, aws, tmp_path):
    name = a_function("""
        import os, time, pathlib
        def handler(event, context):
            own = pathlib.Path(event["folder"], str(os.getpid()))
            own.touch()
            running = len(os.listdir(event["folder"]))
            time.sleep(0.4)
            own.unlink()
            return running
    """)
    patient = aws.client("lambda")
    with ThreadPoolExecutor(16) as pool:
        results = list(pool.map(lambda _: invoke(patient, name, {"folder": str(tmp_path)})[1], range(16)))
    assert max(results) <= 12
    assert sum(results) > 16


def test_calls_are_recorded_by_function(a_function, functions, aws):
    name = a_function("""
        import boto3
        def handler(event, context):
            boto3.client("ec2").describe_instances()
            boto3.client("autoscaling").describe_auto_scaling_groups()
            boto3.client("ssm").get_parameters_by_path(Path="/x")
            boto3.client("eks").list_clusters()
            boto3.client("lambda").list_functions()
            boto3.client("s3").list_buckets()
            return boto3.client("sts").get_caller_identity()["Arn"]
    """)
    aws.control("DELETE", "calls")
    assert invoke(functions, name) == (None, f"arn:aws:sts::000000000000:assumed-role/worker/{name}")
    assert aws.control("GET", "calls")[name] == {
        "autoscaling:DescribeAutoScalingGroups": 1,
        "ec2:DescribeInstances": 1,
        "eks:ListClusters": 1,
        "lambda:ListFunctions": 1,
        "s3:ListBuckets": 1,
        "ssm:GetParametersByPath": 1,
        "sts:GetCallerIdentity": 1,
    }


def test_a_queue_is_read_in_large_batches_and_poison_goes_to_the_dead_letter_queue(a_function, functions, aws):
    sqs = aws.client("sqs")
    dead = sqs.create_queue(QueueName=f"dead-{uuid.uuid4().hex[:8]}")["QueueUrl"]
    dead_arn = sqs.get_queue_attributes(QueueUrl=dead, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    attributes = {
        "VisibilityTimeout": "60",  # the function's own time-out, as AWS demands: no message comes back while it runs
        "RedrivePolicy": json.dumps({"deadLetterTargetArn": dead_arn, "maxReceiveCount": 2}),
    }
    queue = sqs.create_queue(QueueName=f"q-{uuid.uuid4().hex[:8]}", Attributes=attributes)["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    answers = sqs.create_queue(QueueName=f"a-{uuid.uuid4().hex[:8]}")["QueueUrl"]
    name = a_function(
        """
        import boto3, os
        def handler(event, context):
            sqs, queue = boto3.client("sqs"), os.environ["QUEUE"]
            sqs.send_message(QueueUrl=os.environ["ANSWERS"], MessageBody=str(len(event["Records"])))
            failed = [record for record in event["Records"] if record["body"] == "poison"]
            for record in failed:  # so that no test waits for the visibility to time out
                sqs.change_message_visibility(
                    QueueUrl=queue, ReceiptHandle=record["receiptHandle"], VisibilityTimeout=1
                )
            return {"batchItemFailures": [{"itemIdentifier": record["messageId"]} for record in failed]}
        """,
        Environment={"Variables": {"ANSWERS": answers, "QUEUE": queue}},
    )
    for start in range(0, 50, 10):
        entries = [{"Id": str(i), "MessageBody": "poison" if i == 7 else "good"} for i in range(start, start + 10)]
        sqs.send_message_batch(QueueUrl=queue, Entries=entries)
    mapping = functions.create_event_source_mapping(
        FunctionName=name,
        EventSourceArn=arn,
        BatchSize=100,
        MaximumBatchingWindowInSeconds=1,
        FunctionResponseTypes=["ReportBatchItemFailures"],
    )
    sizes = []

    def malformed():
        got = sqs.receive_message(QueueUrl=answers, MaxNumberOfMessages=10).get("Messages", [])
        sizes.extend(int(message["Body"]) for message in got)
        for message in got:
            sqs.delete_message(QueueUrl=answers, ReceiptHandle=message["ReceiptHandle"])
        return sqs.receive_message(QueueUrl=dead).get("Messages")

    assert eventually(malformed)[0]["Body"] == "poison"
    functions.delete_event_source_mapping(UUID=mapping["UUID"])
    assert sizes == [50, 1]


def test_a_presigned_identity_names_the_assumed_role(aws):
    iam, sts = aws.client("iam"), aws.client("sts")
    iam.create_role(RoleName="cluster-act", AssumeRolePolicyDocument="{}")
    role = f"arn:aws:iam::{aws.account}:role/cluster-act"
    given = sts.assume_role(RoleArn=role, RoleSessionName="leeward")["Credentials"]
    session = boto3.Session(given["AccessKeyId"], given["SecretAccessKey"], given["SessionToken"], aws.region)
    signer = RequestSigner(
        sts.meta.service_model.service_id, aws.region, "sts", "v4", session.get_credentials(), session.events
    )
    request = {
        "method": "GET",
        "url": f"{aws.endpoint}/?Action=GetCallerIdentity&Version=2011-06-15",
        "body": {},
        "headers": {"x-k8s-aws-id": "demo"},
        "context": {},
    }
    url = signer.generate_presigned_url(request, region_name=aws.region, expires_in=60, operation_name="")
    # as the local cluster asks: the URL of the token, sent here, with the host that the token names
    arn = f"arn:aws:sts::{aws.account}:assumed-role/cluster-act/leeward"
    for host in (urlsplit(aws.endpoint).netloc, "sts.us-east-1.amazonaws.com"):
        headers = {"x-k8s-aws-id": "demo", "host": host, "accept": "application/json"}
        with urlopen(Request(url, headers=headers)) as answer:
            assert arn in answer.read().decode()


SLEEPY = """
import os, time
def handler(event, context):
    time.sleep(event.get("sleep", 0))
    return [os.getpid(), dict(os.environ)]
"""


def test_the_launcher_stops_quickly_and_leaves_nothing_behind(tmp_path):
    with running(tmp_path, region="eu-west-1", account="123456789012") as local:
        functions = local.client("lambda")
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr("index.py", SLEEPY)
        created = functions.create_function(
            FunctionName="pid",
            Runtime="python3.13",
            Handler="index.handler",
            Role="arn:aws:iam::123456789012:role/r",
            Code={"ZipFile": packed.getvalue()},
            Timeout=60,
        )
        assert created["FunctionArn"] == "arn:aws:lambda:eu-west-1:123456789012:function:pid"
        pid, environment = eventually(lambda: invoke(functions, "pid")[1])
        assert environment["AWS_ENDPOINT_URL"] == local.endpoint
        assert environment["AWS_REGION"] == "eu-west-1"
        assert environment["AWS_SDK_UA_APP_ID"] == "pid"
        assert "LOG_LEVEL" not in environment
        asg = local.client("autoscaling")
        assert asg.describe_auto_scaling_groups()["AutoScalingGroups"] == []
        with ThreadPoolExecutor(1) as pool:  # a call that is under way does not hold the launcher up
            pool.submit(invoke, functions, "pid", {"sleep": 60})
            time.sleep(0.5)
            local.process.terminate()
            assert local.process.wait(30) == 0
    assert not Path(f"/proc/{pid}").exists()
    assert not (tmp_path / "aws.json").exists()
    assert not list((tmp_path / "tmp").glob("ministack-lambda-*"))
