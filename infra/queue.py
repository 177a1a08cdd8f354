"""The interruption queue, the queue of state changes, their dead-letter queue, and the principals that may send to
them.

EventBridge cannot filter by tag, so every instance of the account that stops or terminates sends its state changes,
and every group with a hook its lifecycle actions: they have a queue of their own, so no spot warning waits behind them.

A message causes a termination, so no other principal may send, to the dead letters neither, which an operator may put
back: an explicit Deny also holds against principals of the same account whose own policies allow everything.
"""

from collections.abc import Sequence

from aws_cdk import Duration, RemovalPolicy, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.names import Names

HIDDEN = 2  # times the consumer's timeout: a batch whose invocation dies comes back within half of a spot warning
RECEIVES = 60  # an hour of dead invocations, two of failures as fn interruption spaces them; then to the dead letters


class InterruptionQueue(Construct):
    """The three queues. `consumer_timeout`: timeout of the consuming function, in seconds. A message stays invisible
    twice as long. AWS recommends six times, so that Lambda can retry a throttled batch; these batches have reserved
    concurrency (docs/designs/storms.md). `key`: the customer's.
    """

    def __init__(self, scope: Construct, consumer_timeout: int, names: Names, key: kms.IKey | None) -> None:
        super().__init__(scope, "Queue")
        self._key = key
        self.dead_letters = sqs.Queue(
            self,
            "DeadLetters",
            queue_name=names.dead_letters,
            encryption=queue_encryption(key),
            encryption_master_key=key,
            enforce_ssl=True,
            retention_period=Duration.days(14),
            redrive_allow_policy=sqs.RedriveAllowPolicy(
                source_queues=[self._by_name(names.queue), self._by_name(names.state_changes)]
            ),
            removal_policy=RemovalPolicy.DESTROY,
        )
        self.queue = self._read_by_function("Interruption", names.queue, consumer_timeout)
        self.state_changes = self._read_by_function("StateChanges", names.state_changes, consumer_timeout)

    def _by_name(self, name: str) -> sqs.IQueue:
        """Return a queue that is made later: it names the dead letters, and they name it."""
        return sqs.Queue.from_queue_arn(self, f"Source-{name}", Stack.of(self).format_arn(service="sqs", resource=name))

    def _read_by_function(self, logical: str, name: str, consumer_timeout: int) -> sqs.Queue:
        return sqs.Queue(
            self,
            logical,
            queue_name=name,
            encryption=queue_encryption(self._key),
            encryption_master_key=self._key,
            enforce_ssl=True,
            visibility_timeout=Duration.seconds(HIDDEN * consumer_timeout),
            retention_period=Duration.days(4),
            receive_message_wait_time=Duration.seconds(20),
            dead_letter_queue=sqs.DeadLetterQueue(queue=self.dead_letters, max_receive_count=RECEIVES),
            removal_policy=RemovalPolicy.DESTROY,
        )

    def admit(
        self,
        *,
        rules: Sequence[str],
        state_changes: Sequence[str],
        topics: Sequence[str],
        roles: Sequence[str],
        reader: str,
    ) -> None:
        """Allow the rules, SNS topics and roles (ARNs) to send to the interruption queue, the rules of `state_changes`
        to theirs, all rules and `reader`, fn interruption's role, to the dead-letter queue, and no other principal.

        Operators redrive into the interruption queue, whatever queue a message came from: fn interruption takes every
        message from either. So no role sends to the state changes.
        """
        for queue, senders in ((self.queue, rules), (self.state_changes, state_changes)):
            queue.add_to_resource_policy(_by_service("OurRules", "events.amazonaws.com", senders, queue))
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
        principals = {"aws:PrincipalArn": list(roles)} if roles else {}
        _refuse_others(self.queue, {"aws:SourceArn": [*rules, *topics]} | principals)
        _refuse_others(self.state_changes, {"aws:SourceArn": list(state_changes)})
        admit_to_dead_letters(self.dead_letters, [*rules, *state_changes], reader)


def admit_to_dead_letters(queue: sqs.Queue, rules: Sequence[str], sender: str | None = None) -> None:
    """Allow rules and a role (ARNs), and no other sender, to send to a queue of dead letters: an operator may put its
    messages back. SQS's own moves after too many receives are no SendMessage and ask no queue policy
    (`redrive_allow_policy` names the queues).
    """
    if rules:
        queue.add_to_resource_policy(_by_service("OurRules", "events.amazonaws.com", rules, queue))
    admitted = {"aws:SourceArn": list(rules)} if rules else {}
    _refuse_others(queue, admitted | ({"aws:PrincipalArn": [sender]} if sender else {}))


def queue_encryption(key: kms.IKey | None) -> sqs.QueueEncryption:
    """Return how a queue is encrypted: by the customer's key, or by SQS's own."""
    return sqs.QueueEncryption.KMS if key else sqs.QueueEncryption.SQS_MANAGED


def _refuse_others(queue: sqs.Queue, admitted: dict[str, list[str]]) -> None:
    queue.add_to_resource_policy(
        iam.PolicyStatement(
            sid="RefuseOthers",
            effect=iam.Effect.DENY,
            principals=[iam.AnyPrincipal()],
            actions=["sqs:SendMessage"],
            resources=[queue.queue_arn],
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
