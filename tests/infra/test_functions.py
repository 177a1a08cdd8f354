"""Every function: its environment is what the code reads, its role and its log are its own."""

import json

import pytest

from infra.asset import MODELS
from infra.names import METRICS
from infra.permissions import PERMISSIONS
from leeward import telemetry
from leeward.adapters.settings import KubernetesAccess, Settings
from tests.infra.conftest import EVERYTHING, LONG_NAME, TOPIC

NAMES = (
    "interruption",
    "terminate",
    "drain",
    "reconciler",
    "sync",
    "upgrade",
    "disruption-planner",
    "disrupt",
    "notifications",
)
ACCESS = {
    "interruption": "taint",
    "terminate": "none",
    "drain": "act",
    "reconciler": "taint",
    "sync": "taint",
    "upgrade": "taint",
    "disruption-planner": "taint",
    "disrupt": "taint",
    "notifications": "none",
}
FUNCTION = "AWS::Lambda::Function"
FOR_LIBRARIES = {
    "LOG_LEVEL",
    "AWS_SDK_UA_APP_ID",
    "LEEWARD_VERSION",  # leeward doctor reads it
    "AWS_DATA_PATH",
    "EVENT_SOURCE",  # fn notifications's
    "METRICS_NAMESPACE",  # leeward.telemetry
}


class Recording(dict):
    """An environment that remembers what it was asked for."""

    def __init__(self, *args):
        super().__init__(*args)
        self.asked = set()

    def get(self, name, default=None):
        self.asked.add(name)
        return super().get(name, default)


def environment(template, name):
    return template.named(FUNCTION)[f"leeward-{name}"]["Environment"]["Variables"]


def test_there_are_exactly_the_functions_that_the_permissions_know(template):
    assert set(template.named(FUNCTION)) == {f"leeward-{name}" for name in NAMES}
    assert set(PERMISSIONS) == set(NAMES)


@pytest.mark.parametrize("name", sorted(set(NAMES) - {"notifications"}))
def test_the_code_reads_its_whole_environment_and_nothing_else(template, name):
    given = Recording(environment(template, name))
    settings = Settings.from_env(given)
    assert given.asked | FOR_LIBRARIES == set(given)
    assert settings.kubernetes_access == KubernetesAccess(ACCESS[name])
    assert settings.queue_arn == "arn:aws:sqs:us-east-1:111122223333:leeward-interruption"
    assert settings.dead_letter_queue_url.endswith("/leeward-interruption-dead-letters")
    assert settings.state_machine_arn == ("arn:aws:states:us-east-1:111122223333:stateMachine:leeward-node-termination")
    assert (settings.table_name, settings.policy_prefix) == ("leeward", "/leeward")


def test_the_function_that_acts_on_no_cluster_knows_none(everything):
    variables = environment(everything, "notifications")
    assert {"CLUSTERS", "HOOK_TOPICS"} & set(variables) == set()
    assert {"WEBHOOKS", "WEBHOOK_BUS", "EVENT_SOURCE"} <= set(variables)


@pytest.mark.parametrize("name", NAMES)
def test_calls_say_whose_they_are(template, name):
    assert environment(template, name)["AWS_SDK_UA_APP_ID"] == f"leeward-{name}"


def test_alarms_and_dashboard_read_the_namespace_that_the_functions_write():
    assert METRICS == telemetry.NAMESPACE


@pytest.mark.parametrize("name", NAMES)
def test_the_sdk_finds_the_api_models_of_the_asset(template, name):
    assert environment(template, name)["AWS_DATA_PATH"] == f"/var/task/{MODELS}"


def test_the_lines_of_a_share_of_the_calls_are_kept_where_the_settings_say_so(everything):
    assert {environment(everything, name)["POWERTOOLS_LOGGER_SAMPLE_RATE"] for name in NAMES} == {"0.05"}


@pytest.mark.parametrize("shape", ["template", "everything"])
def test_every_function_is_traced_and_may_write_traces(request, shape):
    template = request.getfixturevalue(shape)
    for function in template.named(FUNCTION).values():
        assert function["TracingConfig"] == {"Mode": "Active"}
        allowed = {action for statement in template.statements(function["Role"]) for action in statement.actions}
        assert {"xray:PutTraceSegments", "xray:PutTelemetryRecords"} <= allowed


def test_the_clusters_carry_where_they_are_and_their_roles(everything):
    settings = Settings.from_env(environment(everything, "drain"))
    blue, long_ = settings.clusters
    assert (blue.name, blue.region, blue.account) == ("blue", "us-east-1", "111122223333")
    assert blue.act_role == "arn:aws:iam::111122223333:role/leeward-us-east-1-blue-act"
    assert long_.name == LONG_NAME
    assert settings.hook_topics == (TOPIC,)


def test_every_role_that_a_function_is_reported_exists_and_its_name_fits_iam(everything):
    roles = {p["RoleName"] for p in everything.resources("AWS::IAM::Role").values() if "RoleName" in p}
    reported = json.loads(environment(everything, "drain")["CLUSTERS"])
    assert roles == {cluster[key].rsplit("/")[-1] for cluster in reported for key in ("taintRole", "actRole")}
    assert len(roles) == 2 * len(EVERYTHING["clusters"])
    assert max(map(len, roles)) <= 64


def test_they_run_on_arm_with_python_3_13(template):
    for function in template.named(FUNCTION).values():
        assert (function["Architectures"], function["Runtime"]) == (["arm64"], "python3.13")


def test_a_log_group_of_its_own_is_kept_for_thirty_days(template):
    groups = template.named("AWS::Logs::LogGroup")
    for name in template.named(FUNCTION):
        assert groups[f"/aws/lambda/{name}"]["RetentionInDays"] == 30
        assert template.named(FUNCTION)[name]["LoggingConfig"] == {"LogGroup": f"/aws/lambda/{name}"}


def test_no_two_functions_share_a_role_or_a_policy_and_none_has_one_of_awss_own(everything):
    roles = [function["Role"] for function in everything.named(FUNCTION).values()]
    assert len(set(roles)) == len(roles)
    attached = [
        policy
        for role in everything.resources("AWS::IAM::Role").values()
        for policy in role.get("ManagedPolicyArns", ())
    ]
    assert sorted(attached) == sorted(everything.resources("AWS::IAM::ManagedPolicy"))
    assert not everything.resources("AWS::IAM::Policy")


def test_only_what_speaks_to_kubernetes_lives_in_the_vpc(template, everything):
    inside = {name for name, function in everything.named(FUNCTION).items() if "VpcConfig" in function}
    assert inside == {
        "leeward-interruption",
        "leeward-drain",
        "leeward-reconciler",
        "leeward-sync",
        "leeward-upgrade",
        "leeward-disruption-planner",
        "leeward-disrupt",
    }
    config = everything.named(FUNCTION)["leeward-drain"]["VpcConfig"]
    assert config == {"SubnetIds": ["subnet-0a1b2c3d", "subnet-0a1b2c3e"], "SecurityGroupIds": ["sg-0a1b2c3d"]}
    assert not [function for function in template.named(FUNCTION).values() if "VpcConfig" in function]


def test_the_code_of_a_function_in_a_vpc_cannot_use_lambdas_own_rights(everything):
    role = everything.named(FUNCTION)["leeward-drain"]["Role"]
    (statement,) = [s for s in everything.statements(role) if "ec2:CreateNetworkInterface" in s.actions]
    own = "arn:aws:lambda:us-east-1:111122223333:function:leeward-drain"
    assert statement.conditions == {"ArnNotEquals": {"lambda:SourceFunctionArn": own}}


def test_concurrency_is_kept_for_interruptions_and_drains_are_capped(template, everything):
    reserved = {n: f.get("ReservedConcurrentExecutions") for n, f in template.named(FUNCTION).items()}
    assert reserved == {
        "leeward-interruption": 12,  # ten for the interruption queue, two for state changes
        "leeward-drain": 40,
        "leeward-terminate": None,
        "leeward-reconciler": None,
        "leeward-sync": None,
        "leeward-upgrade": None,
        "leeward-disruption-planner": None,
        "leeward-disrupt": None,
        "leeward-notifications": None,
    }
    assert not [f for f in everything.named(FUNCTION).values() if "ReservedConcurrentExecutions" in f]


@pytest.mark.parametrize("name", ["reconciler", "sync", "disruption-planner"])
def test_a_scheduled_function_is_not_called_again_for_a_failure(template, name):
    configs = {c["FunctionName"]: c for c in template.resources("AWS::Lambda::EventInvokeConfig").values()}
    assert configs[f"leeward-{name}"]["MaximumRetryAttempts"] == 0


@pytest.mark.parametrize(("name", "every"), [("reconciler", "rate(1 minute)"), ("sync", "rate(5 minutes)")])
def test_it_is_called_on_its_schedule_and_only_by_it(template, name, every):
    rule = template.named("AWS::Events::Rule")[f"leeward-{name}-schedule"]
    assert rule["ScheduleExpression"] == every
    arn = f"arn:aws:lambda:us-east-1:111122223333:function:leeward-{name}"
    assert [target["Arn"] for target in rule["Targets"]] == [arn]
    (permission,) = [p for p in template.resources("AWS::Lambda::Permission").values() if p["FunctionName"] == arn]
    assert permission["Principal"] == "events.amazonaws.com"
    assert permission["SourceArn"].endswith(f":rule/leeward-{name}-schedule")
