"""What `leeward doctor` expects is what the template makes, no more and no less, and what the manifest allows."""

import json

import pytest
import yaml

from leeward.doctor import expected
from leeward.interruption import metrics
from leeward.telemetry import NAMESPACE
from leeward.termination import replica_surge
from tests.infra.conftest import ROOT

RULES = {expected.ROLE_MANIFEST: expected.NEEDED, expected.SURGE_MANIFEST: expected.FOR_SURGE}
MANIFESTS = {path: list(yaml.safe_load_all((ROOT / path).read_text())) for path in RULES}


def test_functions_state_machines_queues_and_alarms(template):
    for kind, named in (
        ("AWS::Lambda::Function", expected.FUNCTIONS),
        ("AWS::StepFunctions::StateMachine", expected.MACHINES),
        ("AWS::SQS::Queue", expected.QUEUES),
        ("AWS::CloudWatch::Alarm", expected.ALARMS),
    ):
        assert set(template.named(kind)) == set(named), kind


def test_the_table_and_its_index(template):
    table = template.named("AWS::DynamoDB::Table")[expected.TABLE]
    assert [index["IndexName"] for index in table["GlobalSecondaryIndexes"]] == [expected.INDEX]
    assert table["StreamSpecification"]


def test_rules_schedules_and_their_targets(template):
    rules = template.named("AWS::Events::Rule")
    wanted = {**expected.RULES, **expected.SCHEDULES}
    assert set(rules) == set(wanted)
    for name, rule in rules.items():
        assert [target["Arn"].endswith(wanted[name]) for target in rule["Targets"]] == [True], name
        assert ("ScheduleExpression" in rule) == (name in expected.SCHEDULES)


def test_the_rules_of_webhooks_are_on_the_bus_that_is_read(everything):
    (bus,) = {
        rule["EventBusName"] for rule in everything.resources("AWS::Events::Rule").values() if "EventBusName" in rule
    }
    assert bus == expected.WEBHOOK_BUS


def test_the_metrics_of_failing_messages_are_those_that_the_function_emits():
    assert set(expected.FAILING) == set(expected.READ_QUEUES)
    assert list(expected.FAILING.values()) == [metrics.OLDEST_INTERRUPTION, metrics.OLDEST_STATE_CHANGE]
    assert expected.METRICS == NAMESPACE


def test_event_sources(template):
    found = template.resources("AWS::Lambda::EventSourceMapping").values()
    wanted = {(function, part) for function, parts in expected.SOURCES.items() for part in parts}
    assert len(found) == len(wanted)
    for function, part in wanted:
        sources = [json.dumps(mapping["EventSourceArn"]) for mapping in found if mapping["FunctionName"] == function]
        assert function == "leeward-notifications" or any(f'{part}"' in source for source in sources), part


@pytest.mark.parametrize("queue", expected.READ_QUEUES)
def test_every_rule_that_fills_a_queue_is_one_that_its_policy_admits(template, queue):
    (document,) = [
        found["PolicyDocument"]
        for found in template.resources("AWS::SQS::QueuePolicy").values()
        if any(url.endswith(f"/{queue}") for url in found["Queues"])
    ]
    admitted = [
        source.removesuffix(".Arn")
        for statement in document["Statement"]
        if statement.get("Sid") == "OurRules"
        for source in statement["Condition"]["ArnEquals"]["aws:SourceArn"]
    ]
    rules = {rule for rule, target in expected.QUEUE_RULES.items() if target == f":{queue}"}
    assert {source.rpartition("/")[2] for source in admitted} == rules


def test_only_the_capped_function_is_excused_its_throttles(template):
    reserved = {
        name
        for name, function in template.named("AWS::Lambda::Function").items()
        if "ReservedConcurrentExecutions" in function
    }
    assert reserved == {expected.CAPPED, "leeward-interruption"}


def test_every_function_that_enters_a_cluster_is_what_the_doctor_looks_for(template):
    functions = template.named("AWS::Lambda::Function").values()
    access = {function["Environment"]["Variables"]["KUBERNETES_ACCESS"] for function in functions}
    assert {f"leeward-{each}": f"{each}Role" for each in access - {"none"}} == dict(expected.ENTERED_AS)


@pytest.mark.parametrize("path", RULES)
def test_the_rules_of_the_cluster_roles(path):
    allowed = {
        document["metadata"]["name"]: {
            (group, resource, verb)
            for rule in document["rules"]
            for group in rule["apiGroups"]
            for resource in rule["resources"]
            for verb in rule["verbs"]
        }
        for document in MANIFESTS[path]
        if document["kind"] == "ClusterRole"
    }
    assert allowed == dict(RULES[path])


def test_the_bindings():
    bound = {
        document["roleRef"]["name"]: tuple(subject["name"] for subject in document["subjects"])
        for documents in MANIFESTS.values()
        for document in documents
        if document["kind"] == "ClusterRoleBinding"
    }
    assert dict(expected.KUBERNETES_GROUPS) == bound


def test_a_drain_that_may_not_scale_names_the_same_manifest_as_the_doctor():
    assert replica_surge.MANIFEST == expected.SURGE_MANIFEST


def test_what_functions_are_reported_is_what_the_doctor_reads(template):
    from leeward.doctor.gather import clusters_of, queue_arns_of

    reported = template.named("AWS::Lambda::Function")["leeward-sync"]["Environment"]["Variables"]
    reported = {name: value if isinstance(value, str) else json.dumps(value) for name, value in reported.items()}
    served = clusters_of(reported)
    for one in served:
        names = {role: arn.rpartition("/")[2] for role, arn in one.roles.items()}
        assert names == {f"leeward-{access}": f"leeward-us-east-1-{one.name}-{access}" for access in ("taint", "act")}
    assert [arn.rpartition(":")[2] for arn in queue_arns_of(reported)] == [expected.QUEUE]
