"""Scheduled calls of a function."""

from aws_cdk import Duration
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from constructs import Construct

from infra.function import LeewardFunction


def call_every(scope: Construct, minutes: int, function: LeewardFunction) -> events.Rule:
    """Add a rule that calls the function every so many minutes, without a retry of its own: the next call is the
    retry.
    """
    name, names = function.shape.name, function.names
    rule = events.Rule(
        scope,
        "Schedule",
        rule_name=names.rule(f"{name}-schedule"),
        description=f"Calls {names.function(name)}",
        schedule=events.Schedule.rate(Duration.minutes(minutes)),
    )
    rule.add_target(
        targets.LambdaFunction(function.function, retry_attempts=0, max_event_age=Duration.minutes(minutes))
    )
    return rule
