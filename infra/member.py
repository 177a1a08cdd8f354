"""The stack of another account and Region: rules that forward its events, and the roles that act on its clusters.

It has no function and no table; its one queue takes what EventBridge could not forward. Its owner decides what the
deployment may do there: each role trusts the role of one function, with the external id, and may do what the function
may do to clusters at home."""

from collections.abc import Sequence
from dataclasses import replace

from aws_cdk import App, CfnOutput, Environment, Stack
from aws_cdk import aws_eks as eks
from aws_cdk import aws_events as events
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.access import GROUPS
from infra.accounts import Member
from infra.findings import accept_wildcards
from infra.function import FunctionShape
from infra.member_dead_letters import MemberDeadLetters
from infra.member_permissions import member_permissions
from infra.members_bus import OLDEST, bus_arn
from infra.role import GrantedRole, RoleShape, granted_role
from infra.rules import OF_THE_ACCOUNT, RULES, EventRule, live
from infra.scopes import Scopes
from infra.settings import Settings
from leeward import __version__


class MemberStack(Stack):
    """Stack of one other account and Region. `shapes`: those of the deployment's functions."""

    def __init__(self, app: App, *, settings: Settings, member: Member, shapes: Sequence[FunctionShape]) -> None:
        super().__init__(
            app,
            settings.names.member_stack(member.account, member.region),
            env=Environment(account=member.account, region=member.region),
            description=f"Leeward: clusters served from account {settings.account}, {settings.region}",
        )
        self._settings, self._member = settings, member
        there = tuple(replace(cluster, role_arn=None) for cluster in member.clusters)
        self._scopes = Scopes(
            self,
            replace(
                settings,
                clusters=there,
                members=(),
                node_roles=member.node_roles,
                account=member.account,
                region=member.region,
            ),
        )
        self._forward()
        for shape in shapes:
            if member_permissions(shape.name):
                self._role(shape)
        CfnOutput(self, "Version", value=__version__, description="Of Leeward, as `leeward version` prints it")

    def _forward(self) -> None:
        """Forward the events that the deployment's own rules queue at home, and no others."""
        bus, names = bus_arn(self, self._settings), self._settings.names
        forwarded = (*RULES, *OF_THE_ACCOUNT)
        ours = [self._scopes.rule(names.member_rule(rule.name)) for rule in forwarded]
        role = iam.Role(
            self,
            "Forwarding",
            role_name=names.forwarding_role(self._member.region),
            description="Leeward: forwards events to the deployment",
            assumed_by=iam.PrincipalWithConditions(
                iam.ServicePrincipal("events.amazonaws.com"), {"ArnEquals": {"aws:SourceArn": ours}}
            ),
            inline_policies={
                "leeward": iam.PolicyDocument(
                    statements=[iam.PolicyStatement(actions=["events:PutEvents"], resources=[bus])]
                )
            },
        )
        undelivered = MemberDeadLetters(self, names, self._member.alarm_topic)
        rules = [self._rule(rule, bus, role, undelivered.queue) for rule in forwarded]
        undelivered.admit(rules)

    def _rule(self, rule: EventRule, bus: str, role: iam.Role, dead_letters: sqs.Queue) -> events.CfnRule:
        target = events.CfnRule.TargetProperty(
            id="deployment",
            arn=bus,
            role_arn=role.role_arn,
            retry_policy=events.CfnRule.RetryPolicyProperty(maximum_event_age_in_seconds=OLDEST),
            dead_letter_config=events.CfnRule.DeadLetterConfigProperty(arn=dead_letters.queue_arn),
        )
        return events.CfnRule(
            self,
            "".join(word.capitalize() for word in rule.name.split("-")) + "Rule",
            name=self._settings.names.member_rule(rule.name),
            description=f"{rule.description}; forwarded to Leeward",
            event_pattern=live(rule.pattern),
            state="ENABLED",
            targets=[target],
        )

    def _role(self, shape: FunctionShape) -> None:
        """Add the role of one function, and its access to each cluster."""
        granted = granted_role(
            Construct(self, "".join(part.capitalize() for part in shape.name.split("-"))),
            RoleShape(
                id="Role",
                owner=f"leeward-{shape.name} of account {self._settings.account}",
                trusts=self._trust(shape),
                permissions=member_permissions(shape.name),
                listed="infra/permissions.py",
                function=shape.name,
                name=f"{self._member.role_name}-{shape.name}",
            ),
            self._scopes,
        )
        accept_wildcards(granted.parts, self._scopes, shape.name)
        self._enter(shape, granted)

    def _trust(self, shape: FunctionShape) -> iam.IPrincipal:
        """Return the function's role as the only one that is trusted. By a condition instead of the principal: IAM
        would replace a principal by its id, which a role that is made again does not have.
        """
        settings = self._settings
        name = settings.names.function_role(str(settings.region), shape.name)
        return iam.AccountPrincipal(settings.account).with_conditions(
            {
                "ArnEquals": {"aws:PrincipalArn": f"arn:{self.partition}:iam::{settings.account}:role/{name}"},
                "StringEquals": {"sts:ExternalId": self._member.external_id},
            }
        )

    def _enter(self, shape: FunctionShape, granted: GrantedRole) -> None:
        group = GROUPS.get(shape.access)
        if group is None or not self._settings.access_entries:
            return
        for cluster in self._member.clusters:
            eks.CfnAccessEntry(
                self,
                f"{cluster.name}-{shape.name}",
                cluster_name=cluster.name,
                principal_arn=granted.role.role_arn,
                kubernetes_groups=[group],
                type="STANDARD",
            )
