"""The event bus of the deployment to which other accounts and Regions forward, and its rules.

A bus of its own: rules of other teams on the default bus see no events of other accounts, and only the accounts that
the settings name may send to it."""

from aws_cdk import Aws, Stack
from aws_cdk import aws_events as events
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.rules import EventRule, live
from infra.settings import Settings

OLDEST = 3600  # seconds for which EventBridge tries to deliver an event; by then it is obsolete


class MembersBus(Construct):
    """Bus, its resource policy, and rules for events of the named accounts."""

    def __init__(self, scope: Construct, settings: Settings) -> None:
        super().__init__(scope, "Members")
        self._names = settings.names
        self._accounts = sorted({member.account for member in settings.members})
        self.bus = events.CfnEventBus(
            self,
            "Bus",
            name=self._names.members_bus,
            description="Events of the clusters of other accounts and Regions",
        )
        for account in self._accounts:
            events.CfnEventBusPolicy(
                self,
                f"From{account}",
                event_bus_name=self.bus.ref,
                statement_id=f"from-{account}",
                statement=put_by(account, self.bus.attr_arn),
            )

    def rule(self, rule: EventRule, queue: sqs.Queue, dead_letters: sqs.Queue) -> events.CfnRule:
        """Add a rule with the pattern, for events of the named accounts alone."""
        return events.CfnRule(
            self,
            "".join(word.capitalize() for word in rule.name.split("-")) + "Rule",
            name=self._names.rule(rule.name),
            description=f"{rule.description}; in another account or Region",
            event_bus_name=self.bus.ref,
            event_pattern=live({**rule.pattern, "account": self._accounts}),
            state="ENABLED",
            targets=[queue_target(queue, dead_letters)],
        )


def put_by(account: str, bus: str) -> dict[str, object]:
    """Return the statement that lets one account put events on the bus with this ARN."""
    return {
        "Effect": "Allow",
        "Principal": {"AWS": f"arn:{Aws.PARTITION}:iam::{account}:root"},
        "Action": "events:PutEvents",
        "Resource": bus,
    }


def queue_target(queue: sqs.Queue, dead_letters: sqs.Queue) -> events.CfnRule.TargetProperty:
    """Return the target of a rule. Events that EventBridge cannot deliver in an hour go to the dead-letter queue."""
    return events.CfnRule.TargetProperty(
        id="queue",
        arn=queue.queue_arn,
        retry_policy=events.CfnRule.RetryPolicyProperty(maximum_event_age_in_seconds=OLDEST),
        dead_letter_config=events.CfnRule.DeadLetterConfigProperty(arn=dead_letters.queue_arn),
    )


def bus_arn(stack: Stack, settings: Settings) -> str:
    """Return the ARN of the bus, for a stack of another account or Region."""
    return f"arn:{stack.partition}:events:{settings.region}:{settings.account}:event-bus/{settings.names.members_bus}"
