"""Events of another account and Region that EventBridge could not forward, and the alarm on them.

EventBridge delivers dead letters to a queue of the rule's own account and Region only, so each member stack has one. It
tries for an hour where the bus does not answer, and not again where the bus's policy refuses the account."""

from collections.abc import Sequence

from aws_cdk import Duration, RemovalPolicy
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_events as events
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.findings import accept_as_last_stop
from infra.names import Names
from infra.queue import admit_to_dead_letters

ALARM = "member-dead-letters"


class MemberDeadLetters(Construct):
    """Queue of one member stack, and its alarm, which notifies a topic of the member: SNS topics of other Regions take
    none.
    """

    def __init__(self, scope: Construct, names: Names, topic: str | None) -> None:
        """`topic`: ARN of the SNS topic that is notified of the alarm and its end; None: none is."""
        super().__init__(scope, "Undelivered")
        self.queue = sqs.Queue(
            self,
            "DeadLetters",
            queue_name=names.member_dead_letters,
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            retention_period=Duration.days(14),
            redrive_allow_policy=sqs.RedriveAllowPolicy(redrive_permission=sqs.RedrivePermission.DENY_ALL),
            removal_policy=RemovalPolicy.DESTROY,
        )
        accept_as_last_stop(self.queue)
        alarm = cloudwatch.Alarm(
            self,
            "Alarm",
            alarm_name=names.alarm(ALARM),
            alarm_description="Events of this account did not reach Leeward, which knows of no spot warning here: see "
            "the attribute ERROR_MESSAGE of the messages, and docs/accounts.md.",
            metric=self.queue.metric_approximate_number_of_messages_visible(
                statistic="Maximum", period=Duration.minutes(1)
            ),
            threshold=1,
            comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
            evaluation_periods=1,
            treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
        )
        if topic is not None:
            action = actions.SnsAction(sns.Topic.from_topic_arn(self, "Topic", topic))
            alarm.add_alarm_action(action)
            alarm.add_ok_action(action)

    def admit(self, rules: Sequence[events.CfnRule]) -> None:
        """Allow these rules, and no other sender, to put their dead letters here."""
        admit_to_dead_letters(self.queue, [rule.attr_arn for rule in rules])
