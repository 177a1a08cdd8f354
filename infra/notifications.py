"""The notification package: the table's stream becomes events on the default bus, and if a cluster's settings name a
webhook, the same events reach it.

EventBridge calls the webhook (an API destination): it retries for a day, keeps no order, and puts undelivered events
into this package's dead-letter queue. No code of ours holds the address or the secret (`webhooks.py`).
"""

import json
from collections.abc import Mapping

from aws_cdk import Duration, RemovalPolicy
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_events as events
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.alarms import Alarms, Threshold
from infra.customer_key import imported_key
from infra.function import FunctionDefaults, FunctionShape, LeewardFunction
from infra.names import Names
from infra.queue import queue_encryption
from infra.scopes import Scopes
from infra.webhooks import webhook_destinations
from leeward.notifications.events import EventType
from leeward.notifications.pause_events import PauseEventType
from leeward.policy.document import Webhook, WebhookFormat

SHAPE = FunctionShape(
    name="notifications",
    handler="leeward.notifications.handler.handle",
    description="Puts an event on the bus for each turn that a termination takes",
    timeout=30,
    memory=256,
)
BATCH = 100
GIVEN_UP_AFTER = 6 * 3600  # seconds: by then an event is obsolete
_ANNOUNCED = {"dynamodb": {"Keys": {"pk": {"S": [{"prefix": "termination#"}, {"prefix": "pause#"}]}}}}


class Notifications(Construct):
    """fn notifications, its event source, and the webhooks."""

    def __init__(
        self, scope: Construct, *, table: dynamodb.Table, surroundings: FunctionDefaults, alarms: Alarms
    ) -> None:
        super().__init__(scope, "Notifications")
        key = imported_key(self, surroundings.settings.kms_key)
        self.function = LeewardFunction(self, SHAPE, surroundings)
        self.undelivered = sqs.Queue(
            self,
            "Undelivered",
            queue_name=surroundings.settings.names.undelivered,
            encryption=queue_encryption(key),
            encryption_master_key=key,
            enforce_ssl=True,
            retention_period=Duration.days(14),
            removal_policy=RemovalPolicy.DESTROY,
        )
        self._read(table)
        webhooks = {each.name: each.webhook for each in surroundings.settings.clusters if each.webhook}
        if webhooks:
            self._webhooks(webhooks, surroundings.scopes)
            self._formats(webhooks)
        alarms.add(
            "events-undelivered",
            self.undelivered.metric_approximate_number_of_messages_visible(
                statistic="Maximum", period=Duration.minutes(5)
            ),
            Threshold(at_least=1),
            "Events of Leeward reached neither bus nor webhook: nodes are not affected; each message names its error.",
        )

    def _read(self, table: dynamodb.Table) -> None:
        """Add the event source. A batch that fails is halved and retried, so that one bad record holds up only
        itself.
        """
        lambda_.CfnEventSourceMapping(
            self,
            "Changes",
            function_name=self.function.function.function_name,
            event_source_arn=table.table_stream_arn,
            starting_position="TRIM_HORIZON",
            batch_size=BATCH,
            maximum_batching_window_in_seconds=1,
            bisect_batch_on_function_error=True,
            maximum_record_age_in_seconds=GIVEN_UP_AFTER,
            filter_criteria=lambda_.CfnEventSourceMapping.FilterCriteriaProperty(
                filters=[lambda_.CfnEventSourceMapping.FilterProperty(pattern=json.dumps(_ANNOUNCED))]
            ),
            destination_config=lambda_.CfnEventSourceMapping.DestinationConfigProperty(
                on_failure=lambda_.CfnEventSourceMapping.OnFailureProperty(destination=self.undelivered.queue_arn)
            ),
        )

    def _formats(self, webhooks: Mapping[str, Webhook]) -> None:
        """Name to the function the clusters whose webhook takes a message in place of the event's detail."""
        named = {cluster: one.format for cluster, one in webhooks.items() if one.format is not WebhookFormat.JSON}
        if named:
            self.function.function.add_environment("WEBHOOK_FORMATS", json.dumps(named, sort_keys=True))

    def _webhooks(self, webhooks: Mapping[str, Webhook], scopes: Scopes) -> None:
        """Add the webhooks, by cluster."""
        rules = {cluster: scopes.rule(scopes.names.webhook_rule(cluster)) for cluster in webhooks}
        destinations = webhook_destinations(self, webhooks, scopes.names)
        role = _caller(self, list(rules.values()), list(destinations.values()))
        for name, destination in destinations.items():
            _rule(self, (name, scopes.names, webhooks[name].format), destination, role, self.undelivered)
        self.undelivered.add_to_resource_policy(
            iam.PolicyStatement(
                sid="OurRules",
                principals=[iam.ServicePrincipal("events.amazonaws.com")],
                actions=["sqs:SendMessage"],
                resources=[self.undelivered.queue_arn],
                conditions={"ArnEquals": {"aws:SourceArn": list(rules.values())}},
            )
        )


def _caller(scope: Construct, rules: list[str], destinations: list[events.CfnApiDestination]) -> iam.Role:
    """Return a role that only our rules may assume and that may call only our webhooks."""
    call = iam.PolicyStatement(
        actions=["events:InvokeApiDestination"], resources=[each.attr_arn for each in destinations]
    )
    return iam.Role(
        scope,
        "WebhookRole",
        assumed_by=iam.PrincipalWithConditions(
            iam.ServicePrincipal("events.amazonaws.com"), {"ArnEquals": {"aws:SourceArn": rules}}
        ),
        description="Leeward's rules call its webhooks",
        inline_policies={"leeward": iam.PolicyDocument(statements=[call])},
    )


def _rule(
    scope: Construct,
    of: tuple[str, Names, WebhookFormat],
    destination: events.CfnApiDestination,
    role: iam.Role,
    undelivered: sqs.Queue,
) -> None:
    """Add the rule of a webhook, which receives the event's `detail` as docs/operations.md shows it, or the message
    that fn notifications has put into it. `of`: the cluster, our names, the format.
    """
    cluster, names, form = of
    own = form is WebhookFormat.JSON
    events.CfnRule(
        scope,
        f"Rule{cluster}",
        name=names.webhook_rule(cluster),
        description=f"Terminations and pauses in cluster {cluster} are sent to its webhook",
        event_pattern={
            "source": [names.prefix],
            "detail-type": [turn.value for turn in (*EventType, *PauseEventType)],
            "detail": {"cluster": [cluster], **({} if own else {"format": [form.value]})},
        },
        state="ENABLED",
        targets=[
            events.CfnRule.TargetProperty(
                id="webhook",
                arn=destination.attr_arn,
                role_arn=role.role_arn,
                input_path="$.detail" if own else "$.detail.message",
                dead_letter_config=events.CfnRule.DeadLetterConfigProperty(arn=undelivered.queue_arn),
            )
        ],
    )
