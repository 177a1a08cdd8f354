"""What is deployed: each part that is missing, switched off or aimed elsewhere is named with its way out."""

from dataclasses import replace
from datetime import timedelta

import pytest

from leeward import __version__
from leeward.doctor import expected
from leeward.doctor.checks.functions import VERSION
from leeward.doctor.diagnosis import diagnose, healthy
from leeward.doctor.facts import Counts, DeploymentAlarm, EventSource, Function, MessageAge, RecordTable, TopicKey
from leeward.doctor.finding import PART_OF, Check, State
from leeward.errors import AccessDeniedError, AwsUnavailableError
from leeward.model.concurrency import Concurrency
from leeward.policy.document import Webhook
from tests.fakes.builders import a_policy, policies
from tests.fakes.clock import START
from tests.fakes.deployment import a_queue, arn
from tests.unit.doctor.patient import Patient


def test_where_everything_is_in_order_nothing_else_is_said(patient):
    findings = patient.findings()
    assert patient.troubles() == []
    assert healthy(findings)
    assert all(found.fix is None and found.found for found in findings)
    lacking = {Check.UPGRADE, Check.MEMBER_ROLE, Check.ALARM_TOPIC, Check.SENDER_TOPIC, Check.CAPACITY_UNITS}
    assert {found.check for found in findings} == set(Check) - lacking  # of what this deployment has not


def test_every_check_belongs_to_a_part():
    assert set(PART_OF) == set(Check)


def test_where_nothing_is_deployed_one_sentence_says_so(patient):
    patient.deployment.functions.clear()
    found = patient.trouble(Check.DEPLOYMENT)
    assert "cdk deploy" in found.fix
    assert "us-east-1" in found.object


def of_version(patient, version, *names):
    for name in names or tuple(patient.deployment.functions):
        found = patient.deployment.functions[name]
        environment = {**found.environment, "LEEWARD_VERSION": version}
        patient.deployment.functions[name] = replace(found, environment=environment)


def test_a_deployment_of_another_version_is_named_with_both_ways_out(patient):
    of_version(patient, "0.0.9")
    found = patient.trouble(Check.DEPLOYMENT)
    assert (found.state, found.object) == (State.WARNING, "version")
    assert "0.0.9" in found.found
    assert found.fix == f"install leeward 0.0.9 for this deployment, or deploy {__version__}"


def test_functions_of_several_versions_are_an_update_that_has_not_ended(patient):
    of_version(patient, "0.0.9", "leeward-drain")
    assert "an update is under way" in patient.trouble(Check.DEPLOYMENT).found


def test_a_function_that_is_not_there(patient):
    del patient.deployment.functions["leeward-drain"]
    found = patient.trouble(Check.FUNCTION)
    assert (found.object, found.state, found.found) == ("function leeward-drain", State.FAILED, "it is not there")


@pytest.mark.parametrize(
    ("changes", "state", "words"),
    [
        ({"concurrency": 0}, State.FAILED, "nothing can call it"),
        ({"state": "Failed"}, State.FAILED, "Failed"),
        ({"update": "Failed"}, State.FAILED, "last update Failed"),
        ({"update": "InProgress"}, State.WARNING, "InProgress"),
    ],
)
def test_a_function_that_cannot_run(patient, changes, state, words):
    sync = patient.deployment.functions["leeward-sync"]
    patient.deployment.functions["leeward-sync"] = replace(sync, **changes)
    found = patient.trouble(Check.FUNCTION)
    assert found.state is state
    assert words in found.found


def test_an_idle_function_and_one_with_reserved_concurrency_are_in_order(patient):
    sync = patient.deployment.functions["leeward-sync"]
    patient.deployment.functions["leeward-sync"] = replace(sync, state="Inactive", concurrency=10)
    assert patient.troubles() == []


def test_errors_are_a_warning_that_names_the_log(patient):
    patient.deployment.counted["leeward-reconciler"] = Counts(errors=3)
    found = patient.trouble(Check.FUNCTION_ERRORS)
    assert (found.state, found.found) == (State.WARNING, "3 errors and 0 throttles in the last hour")
    assert "aws logs tail /aws/lambda/leeward-reconciler" in found.fix


def test_throttles_of_the_capped_function_are_meant(patient):
    patient.deployment.counted = {"leeward-drain": Counts(throttles=40), "leeward-interruption": Counts(throttles=1)}
    assert patient.trouble(Check.FUNCTION_ERRORS).object == "function leeward-interruption"


@pytest.mark.parametrize("status", [None, "DELETING"])
def test_a_state_machine(patient, status):
    patient.deployment.machines[expected.MACHINES[1]] = status
    assert patient.trouble(Check.STATE_MACHINE).object == "state machine leeward-node-group-upgrade"


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (None, "not there"),
        (RecordTable(status="ARCHIVED", stream=True, indexes={"open": "ACTIVE"}), "ARCHIVED"),
        (RecordTable(status="ACTIVE", stream=False, indexes={"open": "ACTIVE"}), "no stream"),
        (RecordTable(status="ACTIVE", stream=True, indexes={}), "no index open"),
        (RecordTable(status="ACTIVE", stream=True, indexes={"open": "CREATING"}), "open is CREATING"),
    ],
)
def test_a_table(patient, table, words):
    patient.deployment.tables = {"leeward": table} if table else {}
    found = patient.trouble(Check.TABLE)
    assert (found.state, words in found.found) == (State.FAILED, True)


def test_a_rule_that_is_switched_off(patient):
    patient.deployment.enabled["leeward-spot-interruption"] = False
    found = patient.trouble(Check.RULE)
    assert (found.object, found.found) == ("rule leeward-spot-interruption", "it is disabled")
    assert found.fix == "aws events enable-rule --name leeward-spot-interruption"


def test_a_schedule_that_is_switched_off(patient):
    patient.deployment.enabled["leeward-reconciler-schedule"] = False
    assert patient.trouble(Check.SCHEDULE).fix == "aws events enable-rule --name leeward-reconciler-schedule"


@pytest.mark.parametrize(
    ("targets", "words"),
    [([], "no target"), ([arn("sqs", "other-queue")], "other-queue, expected leeward-state-changes")],
)
def test_a_rule_that_leads_elsewhere(patient, targets, words):
    patient.deployment.aims["leeward-state-change"] = targets
    assert words in patient.trouble(Check.RULE).found


def test_a_rule_that_is_not_there(patient):
    del patient.deployment.enabled["leeward-lifecycle-action"]
    assert patient.trouble(Check.RULE).found == "it is not there"


def test_the_rule_of_a_webhook_is_looked_for_where_a_cluster_names_one():
    written = policies(a_policy())
    written = replace(written, settings=replace(written.settings, webhook=Webhook(url="https://example.com/hook")))
    patient = Patient(written=written)
    assert patient.trouble(Check.RULE).object == "rule leeward-blue-notifications"
    patient.deployment.enabled["leeward-blue-notifications"] = True
    assert patient.troubles() == []


@pytest.mark.parametrize(
    ("sources", "state", "words"),
    [
        ([], State.FAILED, "not there"),
        (
            [EventSource(id="e-1", source=arn("sqs", "leeward-interruption"), state="Disabled")],
            State.FAILED,
            "Disabled",
        ),
        (
            [EventSource(id="e-1", source=arn("sqs", "leeward-interruption"), state="Enabling")],
            State.WARNING,
            "Enabling",
        ),
        (
            [
                EventSource(
                    id="e-1",
                    source=arn("sqs", "leeward-interruption"),
                    state="Enabled",
                    result="PROBLEM: Function call failed",
                )
            ],
            State.FAILED,
            "PROBLEM",
        ),
    ],
)
def test_what_reads_the_queue(patient, sources, state, words):
    others = [source for source in patient.deployment.read_by["leeward-interruption"] if source.id != "e-1"]
    patient.deployment.read_by["leeward-interruption"] = [*sources, *others]
    found = patient.trouble(Check.EVENT_SOURCE)
    assert (found.state, words in found.found) == (state, True)
    if "Disabled" in found.found:
        assert found.fix == "aws lambda update-event-source-mapping --uuid e-1 --enabled"


def test_a_queue_that_nothing_reads_is_named(patient):
    sources = patient.deployment.read_by["leeward-interruption"]
    patient.deployment.read_by["leeward-interruption"] = [source for source in sources if source.id == "e-1"]
    assert patient.trouble(Check.EVENT_SOURCE).found == "it is not there: nothing reads leeward-state-changes"


def test_a_queue_without_its_dead_letter_queue(patient):
    queues = patient.deployment.queues
    queues[expected.QUEUE] = replace(queues[expected.QUEUE], dead_letters="")
    assert "nowhere" in patient.trouble(Check.QUEUE).found


def test_a_queue_that_is_not_there_is_named_once(patient):
    del patient.deployment.queues[expected.DEAD_LETTERS]
    assert patient.trouble(Check.QUEUE).object == f"queue {expected.DEAD_LETTERS}"


def without_rule(policy, name):
    (statement,) = policy["Statement"]
    sources = [one for one in statement["Condition"]["ArnEquals"]["aws:SourceArn"] if not one.endswith(name)]
    return {"Statement": [{**statement, "Condition": {"ArnEquals": {"aws:SourceArn": sources}}}]}


def test_a_queue_policy_that_keeps_one_rule_out_names_it(patient):
    queues = patient.deployment.queues
    queue = queues[expected.QUEUE]
    queues[expected.QUEUE] = replace(queue, policy=without_rule(queue.policy, "leeward-spot-interruption"))
    found = patient.trouble(Check.QUEUE_POLICY)
    assert found.found == "its policy does not let these rules send: leeward-spot-interruption"


@pytest.mark.parametrize(
    ("change", "admitted"),
    [
        ({"Condition": {"ArnLike": {"aws:SourceArn": arn("events", "rule/leeward-*")}}}, True),
        ({"Condition": {}}, True),
        ({"Action": ["sqs:*"], "Principal": "*"}, True),
        ({"Effect": "Deny"}, False),
        ({"Principal": {"Service": "sns.amazonaws.com"}}, False),
        ({"Action": "sqs:ReceiveMessage"}, False),
        ({"Condition": {"StringEquals": {"aws:PrincipalTag/team": "web"}}}, False),
    ],
)
def test_what_a_queue_policy_may_look_like(patient, change, admitted):
    queues = patient.deployment.queues
    (statement,) = queues[expected.QUEUE].policy["Statement"]
    queues[expected.QUEUE] = replace(queues[expected.QUEUE], policy={"Statement": {**statement, **change}})
    assert bool(patient.troubles()) is not admitted


@pytest.mark.parametrize(("queue", "limit"), [(expected.QUEUE, 60), (expected.STATE_CHANGES, 600)])
@pytest.mark.parametrize("kind", ["unread", "failing"])
def test_messages_that_wait_too_long(patient, queue, limit, kind):
    """SQS leaves a message that was received three times out of its metric: it is not unread, and it fails."""
    patient.deployment.ages[queue] = MessageAge(**{kind: limit - 1.0})
    assert patient.troubles() == []
    patient.deployment.ages[queue] = MessageAge(**{kind: limit + 1.0})
    found = patient.trouble(Check.QUEUE_AGE)
    assert (found.state, found.object) == (State.FAILED, f"queue {queue}")
    assert ("fails" if kind == "failing" else "unread") in found.found


TOPIC = "arn:aws:sns:us-east-1:111122223333:operators"
ADMITTED = {"Principal": {"Service": "cloudwatch.amazonaws.com"}, "Action": ["kms:Decrypt", "kms:GenerateDataKey*"]}


@pytest.mark.parametrize(
    ("key", "state", "words"),
    [
        (TopicKey(), State.OK, "not encrypted"),
        (TopicKey(id="alias/aws/sns", aws_managed=True), State.FAILED, "alias/aws/sns, which CloudWatch may not use"),
        (TopicKey(id="alias/own", policy={"Statement": []}), State.FAILED, "does not let cloudwatch.amazonaws.com"),
        (TopicKey(id="alias/own", policy={"Statement": {"Effect": "Allow", **ADMITTED}}), State.OK, "may use its key"),
        (
            TopicKey(id="alias/own", policy={"Statement": [{"Effect": "Deny", **ADMITTED}]}),
            State.FAILED,
            "does not let",
        ),
        (
            TopicKey(id="k", policy={"Statement": [{"Effect": "Allow", **ADMITTED, "Action": "kms:Decrypt"}]}),
            State.FAILED,
            "does not let",
        ),
        (None, State.FAILED, "not there"),
    ],
)
def test_the_key_of_the_topic_that_alarms_notify(patient, key, state, words):
    ringing = patient.deployment.ringing
    ringing["leeward-dead-letters"] = DeploymentAlarm(state="OK", topics=(TOPIC,))
    patient.deployment.keys[TOPIC] = key
    (found,) = [found for found in patient.findings() if found.check is Check.ALARM_TOPIC]
    assert (found.object, found.state) == (f"topic {TOPIC}", state)
    assert words in found.found


def test_a_topic_that_delivers_raw_messages_to_our_queue(patient):
    name = "leeward-interruption"
    environment = patient.deployment.functions[name].environment
    for function, made in patient.deployment.functions.items():
        patient.deployment.functions[function] = replace(
            made, environment={**environment, "HOOK_TOPICS": f'["{TOPIC}"]'}
        )
    assert patient.troubles() == []
    patient.deployment.raw[TOPIC] = [f"{TOPIC}:1"]
    found = patient.trouble(Check.SENDER_TOPIC)
    assert (found.state, found.object) == (State.FAILED, f"topic {TOPIC}")
    assert f"--subscription-arn {TOPIC}:1 --attribute-name RawMessageDelivery --attribute-value false" in found.fix


def test_dead_letters_are_counted_and_the_way_to_look_at_them_is_reported(patient):
    patient.deployment.queues[expected.DEAD_LETTERS] = a_queue(expected.DEAD_LETTERS, messages=4)
    found = patient.trouble(Check.DEAD_LETTERS)
    assert (found.state, found.found) == (State.FAILED, "4 messages could not be read or handled")
    assert "aws sqs receive-message --queue-url https://sqs." in found.fix


def test_events_that_name_no_node_concern_none(patient):
    patient.deployment.queues[expected.UNDELIVERED] = a_queue(expected.UNDELIVERED, messages=1)
    assert patient.trouble(Check.DEAD_LETTERS).state is State.WARNING


def test_an_alarm_says_itself_what_to_do(patient):
    patient.deployment.ringing["leeward-sync-stopped"] = DeploymentAlarm(
        state="ALARM", reason="no data", description="Look."
    )
    found = patient.trouble(Check.ALARM)
    assert (found.state, found.found, found.fix) == (State.FAILED, "it is in ALARM: no data", "Look.")


def test_an_alarm_without_data_does_not_ring_and_one_that_is_missing_does(patient):
    patient.deployment.ringing["leeward-queue-age"] = DeploymentAlarm(state="INSUFFICIENT_DATA")
    assert patient.troubles() == []
    del patient.deployment.ringing["leeward-queue-age"]
    assert patient.trouble(Check.ALARM).object == "alarm leeward-queue-age"


def test_alarms_without_actions(patient):
    patient.deployment.ringing = {name: DeploymentAlarm(state="OK", notifies=False) for name in expected.ALARMS}
    found = patient.trouble(Check.ALARM_ACTIONS)
    assert (found.state, "alarmTopic" in found.fix) == (State.WARNING, True)


READS = {
    "function": "lambda:GetFunction",
    "counts": "cloudwatch:GetMetricData",
    "machine": "states:DescribeStateMachine",
    "failures": "states:ListExecutions",
    "sources": "lambda:ListEventSourceMappings",
    "queue": "sqs:GetQueueAttributes",
    "table": "dynamodb:DescribeTable",
    "rules": "events:ListRules",
    "targets": "events:ListTargetsByRule",
    "alarms": "cloudwatch:DescribeAlarms",
    "groups": "autoscaling:DescribeAutoScalingGroups",
    "cluster": "eks:DescribeCluster",
    "entry": "eks:DescribeAccessEntry",
}


@pytest.mark.parametrize(("method", "permission"), READS.items())
def test_what_may_not_be_read_is_unknown_and_the_permission_named(patient, method, permission):
    """Everything else is read all the same."""
    patient.deployment.fail(method, AccessDeniedError(f"{permission} on it: AccessDenied: not authorized"))
    findings = patient.findings(requested_cluster="blue")
    unknown = [found for found in findings if found.state is State.UNKNOWN]
    assert unknown
    assert all(found.fix.startswith("allow yourself ") for found in unknown)
    assert any(permission in found.fix for found in unknown)
    assert healthy(findings)
    assert {found.check for found in findings} >= {Check.FUNCTION, Check.RULE, Check.QUEUE, Check.CLUSTER, Check.TABLE}


def test_what_failed_on_the_way_is_unknown_as_well_and_no_permission_is_to_blame(patient):
    patient.deployment.fail("table", AwsUnavailableError("dynamodb:DescribeTable on leeward: it did not answer"))
    found = patient.trouble(Check.TABLE)
    assert (found.state, "run leeward doctor again" in found.fix) == (State.UNKNOWN, True)


def test_every_read_is_denied_and_nothing_but_unknowns_is_reported(patient):
    for fake in (patient.deployment, patient.rbac, patient.system.claims, patient.system.groups):
        for method in [name for name in dir(fake) if not name.startswith("_") and callable(getattr(fake, name))]:
            fake.fail(method, AccessDeniedError(f"{method}: not allowed"))
    for fake in (
        patient.system.kubernetes,
        patient.system.catalog,
        patient.system.upgrades,
        patient.system.disruptions,
    ):
        fake.fail("nodes", AccessDeniedError("nodes: not allowed"))
        fake.fail("read", AccessDeniedError("read: not allowed"))
    findings = patient.findings(requested_cluster="blue")
    assert {found.state for found in findings} <= {State.UNKNOWN, State.OK}
    assert sum(found.state is State.UNKNOWN for found in findings) > 20


def test_a_deployment_whose_settings_cannot_be_understood(patient):
    patient.deployment.functions = {
        name: Function(environment={"CLUSTERS": "?", VERSION: __version__}) for name in expected.FUNCTIONS
    }
    assert patient.trouble(Check.CLUSTER).object == "all clusters"


def test_a_cluster_that_is_not_served(patient):
    found = patient.trouble(Check.CLUSTER, requested_cluster="red")
    assert (found.object, "serves blue" in found.found) == ("cluster red", True)


def test_only_the_cluster_that_is_asked_for_is_looked_into():
    both = Patient(serving=("blue", "green"))
    both.system.clusters.apis["green"] = both.system.kubernetes
    both.system.clusters.policies_of["green"] = policies(a_policy(), cluster="green")
    looked = {found.object for found in both.findings() if found.check is Check.CLUSTER}
    assert looked == {"cluster blue", "cluster green"}
    only = {found.object for found in both.findings(requested_cluster="blue") if found.check is Check.CLUSTER}
    assert only == {"cluster blue"}


def test_the_hour_and_the_day_end_now(patient):
    """What is older does not count: the fake gives what was asked for."""
    facts = patient.facts(now=START + timedelta(minutes=1))
    assert diagnose(facts)
    assert facts.now == START + timedelta(minutes=1)


def test_before_a_first_deployment_the_starter_quota_is_reported(patient):
    patient.deployment.functions.clear()
    patient.deployment.executions = Concurrency(limit=10, unreserved=10)
    (quota,) = [found for found in patient.findings() if found.check is Check.CONCURRENCY]
    assert quota.state is State.WARNING
    assert "'Concurrent executions' of Lambda (L-B99A9384) is 10" in quota.found
    assert "request-service-quota-increase" in quota.fix


def test_a_deployment_with_the_starter_quota_is_a_warning(patient):
    patient.deployment.executions = Concurrency(limit=10, unreserved=10)
    assert "a burst of events is throttled" in patient.trouble(Check.CONCURRENCY).found


class TestPrivateNetwork:
    """Functions in a VPC reach each service by an endpoint or by a route out; what is missing is named."""

    @pytest.fixture
    def inside(self, patient):
        there = patient.deployment.functions
        there["leeward-drain"] = replace(there["leeward-drain"], vpc="vpc-1", subnets=("subnet-a",))
        return patient

    @pytest.mark.parametrize("name", sorted(expected.ENDPOINTS))
    def test_a_missing_endpoint_is_named_with_what_happens_without(self, inside, name):
        inside.deployment.endpoints.discard(name)
        found = inside.trouble(Check.VPC_ENDPOINT)
        assert found.object == f"com.amazonaws.us-east-1.{name} in vpc-1"
        assert found.state is (State.WARNING if name in expected.NICE_TO_HAVE else State.FAILED)
        assert expected.ENDPOINTS[name] in found.found
        assert f"--service-name com.amazonaws.us-east-1.{name} " in found.fix

    def test_a_route_out_serves_as_well(self, inside):
        inside.deployment.endpoints.clear()
        inside.deployment.routed = True
        assert inside.troubles() == []

    def test_outside_of_a_vpc_nothing_is_asked(self, patient):
        assert patient.troubles() == []
        assert patient.deployment.asked["network"] == 0
