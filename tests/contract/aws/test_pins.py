"""Every patch of ministack and moto refuses to start when the thing it patches is no longer what it was written for."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]

# patch (how it is installed), then what it replaces or leans on: module, path of attributes, package that is pinned
PATCHES = [
    ("moto_backend.install()", "ministack.app", "_lazy_handler", "ministack"),
    ("ec2.install(outbox, timeline, journal, pace)", "moto.ec2.models.instances", "Instance.terminate", "moto"),
    ("ec2.install(outbox, timeline, journal, pace)", "moto.ec2.models", "EC2Backend.terminate_instances", "moto"),
    ("groups.install(engine, health)", "moto.autoscaling.models", "FakeAutoScalingGroup.set_desired_capacity", "moto"),
    (
        "groups.install(engine, health)",
        "moto.autoscaling.models",
        "AutoScalingBackend.notify_terminate_instances",
        "moto",
    ),
    ("groups.install(engine, health)", "moto.autoscaling.models", "InstanceState.launch_template", "moto"),
    ("node_groups.install()", "moto.eks.models", "EKSBackend.delete_nodegroup", "moto"),
    ("node_groups.install()", "moto.eks.models", "EKSBackend.describe_nodegroup", "moto"),
    (
        "provisioner.install(None)",
        "ministack.services.cloudformation.provisioners",
        "_provision_resource",
        "ministack",
    ),
    ("provisioning.install()", "ministack.services.lambda_svc", "_put_function_concurrency", "ministack"),
    ("provisioning.install()", "ministack.services.dynamodb", "_update_ttl", "ministack"),
    ("parameters.install()", "ministack.services.ssm", "_reserved_name_error", "ministack"),
    ("tokens.Tokens(clock).install()", "ministack.services.stepfunctions", "_invoke_with_callback", "ministack"),
    ("tokens.Tokens(clock).install()", "ministack.services.stepfunctions", "_send_task_heartbeat", "ministack"),
    ("timing.install(clock, None)", "ministack.services.stepfunctions", "_execute_task", "ministack"),
    ("timing.install(clock, None)", "ministack.services.stepfunctions", "_invoke_resource_with_timeout", "ministack"),
    ("timing.install(clock, None)", "ministack.services.stepfunctions", "_scaled_sleep", "ministack"),
    ("timing.install(clock, None)", "ministack.services.stepfunctions", "_find_matching_retrier", "ministack"),
    ("timing.install(clock, None)", "ministack.services.stepfunctions", "_error_matches", "ministack"),
    ("branches.install()", "ministack.services.stepfunctions", "_run_sub_machine", "ministack"),
    ("sdk.install()", "ministack.services.stepfunctions", "_invoke_aws_sdk_integration", "ministack"),
    ("sdk.install()", "ministack.services.stepfunctions", "_prefix_sdk_error", "ministack"),
    ("sdk.install()", "ministack.services.stepfunctions", "_invoke_nested_start_execution", "ministack"),
    ("executions.install(timeline)", "ministack.services.stepfunctions", "_start_execution", "ministack"),
    ("executions.install(timeline)", "ministack.services.stepfunctions", "_fail_execution", "ministack"),
    ("executions.install(timeline)", "ministack.services.stepfunctions", "_add_event", "ministack"),
    ("executions.install(timeline)", "ministack.services.stepfunctions", "_emit_execution_status_event", "ministack"),
    ("errors.install()", "ministack.services.lambda_svc", "_execute_function_warm", "ministack"),
    ("errors.install()", "ministack.services.lambda_svc", "_throttle_response", "ministack"),
    ("workers.install()", "ministack.core.lambda_runtime", "acquire_worker", "ministack"),
    ("workers.install()", "ministack.core.lambda_runtime", "execution_credentials", "ministack"),
    ("queues.install()", "ministack.services.sqs", "_receive_messages_for_esm", "ministack"),
    ("Outbox()", "ministack.services.eventbridge", "_dispatch_event", "ministack"),
]

# Each is changed in turn and put back; then everything is installed for real, as the launcher does it.
PROBE = """
import importlib, json, sys
from pathlib import Path
from local.aws.settings import Settings, prepare_environment
settings = Settings(port=1, region="us-east-1", account="000000000000", directory=Path(sys.argv[2]))
prepare_environment(settings)
from local.aws import ec2, moto_backend, parameters, provisioning, server
from local.aws.autoscaling import patches as groups
from local.aws.autoscaling.engine import Engine
from local.aws.eks import node_groups, provisioner
from local.aws.journal import Journal
from local.aws.lambdas import errors, queues, workers
from local.aws.outbox import Outbox
from local.aws.pins import PinMismatch
from local.aws.stepfunctions import branches, sdk, timing, tokens
from local.aws.stepfunctions.clock import ScaledClock
from local.aws.stepfunctions.executions import Executions
from local.aws.timeline import Timeline
timeline, outbox, clock, journal = Timeline(moto_backend.model_lock), Outbox(), ScaledClock(), Journal()
pace = ec2.Pace()
engine, health = Engine(outbox, timeline, journal, pace), groups.HealthSwitch()
executions = Executions(outbox, clock)
results = []
for install, module, path, package in json.loads(sys.argv[1]):
    owner = importlib.import_module(module)
    *parents, name = path.split(".")
    for parent in parents:
        owner = getattr(owner, parent)
    own, kept = name in vars(owner), getattr(owner, name)
    setattr(owner, name, lambda something_else: None)
    try:
        eval(install)
        results.append("installed without a word")
    except PinMismatch as refused:
        results.append(str(refused))
    setattr(owner, name, kept) if own else delattr(owner, name)
server.build(settings)
print(json.dumps(results))
"""


@pytest.fixture(scope="module")
def refusals(tmp_path_factory):
    command = [sys.executable, "-c", PROBE, json.dumps(PATCHES), str(tmp_path_factory.mktemp("aws"))]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    return {(install, path): message for (install, _, path, _), message in zip(PATCHES, said, strict=True)}


@pytest.mark.parametrize(("install", "module", "path", "package"), PATCHES, ids=[f"{p[1]}.{p[2]}" for p in PATCHES])
def test_a_patch_names_the_pin_when_its_target_has_changed(refusals, install, module, path, package):
    pins = {"ministack": "ministack==1.5.33", "moto": "moto==5.2.5"}
    assert refusals[install, path].startswith(pins[package])


def test_another_version_is_refused_by_name(monkeypatch):
    from local.aws import pins

    monkeypatch.setitem(pins.PINS, "moto", "5.2.4")
    with pytest.raises(pins.PinMismatch, match=r"moto==5\.2\.4 is needed .* found 5\.2\.5"):
        pins.check_versions()


def test_changed_source_is_refused():
    from local.aws import pins

    with pytest.raises(pins.PinMismatch, match="no longer contains exactly one 'b'"):
        pins.expect_source("ministack", "somewhere", "abb", "b")
