"""The interruption queue, its dead-letter queue, and who may put anything in.

A message makes a node go, so nobody else may send: an explicit Deny also holds against principals of the same account
whose own policies allow everything."""

from collections.abc import Sequence

from aws_cdk import Duration, RemovalPolicy
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.names import Names

RECEIVES = 20  # nearly two hours, as fn interruption spaces them; then the message goes to the dead-letter queue


class InterruptionQueue(Construct):
    """The two queues. `consumer_timeout`: of the function that reads, in seconds; a message stays invisible six times
    as long, as AWS advises, so that a throttled batch is not delivered twice.
    """

    def __init__(self, scope: Construct, consumer_timeout: int, names: Names) -> None:
        super().__init__(scope, "Queue")
        self.dead_letters = sqs.Queue(
            self,
            "DeadLetters",
            queue_name=names.dead_letters,
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            retention_period=Duration.days(14),
            removal_policy=RemovalPolicy.DESTROY,
        )
        self.queue = sqs.Queue(
            self,
            "Interruption",
            queue_name=names.queue,
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            visibility_timeout=Duration.seconds(6 * consumer_timeout),
            retention_period=Duration.days(4),
            receive_message_wait_time=Duration.seconds(20),
            dead_letter_queue=sqs.DeadLetterQueue(queue=self.dead_letters, max_receive_count=RECEIVES),
            removal_policy=RemovalPolicy.DESTROY,
        )

    def admit(self, *, rules: Sequence[str], topics: Sequence[str], roles: Sequence[str]) -> None:
        """Let these rules (ARNs), SNS topics and roles send, and nobody else."""
        self.queue.add_to_resource_policy(_by_service("OurRules", "events.amazonaws.com", rules, self.queue))
        self.dead_letters.add_to_resource_policy(
            _by_service("OurRules", "events.amazonaws.com", rules, self.dead_letters)
        )
        if topics:
            self.queue.add_to_resource_policy(_by_service("OurTopics", "sns.amazonaws.com", topics, self.queue))
        if roles:
            self.queue.add_to_resource_policy(
                iam.PolicyStatement(
                    sid="OurRoles",
                    principals=[iam.ArnPrincipal(role) for role in roles],
                    actions=["sqs:SendMessage"],
                    resources=[self.queue.queue_arn],
                )
            )
        admitted = {"aws:SourceArn": [*rules, *topics]} | ({"aws:PrincipalArn": list(roles)} if roles else {})
        self.queue.add_to_resource_policy(
            iam.PolicyStatement(
                sid="NobodyElse",
                effect=iam.Effect.DENY,
                principals=[iam.AnyPrincipal()],
                actions=["sqs:SendMessage"],
                resources=[self.queue.queue_arn],
                conditions={"ArnNotEquals": admitted},
            )
        )


def _by_service(sid: str, service: str, sources: Sequence[str], queue: sqs.Queue) -> iam.PolicyStatement:
    return iam.PolicyStatement(
        sid=sid,
        principals=[iam.ServicePrincipal(service)],
        actions=["sqs:SendMessage"],
        resources=[queue.queue_arn],
        conditions={"ArnEquals": {"aws:SourceArn": list(sources)}},
    )
