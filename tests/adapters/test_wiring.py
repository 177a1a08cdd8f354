"""Which adapters stand behind the ports, and what merely importing them costs."""

import json
import subprocess
import sys

import pytest

from leeward.adapters import wiring
from leeward.adapters.aws.clients import AwsClients
from leeward.errors import AccessDeniedError, InvalidInputError
from leeward.model.execution import Machine
from leeward.model.well_known import MACHINES
from tests.adapters.test_settings import GOOD


@pytest.fixture
def function_environment(aws_environment, monkeypatch):
    for name, value in GOOD.items():
        monkeypatch.setenv(name, value)
    wiring.lambda_ports.cache_clear()
    wiring.lambda_clients.cache_clear()
    yield monkeypatch
    wiring.lambda_ports.cache_clear()
    wiring.lambda_clients.cache_clear()


@pytest.fixture
def no_clients(monkeypatch):
    def refuse(self, service, **_):
        raise AssertionError(f"made a client of {service}")

    monkeypatch.setattr(AwsClients, "get", refuse)


def test_a_functions_ports_are_built_once_and_call_nothing(function_environment, no_clients):
    ports = wiring.lambda_ports()
    assert wiring.lambda_ports() is ports
    assert ports.clusters.names() == ("blue", "green")
    assert len(ports.queue_arns) == 2


def test_a_cluster_is_not_called_before_something_is_asked_of_it(function_environment, no_clients):
    clusters = wiring.lambda_ports().clusters
    assert clusters.kubernetes("blue") is clusters.kubernetes("blue")
    with pytest.raises(InvalidInputError, match="expected one of blue, green"):
        clusters.kubernetes("red")


def test_a_function_without_access_cannot_reach_a_cluster(function_environment):
    function_environment.setenv("KUBERNETES_ACCESS", "none")
    clusters = wiring.lambda_ports().clusters
    clusters.kubernetes("blue")
    assert clusters.names() == ("blue", "green")


def test_wrong_settings_stop_the_function_with_all_of_them(function_environment):
    function_environment.setenv("TABLE_NAME", "")
    function_environment.setenv("CLUSTERS", "?")
    with pytest.raises(InvalidInputError, match=r"CLUSTERS(.|\n)*TABLE_NAME"):
        wiring.lambda_ports()


def test_the_command_line_finds_everything_by_its_fixed_name(aws_environment, no_clients):
    ports = wiring.command_line_ports("blue", region="cn-north-1", account="111122223333")
    assert ports.clusters.names() == ("blue",)
    assert ports.queue_arns == {"arn:aws-cn:sqs:cn-north-1:111122223333:leeward-interruption"}


def test_a_report_finds_the_state_machines_beside_the_same_ports(aws_environment, no_clients):
    ports, past = wiring.command_line_past("blue", region="cn-north-1", account="111122223333")
    assert ports.clusters.names() == ("blue",)
    assert past._arn(Machine.DISRUPTION, "blue-3-1") == (
        "arn:aws-cn:states:cn-north-1:111122223333:execution:leeward-disruption:blue-3-1"
    )
    assert {machine.value for machine in Machine} == set(MACHINES)


def test_a_named_deployment_is_found_by_names_of_its_own(aws_environment, no_clients):
    named = {"region": "us-east-1", "account": "111122223333", "deployment": "trial"}
    ports, past = wiring.command_line_past("blue", **named)
    assert ports.queue_arns == {"arn:aws:sqs:us-east-1:111122223333:trial-leeward-interruption"}
    assert (ports.deployment, ports.hook_mark) == ("111122223333-us-east-1-trial", "leeward.dev/v1/trial")
    assert past._arn(Machine.UPGRADE, "web-1") == (
        "arn:aws:states:us-east-1:111122223333:execution:trial-leeward-node-group-upgrade:web-1"
    )


def test_the_region_of_the_environment_is_found_as_the_aws_cli_finds_it(aws_environment, monkeypatch):
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-west-2")
    assert AwsClients().region == "us-west-2"
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    assert AwsClients().region == "eu-west-1"
    assert AwsClients("us-east-2").region == "us-east-2"


def test_the_command_line_needs_a_region_and_credentials(aws_environment, monkeypatch):
    monkeypatch.delenv("AWS_REGION", raising=False)
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    with pytest.raises(InvalidInputError, match="no AWS Region"):
        wiring.command_line_ports("blue")
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with pytest.raises(AccessDeniedError, match="sts:GetCallerIdentity"):
        wiring.command_line_ports("blue", region="us-east-1")


def test_clients_of_other_accounts_do_not_parse_the_models_again(aws_environment):
    clients = AwsClients("us-east-1")
    others = clients.signed_by(clients._loaded().get_credentials(), region="eu-west-1")
    loaders = [each._loaded().get_component("data_loader") for each in (clients, others)]
    assert loaders[0] is loaders[1]


def modules_after(statement):
    code = f"{statement}; import sys, json; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd="functions")
    return set(json.loads(done.stdout))


def test_importing_the_wiring_adds_little_to_importing_boto3():
    """Seconds differ from machine to machine; the modules that are loaded are what costs them."""
    alone, wired = modules_after("import boto3"), modules_after("import leeward.adapters.wiring")
    ours = {name for name in wired if name.split(".")[0] == "leeward"}
    assert len(wired - ours) <= 1.1 * len(alone)
    assert len(ours) <= 65
    outside = {name.split(".")[0] for name in wired - alone - ours if not name.startswith("_")}
    assert outside - set(sys.stdlib_module_names) <= {"boto3", "botocore", "urllib3"}


class Invocation:
    """Lambda's context with so many seconds left."""

    def __init__(self, seconds):
        self.seconds = seconds

    def get_remaining_time_in_millis(self):
        return int(self.seconds * 1000)


def test_the_remote_calls_of_an_invocation_end_before_lambda_ends_it(function_environment):
    ports = wiring.invocation_ports(Invocation(30))
    assert 27 < ports.budget.left <= 30 - wiring.RESERVE_SECONDS
    assert wiring.invocation_ports(Invocation(1)).budget.left == 0
    assert wiring.lambda_ports().budget is None


def test_a_manual_invocation_has_no_limit(function_environment):
    assert wiring.invocation_ports(None) is wiring.lambda_ports()
