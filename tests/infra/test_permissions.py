"""Least privilege: every right has its scope, every wildcard its reason, every write on a group its cluster tag."""

import pytest

from infra.customer_key import key_permissions
from infra.member_permissions import ASSUME_MEMBER
from infra.permission import Key, Scope
from infra.permissions import PERMISSIONS
from infra.service_permissions import (
    DISRUPTION_MACHINE,
    EVERY_FUNCTION,
    IN_A_VPC,
    LEAVES_A_VPC,
    STATE_MACHINE,
    UPGRADE_MACHINE,
)
from tests.infra.conftest import LONG_NAME, NODES

MACHINES = {
    "leeward-node-termination": STATE_MACHINE,
    "leeward-node-group-upgrade": UPGRADE_MACHINE,
    "leeward-managed-node-group-upgrade": UPGRADE_MACHINE,
    "leeward-disruption": DISRUPTION_MACHINE,
}
KEY = {f"{name} with a key": key_permissions(table) for name, table in PERMISSIONS.items()}
ELSEWHERE = {"clusters elsewhere": (ASSUME_MEMBER,)}
OF_LAMBDA = {"every function": EVERY_FUNCTION, "leaving a vpc": LEAVES_A_VPC, "in a vpc": IN_A_VPC}
TABLES = {**PERMISSIONS, **KEY, **ELSEWHERE, **OF_LAMBDA, **MACHINES}
ALL = [pytest.param(p, id=f"{who}: {p.action}") for who, table in TABLES.items() for p in table]
WIDE = {
    Scope.ANYTHING,
    Scope.OWN_LOGS,
    Scope.STREAM,
    Scope.EXECUTIONS,
    Scope.CLUSTER_GROUPS,
    Scope.POLICIES,
    Scope.NODE_GROUPS,
    Scope.FLEET_LAUNCHED,
    Scope.LAUNCHED,
    Scope.NAMED,
    Scope.LAUNCHED_WITH,
    Scope.LAUNCH_TAGS,
    Scope.LAMBDA_ITSELF,
    Scope.UPGRADE_EXECUTIONS,
    Scope.DISRUPTION_EXECUTIONS,
    Scope.CLUSTER_INSTANCES,
    Scope.CLUSTER_TEMPLATES,
    Scope.IMAGES,
    Scope.SHIFTED_CLUSTERS,
}
CHANGES_A_GROUP = {
    "autoscaling:CompleteLifecycleAction",
    "autoscaling:DeleteLifecycleHook",
    "autoscaling:LaunchInstances",
    "autoscaling:PutLifecycleHook",
    "autoscaling:RecordLifecycleActionHeartbeat",
    "autoscaling:ResumeProcesses",
    "autoscaling:SuspendProcesses",
    "autoscaling:TerminateInstanceInAutoScalingGroup",
    "autoscaling:UpdateAutoScalingGroup",
}


def test_alarms_are_read_with_a_right_on_everything_or_composite_alarms_seem_deleted():
    """CloudWatch, DescribeAlarms: a permission with a narrower scope than * returns no composite alarm."""
    rights = [one for table in TABLES.values() for one in table if one.action == "cloudwatch:DescribeAlarms"]
    assert {one.on for one in rights} == {Scope.ANYTHING}


@pytest.mark.parametrize("permission", ALL)
def test_a_wildcard_or_a_call_by_a_service_has_a_written_reason(permission):
    if permission.on in WIDE or permission.indirect:
        assert len(permission.reason.split()) >= 4


@pytest.mark.parametrize("permission", ALL)
def test_no_action_is_itself_a_pattern(permission):
    assert "*" not in permission.action


def test_the_roles_allow_what_the_tables_say_and_nothing_else(everything):
    functions = everything.named("AWS::Lambda::Function")
    for name, table in PERMISSIONS.items():
        function = functions[f"leeward-{name}"]
        in_vpc = (*LEAVES_A_VPC, *IN_A_VPC) if "VpcConfig" in function else ()
        expected = {permission.action for permission in (*table, *EVERY_FUNCTION, *in_vpc)}
        allowed = [action for statement in everything.statements(function["Role"]) for action in statement.actions]
        assert set(allowed) == expected
    for machine in everything.resources("AWS::StepFunctions::StateMachine").values():
        allowed = {action for statement in everything.statements(machine["RoleArn"]) for action in statement.actions}
        assert allowed == {p.action for p in MACHINES[machine["StateMachineName"]]}


def test_every_wildcard_in_the_template_comes_from_a_scope_that_owes_a_reason(everything):
    for statements in everything.roles().values():
        for statement in statements:
            if any("*" in resource for resource in statement.resources):
                scopes = {p.on for table in TABLES.values() for p in table if p.action in statement.actions}
                assert scopes & WIDE, statement


def test_whatever_changes_a_group_is_held_to_the_tags_of_our_clusters(everything):
    seen = set()
    for statements in everything.roles().values():
        for statement in statements:
            changes = CHANGES_A_GROUP & set(statement.actions)
            if changes:
                seen |= changes
                assert set(statement.actions) <= CHANGES_A_GROUP
                assert statement.conditions in [
                    {"StringEquals": {"aws:ResourceTag/kubernetes.io/cluster/blue": ["owned", "shared"]}},
                    {"StringEquals": {f"aws:ResourceTag/kubernetes.io/cluster/{LONG_NAME}": ["owned", "shared"]}},
                    {"StringEquals": {"aws:ResourceTag/eks:cluster-name": ["blue", LONG_NAME]}},
                ]
    assert seen == CHANGES_A_GROUP


def test_only_drains_may_reboot_and_only_instances_of_our_clusters(everything):
    rebooting = {}
    for name, function in everything.named("AWS::Lambda::Function").items():
        statements = [s for s in everything.statements(function["Role"]) if "ec2:RebootInstances" in s.actions]
        rebooting |= {name: statements} if statements else {}
    assert set(rebooting) == {"leeward-drain"}
    for statement in rebooting["leeward-drain"]:
        assert all(arn.endswith(":instance/*") for arn in statement.resources)
        (tag,) = statement.conditions["StringEquals"]
        assert tag.startswith(("aws:ResourceTag/kubernetes.io/cluster/", "aws:ResourceTag/eks:cluster-name"))


def test_each_cluster_tag_is_a_statement_of_its_own(everything):
    """Keys of one condition are AND'ed: together they would match no group at all."""
    role = everything.named("AWS::Lambda::Function")["leeward-sync"]["Role"]
    statements = [s for s in everything.statements(role) if "autoscaling:PutLifecycleHook" in s.actions]
    assert len(statements) == 3
    assert all(len(s.conditions["StringEquals"]) == 1 for s in statements)


def test_roles_are_passed_to_ec2_only_and_only_those_named(template, everything):
    demo = "arn:aws:iam::111122223333:role/demo-nodes"
    for stack, resources in ((template, (demo,)), (everything, (NODES,))):
        role = stack.named("AWS::Lambda::Function")["leeward-drain"]["Role"]
        (statement,) = [s for s in stack.statements(role) if "iam:PassRole" in s.actions]
        assert statement.resources == resources
        assert statement.conditions["StringEquals"]["iam:PassedToService"][0] == "ec2.amazonaws.com"


@pytest.mark.parametrize(
    ("machine", "function"),
    [
        ("leeward-node-group-upgrade", "leeward-upgrade"),
        ("leeward-managed-node-group-upgrade", "leeward-upgrade"),
        ("leeward-disruption", "leeward-disrupt"),
    ],
)
def test_upgrades_and_rounds_call_their_function_and_write_nothing_themselves(template, machine, function):
    machines = template.resources("AWS::StepFunctions::StateMachine").values()
    (role,) = [one["RoleArn"] for one in machines if one["StateMachineName"] == machine]
    by_action = {action: s for s in template.statements(role) for action in s.actions}
    assert [arn.rsplit(":")[-1] for arn in by_action["lambda:InvokeFunction"].resources] == [function]
    assert not [action for action in by_action if action.startswith("dynamodb:")]


def test_node_termination_writes_termination_records_and_calls_its_two_functions_only(template):
    machines = template.resources("AWS::StepFunctions::StateMachine").values()
    (role,) = [one["RoleArn"] for one in machines if one["StateMachineName"] == "leeward-node-termination"]
    by_action = {action: s for s in template.statements(role) for action in s.actions}
    assert by_action["dynamodb:UpdateItem"].conditions == {
        "ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["termination#*"]},
        "Null": {"dynamodb:LeadingKeys": "false"},
    }
    assert {arn.rsplit(":")[-1] for arn in by_action["lambda:InvokeFunction"].resources} == {
        "leeward-terminate",
        "leeward-drain",
    }


def test_fn_sync_writes_facts_and_no_termination_record(template):
    role = template.named("AWS::Lambda::Function")["leeward-sync"]["Role"]
    (statement,) = [s for s in template.statements(role) if "dynamodb:PutItem" in s.actions]
    assert set(statement.actions) == {"dynamodb:BatchGetItem", "dynamodb:PutItem"}
    assert statement.conditions == {
        "ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["facts#*"]},
        "Null": {"dynamodb:LeadingKeys": "false"},
    }


def test_every_right_on_the_table_names_its_keys(everything):
    for statements in everything.roles().values():
        for statement in statements:
            if any(resource.endswith(":table/leeward") for resource in statement.resources):
                keys = statement.conditions["ForAllValues:StringLike"]["dynamodb:LeadingKeys"]
                assert keys
                assert set(keys) <= {key.value for key in Key}
                assert statement.conditions["Null"] == {"dynamodb:LeadingKeys": "false"}


def test_only_the_table_has_keys():
    for table in TABLES.values():
        for permission in table:
            assert bool(permission.keys) == (permission.on is Scope.TABLE), permission


def test_every_key_is_used():
    assert {key for table in TABLES.values() for permission in table for key in permission.keys} == set(Key)


def test_only_drains_upgrades_and_runs_may_launch(template):
    functions = template.named("AWS::Lambda::Function")
    launching = {
        name
        for name, function in functions.items()
        if any("autoscaling:LaunchInstances" in s.actions for s in template.statements(function["Role"]))
    }
    assert launching == {"leeward-drain", "leeward-upgrade", "leeward-disrupt"}


def test_only_the_configured_clusters_policies_are_read(everything):
    role = everything.named("AWS::Lambda::Function")["leeward-drain"]["Role"]
    (statement,) = [s for s in everything.statements(role) if "ssm:GetParametersByPath" in s.actions]
    assert all("/leeward/blue/policies" in r or f"/leeward/{LONG_NAME}/policies" in r for r in statement.resources)


WEARERS = {
    "act": {"TerminationDrain"},
    "taint": {
        "InterruptionInterruption",
        "TerminationReconciler",
        "UpgradeUpgrade",
        "DisruptionDisruptionPlanner",
        "DisruptionDisrupt",
        "SyncSync",
    },
}


def test_a_cluster_role_is_worn_by_its_functions_alone_and_can_do_nothing_in_aws(template):
    roles = template.named_roles("leeward-us-east-1-demo-")
    assert set(roles) == set(WEARERS)
    for access, role in roles.items():
        assert "Policies" not in role
        assert "ManagedPolicyArns" not in role
        (statement,) = role["AssumeRolePolicyDocument"]["Statement"]
        named = statement["Principal"]["AWS"]
        wearers = {arn.split("/")[-1] for arn in ([named] if isinstance(named, str) else named)}
        assert {wearer.split("Function")[0] for wearer in wearers} == WEARERS[access]


def test_the_cluster_knows_each_role_by_its_group(template, everything):
    entries = template.resources("AWS::EKS::AccessEntry").values()
    assert {(e["ClusterName"], e["PrincipalArn"].rsplit("/")[-1], *e["KubernetesGroups"]) for e in entries} == {
        ("demo", "leeward-us-east-1-demo-taint", "leeward:taint"),
        ("demo", "leeward-us-east-1-demo-act", "leeward:act"),
    }
    assert not everything.resources("AWS::EKS::AccessEntry"), "accessEntries: false leaves them out"


def test_every_scope_is_used():
    assert {p.on for table in TABLES.values() for p in table} == set(Scope)
