"""The interruption package: rules that fill the queue, the function that reads it, and its alarms."""

from aws_cdk import Duration
from aws_cdk import aws_events as events
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.alarms import Alarms, OwnMetric, Threshold
from infra.function import FunctionDefaults, FunctionShape, KubernetesAccess, LeewardFunction
from infra.members_bus import MembersBus, queue_target
from infra.names import TERMINATION, Names
from infra.queue import InterruptionQueue
from infra.rules import OF_THE_ACCOUNT, RULES, EventRule, execution_rule, live
from infra.settings import Settings
from leeward.interruption.metrics import OLDEST_INTERRUPTION
from leeward.interruption.metrics import OLDEST_STATE_CHANGE as OLDEST_STATE_CHANGE_FAILED

TIMEOUT = 30  # seconds, for a batch of BATCH messages
BATCH = 100
FEWEST_AT_ONCE = 2  # the lowest limit that SQS accepts for a mapping
STATE_CHANGES_AT_ONCE = FEWEST_AT_ONCE  # batches; reserved beside those of the interruption queue
OLDEST = 60  # seconds a message may wait: half of what a spot warning leaves
THROTTLED = 100  # tries in five minutes; botocore repeats two of three by itself
OLDEST_STATE_CHANGE = 600  # seconds; a state change reports something that has happened, a hook holds its instance
LOOK_BACK = 5  # minutes in which a message that fails is delivered at least once, whatever its age


def reserved_concurrency(settings: Settings) -> int | None:
    """Return the concurrency of the setting, reserved for spot warnings, and that of the state changes; None reserves
    nothing.
    """
    warnings = settings.interruption_concurrency
    return warnings and warnings + STATE_CHANGES_AT_ONCE


def interruption_shape(settings: Settings) -> FunctionShape:
    """Return the shape of fn interruption: parse, taint, claim, start."""
    return FunctionShape(
        name="interruption",
        handler="leeward.interruption.handler.handle",
        description="Reads interruption messages, taints the nodes at once and starts their termination",
        timeout=TIMEOUT,
        memory=512,
        access=KubernetesAccess.TAINT,
        concurrency=reserved_concurrency(settings),
    )


class Interruption(Construct):
    """Resources between an event and the start of an execution."""

    def __init__(
        self, scope: Construct, *, queue: InterruptionQueue, surroundings: FunctionDefaults, alarms: Alarms
    ) -> None:
        super().__init__(scope, "Interruption")
        settings = surroundings.settings
        self.function = LeewardFunction(self, interruption_shape(settings), surroundings)
        self._read("Messages", queue.queue, max(FEWEST_AT_ONCE, settings.interruption_concurrency or 10))
        self._read("StateChanges", queue.state_changes, STATE_CHANGES_AT_ONCE)
        arn = surroundings.scopes.machine(TERMINATION)
        dead = execution_rule("execution-status", "node-termination", arn)
        rules = [self._rule(rule, queue.queue, queue.dead_letters, settings.names) for rule in (*RULES, dead)]
        state_changes, dead_letters = queue.state_changes, queue.dead_letters
        of_account = [self._rule(rule, state_changes, dead_letters, settings.names) for rule in OF_THE_ACCOUNT]
        if settings.members:
            bus = MembersBus(self, settings)
            rules += [bus.rule(rule, queue.queue, dead_letters) for rule in RULES]
            of_account += [bus.rule(rule, state_changes, dead_letters) for rule in OF_THE_ACCOUNT]
        queue.admit(
            rules=[rule.attr_arn for rule in rules],
            state_changes=[rule.attr_arn for rule in of_account],
            topics=settings.sender_topics,
            roles=settings.sender_roles,
            reader=self.function.role.role_arn,
        )
        _watch(queue, alarms)
        _watch_failures(self.function.function, alarms)
        alarms.add(
            "interruption-throttled",
            self.function.function.metric_throttles(statistic="Sum", period=Duration.minutes(5)),
            Threshold(at_least=1),
            "Lambda has no free execution for leeward-interruption, so spot warnings wait: raise the account's quota "
            "of concurrent executions, or concurrency.interruption.",
        )
        alarms.counted(
            "calls-throttled",
            OwnMetric(service="aws", name="CallsThrottled"),
            5,
            Threshold(at_least=THROTTLED),
            "AWS throttles the calls of Leeward, so drains and launches take longer: look which caller uses up the "
            "account's request rate, or ask AWS for more.",
        )

    def _read(self, logical: str, queue: sqs.Queue, at_once: int) -> None:
        lambda_.EventSourceMapping(
            self,
            logical,
            target=self.function.function,
            event_source_arn=queue.queue_arn,
            batch_size=BATCH,
            max_batching_window=Duration.seconds(1),
            report_batch_item_failures=True,
            max_concurrency=at_once,
        )

    def _rule(self, rule: EventRule, queue: sqs.Queue, dead_letters: sqs.Queue, names: Names) -> events.CfnRule:
        target = queue_target(queue, dead_letters)
        return events.CfnRule(
            self,
            "".join(word.capitalize() for word in rule.name.split("-")) + "Rule",
            name=names.rule(rule.name),
            description=rule.description,
            event_pattern=live(rule.pattern),
            state="ENABLED",
            targets=[target],
        )


def _watch_failures(function: lambda_.Function, alarms: Alarms) -> None:
    """Alarm on messages whose handling fails. The age of a queue's oldest message does not show them: SQS leaves out
    what was received three times.
    """
    for name, metric, at_least, kind in (
        ("interruptions-failing", OLDEST_INTERRUPTION, OLDEST, "Interruption messages"),
        ("state-changes-failing", OLDEST_STATE_CHANGE_FAILED, OLDEST_STATE_CHANGE, "State changes or hook events"),
    ):
        alarms.counted(
            name,
            OwnMetric(service="interruption", name=metric, statistic="Maximum"),
            1,
            Threshold(at_least=at_least, periods=LOOK_BACK),
            f"{kind} fail again and again since {at_least} s: the log of leeward-interruption names the call.",
        )
    alarms.add(
        "interruption-errors",
        function.metric_errors(statistic="Sum", period=Duration.minutes(5)),
        Threshold(at_least=1),
        "A call of leeward-interruption died or timed out: its messages come back after a minute.",
    )


def _watch(queue: InterruptionQueue, alarms: Alarms) -> None:
    minute = Duration.minutes(1)
    alarms.add(
        "dead-letters",
        queue.dead_letters.metric_approximate_number_of_messages_visible(statistic="Maximum", period=minute),
        Threshold(at_least=1),
        "Messages that Leeward could not read or handle: look at their attributes, fix the cause, redrive.",
    )
    alarms.add(
        "queue-age",
        queue.queue.metric_approximate_age_of_oldest_message(statistic="Maximum", period=minute),
        Threshold(at_least=OLDEST),
        "Interruption messages wait unread for longer than a spot warning can afford: look at the log of "
        "leeward-interruption.",
    )
    alarms.add(
        "state-changes-age",
        queue.state_changes.metric_approximate_age_of_oldest_message(statistic="Maximum", period=minute),
        Threshold(at_least=OLDEST_STATE_CHANGE),
        "State changes and lifecycle actions of the account wait unread for minutes: look at the log of "
        "leeward-interruption.",
    )
