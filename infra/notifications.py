"""The notification package: the table's stream becomes events on the default bus, and if a cluster's settings name a
webhook, the same events reach it by a bus of its own.

EventBridge calls the webhook (an API destination): it retries for a day, keeps no order, and puts undelivered events
into this package's dead-letter queue. No code of ours holds the address or the secret (`webhooks.py`).
"""

import json
from collections.abc import Mapping
from typing import Any

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
from infra.queue import admit_to_dead_letters, queue_encryption
from infra.rules import live
from infra.scopes import Scopes
from infra.webhooks import webhook_bus, webhook_destinations
from leeward.adapters.aws.record_stream import KEYS
from leeward.notifications.events import EventType
from leeward.notifications.workflow_events import PauseEventType, RunEventType, UpgradeEventType
from leeward.policy.document import Webhook, WebhookFormat

SHAPE = FunctionShape(
    name="notifications",
    handler="leeward.notifications.handler.handle",
    description="Puts an event on the bus for each turn of a termination, an upgrade or a disruption run",
    timeout=30,
    memory=256,
    acts=False,
)
BATCH = 100
GIVEN_UP_AFTER = 6 * 3600  # seconds: by then an event is obsolete
_TYPES = [turn.value for turn in (*EventType, *PauseEventType, *UpgradeEventType, *RunEventType)]
_ANNOUNCED = {"dynamodb": {"Keys": {"pk": {"S": [{"prefix": key} for key in KEYS]}}}}


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
            redrive_allow_policy=sqs.RedriveAllowPolicy(redrive_permission=sqs.RedrivePermission.DENY_ALL),
            removal_policy=RemovalPolicy.DESTROY,
        )
        self._read(table)
        webhooks = {each.name: each.webhook for each in surroundings.settings.clusters if each.webhook}
        rules = self._webhooks(webhooks, surroundings.scopes) if webhooks else []
        admit_to_dead_letters(self.undelivered, rules, self.function.role.role_arn)
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

    def _webhooks(self, webhooks: Mapping[str, Webhook], scopes: Scopes) -> list[str]:
        """Add the webhooks, by cluster, and their bus, and name both to the function. Return the rules' ARNs."""
        names = scopes.names
        bus = webhook_bus(self, names, self.function.role.role_arn)
        formats = {cluster: webhook.format for cluster, webhook in webhooks.items()}
        self.function.add_environment("WEBHOOKS", json.dumps(formats, sort_keys=True))
        self.function.add_environment("WEBHOOK_BUS", names.webhook_bus)
        rules = [scopes.rule(f"{names.webhook_bus}/{names.webhook_rule(cluster)}") for cluster in webhooks]
        destinations = webhook_destinations(self, webhooks, names)
        role = _caller(self, rules, list(destinations.values()))
        for cluster, destination in destinations.items():
            form = formats[cluster]
            target = events.CfnRule.TargetProperty(
                id="webhook",
                arn=destination.attr_arn,
                role_arn=role.role_arn,
                input_path="$.detail" if form is WebhookFormat.JSON else "$.detail.message",
                dead_letter_config=events.CfnRule.DeadLetterConfigProperty(arn=self.undelivered.queue_arn),
            )
            events.CfnRule(
                self,
                f"Rule{cluster}",
                name=names.webhook_rule(cluster),
                description=f"Notifications of cluster {cluster} are sent to its webhook",
                event_bus_name=bus.ref,
                event_pattern=live(_pattern(names.prefix, cluster, form)),
                state="ENABLED",
                targets=[target],
            )
        return rules


def _pattern(source: str, cluster: str, form: WebhookFormat) -> dict[str, Any]:
    """Return the pattern of a webhook's rule. It gets the event's `detail` as docs/reference/events.md shows it, or the
    message that fn notifications has put into it.
    """
    own = {} if form is WebhookFormat.JSON else {"format": [form.value]}
    return {"source": [source], "detail-type": _TYPES, "detail": {"cluster": [cluster], **own}}


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
