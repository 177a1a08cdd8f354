"""Clusters of other accounts and Regions: settings, the hub's bus, and what a member lets the hub do."""

import json

import pytest

from infra.member_permissions import OF_CLUSTERS, member_permissions
from infra.permission import Scope
from infra.permissions import PERMISSIONS
from infra.rules import OF_THE_ACCOUNT, RULES, live
from infra.settings import read_settings
from leeward.adapters.settings import Settings
from leeward.doctor import expected
from leeward.errors import InvalidInputError
from tests.infra.accounts import (
    EAST,
    EXTERNAL_IDS,
    HUB,
    REGIONS,
    SETTINGS,
    WEST,
    Deployed,
    a_cluster,
    nodes_of,
    read_member,
    stem_of,
    topic_of,
)
from tests.infra.conftest import ROOT, synthesize
from tests.infra.iam_evaluator import Request, allows

AT_HOME = {"dynamodb", "sqs", "states", "lambda", "logs", "kms", "events"}
OF_THE_DEPLOYMENT = {
    Scope.OWN_LOGS,
    Scope.TABLE,
    Scope.OPEN_INDEX,
    Scope.QUEUE,
    Scope.DEAD_LETTERS,
    Scope.UNDELIVERED,
    Scope.STREAM,
    Scope.BUS,
    Scope.STATE_MACHINE,
    Scope.EXECUTIONS,
    Scope.STEP_FUNCTIONS,
    Scope.UPGRADE_MACHINES,
    Scope.UPGRADE_EXECUTIONS,
    Scope.UPGRADE_FUNCTION,
    Scope.DISRUPTION_MACHINE,
    Scope.DISRUPTION_EXECUTIONS,
    Scope.DISRUPTION_FUNCTION,
    Scope.POLICIES,
    Scope.TAINT_ROLES,
    Scope.ACT_ROLES,
    Scope.MEMBER_ROLES,
    Scope.CUSTOMER_KEY,
    Scope.LAMBDA_ITSELF,
}
ACTING = sorted(name for name in PERMISSIONS if member_permissions(name))
GROUP = "arn:aws:autoscaling:{r}:{a}:autoScalingGroup:0a1b:autoScalingGroupName/web"


@pytest.fixture(scope="module")
def deployed(tmp_path_factory):
    outdir = tmp_path_factory.mktemp("accounts")
    hub = synthesize(outdir, leeward=SETTINGS)
    return Deployed(hub=hub, members={account: read_member(outdir, account) for account in (EAST, WEST)})


def read(clusters, **more):
    given = {"nodeRoles": [nodes_of(account) for account in REGIONS], **more, "clusters": clusters}
    return read_settings({"leeward": given}.get, ROOT, {})


BLUE = a_cluster("blue", HUB)


@pytest.mark.parametrize(
    ("cluster", "said"),
    [
        (a_cluster("east", EAST, externalId=None), "clusters[1].externalId: found nothing, expected the external id"),
        (a_cluster("east", EAST, roleArn=None), "clusters[1].externalId: found leeward-east-7319, expected roleArn"),
        (a_cluster("east", EAST, externalId="short"), "clusters[1].externalId: found short, expected 8 to 64"),
        (a_cluster("east", EAST, account="2222"), "clusters[1].account: found 2222, expected twelve digits"),
        (a_cluster("east", EAST, account=WEST), f"roleArn: found account {EAST}, expected a role in the cluster's"),
        (
            a_cluster("east", EAST, account=None),
            "expected account and region beside it",
        ),
        (a_cluster("east", EAST, region=None), "expected account and region beside it"),
        (a_cluster("east", EAST, roleArn=f"{stem_of(EAST)}/*"), "expected the ARN of a role without a path"),
        (a_cluster("east", EAST, roleArn=f"{stem_of(EAST)}{'x' * 40}"), "has at most 45 characters"),
        (a_cluster("blue", EAST), "clusters[1].name: found blue, expected each cluster once, and no name twice"),
        (
            {**a_cluster("east", EAST), "account": HUB, "roleArn": stem_of(HUB)},
            "expected none: the cluster is in the deployment's own account and Region",
        ),
        (
            {"name": "east", "policies": ["policies/default.yaml"], "account": EAST, "region": "us-east-1"},
            "the same account for all clusters of one deployment, or roleArn and externalId beside that of another",
        ),
        (
            a_cluster("east", EAST, alarmTopic=topic_of(HUB)),
            f"clusters[1].alarmTopic: found {topic_of(HUB)}, expected a topic in the cluster's account {EAST}",
        ),
        (
            a_cluster("east", EAST, alarmTopic=topic_of(EAST, "eu-west-1")),
            f"expected a topic in the cluster's account {EAST} and Region us-east-1",
        ),
        (a_cluster("east", EAST, alarmTopic="operators"), "expected the ARN of an SNS topic"),
        (a_cluster("home", HUB, alarmTopic=topic_of(HUB)), "expected roleArn beside it; alarms at home notify"),
    ],
)
def test_what_is_wrong_with_a_cluster_elsewhere_is_named(cluster, said):
    with pytest.raises(InvalidInputError) as raised:
        read([BLUE, cluster])
    assert said in str(raised.value)


def test_clusters_of_one_account_and_region_share_role_and_external_id():
    other = a_cluster("more", EAST, externalId="another-external-id")
    with pytest.raises(InvalidInputError, match="expected roleArn and externalId of cluster east"):
        read([BLUE, a_cluster("east", EAST), other])


def test_clusters_of_one_account_and_region_share_the_topic_of_their_alarm():
    east, more = (a_cluster(name, EAST, alarmTopic=topic_of(EAST)) for name in ("east", "more"))
    assert [member.alarm_topic for member in read([BLUE, east, more]).members] == [topic_of(EAST)]
    for other in (None, f"{topic_of(EAST)}-2"):
        with pytest.raises(InvalidInputError, match=f"expected {topic_of(EAST)} as of cluster east"):
            read([BLUE, east, {**more, "alarmTopic": other}])


def test_the_roles_of_an_account_s_nodes_are_named():
    with pytest.raises(InvalidInputError, match=f"no role of account {EAST}, expected the roles"):
        read([BLUE, a_cluster("east", EAST)], nodeRoles=[nodes_of(HUB)])


def test_a_deployment_with_clusters_elsewhere_alone_has_to_know_where_it_is():
    with pytest.raises(InvalidInputError, match="CDK_DEFAULT_ACCOUNT"):
        read([a_cluster("east", EAST)])


def test_a_cluster_of_another_region_of_the_same_account_is_elsewhere():
    west = a_cluster("far", WEST, account=HUB, roleArn=stem_of(HUB), alarmTopic=None)
    (member,) = read([BLUE, west]).members
    assert (member.account, member.region, member.node_roles) == (HUB, "eu-west-1", (nodes_of(HUB),))


def test_every_scope_is_the_clusters_or_the_deployment_s_own():
    """A new scope has to be put into one of both: a member's functions would lack its permissions."""
    assert set(Scope) == OF_CLUSTERS | OF_THE_DEPLOYMENT
    assert not OF_CLUSTERS & OF_THE_DEPLOYMENT


@pytest.mark.parametrize("function", sorted(PERMISSIONS))
def test_a_function_may_call_the_same_services_for_a_cluster_elsewhere(function):
    """By services, whatever scope a new permission has: those of records, messages and executions are at home."""
    here = {one.action for one in PERMISSIONS[function] if one.action.partition(":")[0] not in AT_HOME}
    policies, roles = {"ssm:GetParametersByPath"}, {"sts:AssumeRole"}
    there = {one.action for one in member_permissions(function)}
    assert there == here - policies - roles


def test_a_deployment_of_one_account_has_no_bus_and_no_fixed_role_names(template):
    assert not template.resources("AWS::Events::EventBus")
    assert "FUNCTION" not in template.named("AWS::Lambda::Function")["leeward-drain"]["Environment"]["Variables"]


class TestHub:
    def test_only_the_listed_accounts_may_send_to_the_bus(self, deployed):
        policies = deployed.hub.resources("AWS::Events::EventBusPolicy").values()
        allowed = {policy["Statement"]["Principal"]["AWS"]: policy["Statement"]["Action"] for policy in policies}
        assert allowed == {f"arn:aws:iam::{account}:root": "events:PutEvents" for account in (EAST, WEST)}

    def test_rules_queue_the_events_of_the_listed_accounts_alone(self, deployed):
        rules = [rule for rule in deployed.hub.resources("AWS::Events::Rule").values() if "EventBusName" in rule]
        patterns = {rule["Name"]: rule["EventPattern"] for rule in rules}
        assert patterns == {
            f"leeward-{rule.name}": live({**rule.pattern, "account": [EAST, WEST]})
            for rule in (*RULES, *OF_THE_ACCOUNT)
        }

    def test_the_queues_admit_the_rules_of_both_buses(self, deployed):
        for policy in deployed.hub.resources("AWS::SQS::QueuePolicy").values():
            statements = {one["Sid"]: one for one in policy["PolicyDocument"]["Statement"] if "Sid" in one}
            if "OurRules" not in statements:
                continue
            admitted = statements["OurRules"]["Condition"]["ArnEquals"]["aws:SourceArn"]
            assert {"rule/leeward-members/" in arn for arn in admitted} == {True, False}
            assert statements["RefuseOthers"]["Condition"]["ArnNotEquals"]["aws:SourceArn"] == admitted

    @pytest.mark.parametrize("function", sorted(PERMISSIONS))
    def test_a_function_may_assume_its_own_role_in_each_account_and_no_other(self, deployed, function):
        statements = deployed.hub.statements(f"arn:aws:iam::{HUB}:role/leeward-us-east-1-{function}")
        assumed = [one for one in statements if "sts:AssumeRole" in one.actions]
        elsewhere = {arn for one in assumed for arn in one.resources if HUB not in arn}
        expected = {f"{stem_of(account)}-{function}" for account in (EAST, WEST)} if function in ACTING else set()
        assert elsewhere == expected

    def test_no_function_passes_another_account_s_node_role_at_home(self, deployed):
        statements = deployed.hub.statements(f"arn:aws:iam::{HUB}:role/leeward-us-east-1-drain")
        passed = {arn for one in statements if "iam:PassRole" in one.actions for arn in one.resources}
        assert passed == {nodes_of(HUB)}

    def test_the_functions_read_the_settings_that_they_are_given(self, deployed):
        function = deployed.hub.named("AWS::Lambda::Function")["leeward-drain"]
        settings = Settings.from_env(function["Environment"]["Variables"])
        assert {one.name: (one.account, one.region, one.member_role, one.external_id) for one in settings.clusters} == {
            "blue": (HUB, "us-east-1", "", ""),
            "east": (EAST, "us-east-1", f"{stem_of(EAST)}-drain", EXTERNAL_IDS[EAST]),
            "west": (WEST, "eu-west-1", f"{stem_of(WEST)}-drain", EXTERNAL_IDS[WEST]),
        }

    def test_policies_of_every_cluster_are_kept_at_home(self, deployed):
        names = {one["Name"].split("/")[2] for one in deployed.hub.resources("AWS::SSM::Parameter").values()}
        assert names == {"blue", "east", "west"}
        assert not any(template.resources("AWS::SSM::Parameter") for template in deployed.members.values())


@pytest.mark.parametrize("account", [EAST, WEST])
class TestMember:
    def test_the_same_events_are_forwarded_that_the_hub_queues_at_home(self, deployed, account):
        rules = deployed.members[account].named("AWS::Events::Rule")
        assert {name: rule["EventPattern"] for name, rule in rules.items()} == {
            f"leeward-member-{rule.name}": live(rule.pattern) for rule in (*RULES, *OF_THE_ACCOUNT)
        }
        bus = f"arn:aws:events:us-east-1:{HUB}:event-bus/leeward-members"
        assert {target["Arn"] for rule in rules.values() for target in rule["Targets"]} == {bus}

    def test_events_that_cannot_be_forwarded_are_kept_and_an_alarm_says_so(self, deployed, account):
        member = deployed.members[account]
        name = "leeward-member-dead-letters"
        assert set(member.named("AWS::SQS::Queue")) == {name}
        targets = [target for rule in member.named("AWS::Events::Rule").values() for target in rule["Targets"]]
        assert {target["DeadLetterConfig"]["Arn"].rpartition(":")[2] for target in targets} == {name}
        alarm = member.one("AWS::CloudWatch::Alarm")
        assert (alarm["AlarmName"], alarm["Threshold"], alarm["Namespace"]) == (name, 1, "AWS/SQS")
        (queue,) = member.resources("AWS::SQS::Queue")
        assert [(one["Name"], one["Value"].split(".")[0]) for one in alarm["Dimensions"]] == [("QueueName", queue)]

    def test_the_alarm_and_its_end_notify_the_topic_that_is_named_in_the_account(self, deployed, account):
        alarm = deployed.members[account].one("AWS::CloudWatch::Alarm")
        topics = [topic_of(account)] if account == WEST else []
        assert (alarm.get("AlarmActions", []), alarm.get("OKActions", [])) == (topics, topics)

    def test_only_the_forwarding_rules_put_dead_letters(self, deployed, account):
        member = deployed.members[account]
        (policy,) = member.resources("AWS::SQS::QueuePolicy").values()
        named = {one.get("Sid"): one for one in policy["PolicyDocument"]["Statement"]}
        forwarding = {f"leeward-member-{rule.name}" for rule in (*RULES, *OF_THE_ACCOUNT)}
        for statement, operator in (("OurRules", "ArnEquals"), ("RefuseOthers", "ArnNotEquals")):
            arns = named[statement]["Condition"][operator]["aws:SourceArn"]
            assert {arn.rpartition("/")[2] for arn in arns} == forwarding

    def test_each_role_trusts_one_function_of_the_hub_with_the_external_id(self, deployed, account):
        roles = deployed.members[account].named_roles("leeward-member-")
        acting = {name: role for name, role in roles.items() if name != REGIONS[account]}
        assert sorted(acting) == ACTING
        for name, role in acting.items():
            (trust,) = role["AssumeRolePolicyDocument"]["Statement"]
            assert trust["Action"] == "sts:AssumeRole"
            assert trust["Principal"] == {"AWS": f"arn:aws:iam::{HUB}:root"}
            assert trust["Condition"] == {
                "ArnEquals": {"aws:PrincipalArn": f"arn:aws:iam::{HUB}:role/leeward-us-east-1-{name}"},
                "StringEquals": {"sts:ExternalId": EXTERNAL_IDS[account]},
            }

    def test_the_forwarding_role_may_send_to_the_hub_s_bus_and_nothing_else(self, deployed, account):
        statements = deployed.members[account].statements(f"role/leeward-member-{REGIONS[account]}")
        bus = f"arn:aws:events:us-east-1:{HUB}:event-bus/leeward-members"
        assert [(one.actions, one.resources) for one in statements] == [(("events:PutEvents",), (bus,))]

    def test_the_forwarding_role_trusts_the_rules_of_its_stack_alone(self, deployed, account):
        role = deployed.members[account].named_roles("leeward-member-")[REGIONS[account]]
        (trust,) = role["AssumeRolePolicyDocument"]["Statement"]
        assert trust["Principal"] == {"Service": "events.amazonaws.com"}
        rules = deployed.members[account].named("AWS::Events::Rule")
        ours = {f"arn:aws:events:{REGIONS[account]}:{account}:rule/{name}" for name in rules}
        assert set(trust["Condition"]["ArnEquals"]["aws:SourceArn"]) == ours

    @pytest.mark.parametrize("function", ACTING)
    def test_a_role_may_do_on_its_cluster_s_groups_what_the_function_may_at_home(self, deployed, account, function):
        """The same table: an action on a tagged group is allowed here where it is allowed there."""
        at_home = deployed.hub.statements(f"arn:aws:iam::{HUB}:role/leeward-us-east-1-{function}")
        here = deployed.members[account].statements(f"role/leeward-member-{function}")
        cluster = {EAST: "east", WEST: "west"}[account]
        actions = {action for one in at_home for action in one.actions if action.startswith("autoscaling:")}
        for action in sorted(actions):
            asked = {
                owner: Request(
                    action=action,
                    resource=GROUP.format(r=region, a=owner),
                    context={f"aws:ResourceTag/kubernetes.io/cluster/{name}": "owned"},
                )
                for owner, region, name in ((HUB, "us-east-1", "blue"), (account, REGIONS[account], cluster))
            }
            assert allows(here, asked[account]) == allows(at_home, asked[HUB]), action

    def test_groups_of_other_clusters_node_roles_of_others_and_the_hub_s_records_are_out_of_reach(
        self, deployed, account
    ):
        region = REGIONS[account]
        for function in ACTING:
            statements = deployed.members[account].statements(f"role/leeward-member-{function}")
            theirs = {"aws:ResourceTag/kubernetes.io/cluster/other": "owned"}
            for action, resource, context in (
                ("autoscaling:UpdateAutoScalingGroup", GROUP.format(r=region, a=account), theirs),
                ("autoscaling:TerminateInstanceInAutoScalingGroup", GROUP.format(r=region, a=account), theirs),
                ("iam:PassRole", nodes_of(HUB), {"iam:PassedToService": "ec2.amazonaws.com"}),
                ("eks:DescribeCluster", f"arn:aws:eks:{region}:{account}:cluster/other", {}),
            ):
                assert not allows(statements, Request(action=action, resource=resource, context=context)), function
            used = {action.partition(":")[0] for one in statements for action in one.actions}
            assert not used & {"dynamodb", "sqs", "states", "sts", "events", "logs", "kms"}

    def test_each_function_signs_in_to_the_cluster_with_the_rights_that_it_has_at_home(self, deployed, account):
        entries = deployed.members[account].resources("AWS::EKS::AccessEntry").values()
        known = {
            entry["PrincipalArn"].rpartition("/leeward-member-")[2]: entry["KubernetesGroups"] for entry in entries
        }
        taint = ("interruption", "reconciler", "disruption-planner", "disrupt", "upgrade", "sync")
        assert known == {"drain": ["leeward:act"], **{name: ["leeward:taint"] for name in taint}}
        assert known == {name: [group] for name, group in expected.ENTERED_ELSEWHERE.items()}  # of leeward doctor

    def test_nothing_runs_in_the_account_and_no_state_of_leeward_is_kept_there(self, deployed, account):
        kinds = {resource["Type"] for resource in deployed.members[account].raw["Resources"].values()}
        of_dead_letters = {"AWS::SQS::Queue", "AWS::SQS::QueuePolicy", "AWS::CloudWatch::Alarm"}
        forwards = {"AWS::Events::Rule", "AWS::IAM::Role", "AWS::IAM::ManagedPolicy", "AWS::EKS::AccessEntry"}
        assert kinds == forwards | of_dead_letters


def test_a_cluster_may_keep_its_access_entries_to_itself(tmp_path):
    synthesize(tmp_path, leeward={**SETTINGS, "accessEntries": False})
    assert not read_member(tmp_path, EAST).resources("AWS::EKS::AccessEntry")


def test_a_deployment_without_a_cluster_at_home_has_no_rights_on_groups_there(tmp_path):
    from infra.program import build_app

    context = json.loads((ROOT / "cdk.json").read_text())["context"]
    leeward = {"clusters": [a_cluster("east", EAST)], "nodeRoles": [nodes_of(EAST)]}
    environment = {"CDK_DEFAULT_ACCOUNT": HUB, "CDK_DEFAULT_REGION": "us-east-1"}
    build_app(ROOT, environment, context={**context, "leeward": leeward}, outdir=str(tmp_path)).synth()
    hub = json.loads((tmp_path / "Leeward.template.json").read_text())
    policies = json.dumps([one for one in hub["Resources"].values() if one["Type"].startswith("AWS::IAM")])
    assert "autoScalingGroup:*" not in policies
    assert "iam:PassRole" not in policies
