"""One dashboard, read from top to bottom: alarms, interruptions, what needs an operator, incoming messages, outcomes of
nodes, upgrades and disruption runs by cluster and group, slow functions.

`dashboard_metrics.py` lists our own metrics.
"""

from collections.abc import Sequence

from aws_cdk import Duration, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from infra import dashboard_metrics as metrics
from infra.alarms import Alarms
from infra.disruption import Disruption
from infra.function import LeewardFunction
from infra.names import TERMINATION, Names
from infra.queue import InterruptionQueue
from infra.state_machine import Machine
from infra.termination import Termination
from infra.upgrade import Upgrade

_HALF = 12
_THIRD = 8
_FULL = 24
_PERIOD = Duration.minutes(5)

_INTRODUCTION = """# Leeward
Events fill the queue `{queue}`, `{interruption}` taints the nodes and starts `{machine}`,
one execution per instance. An alarm's description says what to do. A node that does not get away names what blocks it
in its execution's error and in its own Kubernetes Events."""

_BLOCKED = (
    "fields @timestamp",
    'filter step = "drain" and next = "wait" and why like /pdb|fails|denies|refused|waits for/',
    "stats latest(why) as cause, latest(@timestamp) as seen by cluster, group, node, instance",
    "sort seen desc",
    "limit 30",
)
_NEEDED = (
    "fields @timestamp",
    "filter ispresent(needs)",
    "stats latest(@timestamp) as seen, count(*) as minutes by needs, message",
    "sort seen desc",
    "limit 20",
)
_UPGRADED = (
    'filter next in ["upgraded", "rolled-back", "failed"]',
    "stats count(*) as ended, latest(next) as last, latest(why) as said by cluster, group",
    "sort ended desc",
    "limit 20",
)
_DISRUPTED = (
    'filter next in ["done", "given-up"]',
    "stats count(*) as runs, sum(savedPerHour) as dollarsAnHour, latest(why) as last by cluster, next",
    "sort runs desc",
    "limit 20",
)

QUERIES = (_BLOCKED, _NEEDED, _UPGRADED, _DISRUPTED)


def operators_dashboard(
    scope: Construct,
    *,
    queue: InterruptionQueue,
    termination: Termination,
    upgrade: Upgrade,
    disruption: Disruption,
    functions: Sequence[LeewardFunction],
    alarms: Alarms,
) -> cloudwatch.Dashboard:
    """Return the dashboard `leeward-REGION`."""
    names = termination.terminate.names
    own, machines = _OwnMetrics(names.metrics), [upgrade.machine, upgrade.managed_machine]
    return cloudwatch.Dashboard(
        scope,
        "Dashboard",
        dashboard_name=names.dashboard(Stack.of(scope).region),
        default_interval=Duration.hours(3),
        widgets=[
            [cloudwatch.TextWidget(markdown=_introduction(names), width=_HALF, height=4), _alarms(alarms)],
            own.row(metrics.INTERRUPTIONS),
            own.row(metrics.BLOCKED, _HALF),
            own.row(metrics.PAUSES),
            [_table("Blocked drains, and what blocks them", [termination.drain], _BLOCKED)],
            [_table("What needs an operator", [termination.reconcile], _NEEDED)],
            [_waiting(queue), _oldest(queue, names.metrics), _dead(queue)],
            [own.whole(title) for title in metrics.WHOLE],
            [_executions("Terminations by how they ended", [termination.machine]), _durations(termination)],
            own.row(metrics.TERMINATIONS),
            [_executions("Upgrades by how they ended", machines), *own.row(metrics.UPGRADES, _HALF)],
            own.row(metrics.DISRUPTION, _HALF),
            own.row(metrics.SAVINGS, _HALF),
            [
                _table("Upgrades that ended, by cluster and group", [upgrade.function], _UPGRADED, _HALF),
                _table("Disruption runs, by cluster", [disruption.disrupt], _DISRUPTED, _HALF),
            ],
            [_functions("Errors and throttles", functions), _work("Time per call (p99)", functions)],
            [_failures(functions)],
        ],
    )


def _introduction(names: Names) -> str:
    return _INTRODUCTION.format(
        queue=names.queue, interruption=names.function("interruption"), machine=names.machine(TERMINATION)
    )


def _alarms(alarms: Alarms) -> cloudwatch.IWidget:
    return cloudwatch.AlarmStatusWidget(title="Alarms", alarms=list(alarms.all), width=_HALF, height=4)


def _graph(title: str, lines: Sequence[cloudwatch.IMetric], width: int, label: str = "") -> cloudwatch.GraphWidget:
    axis = cloudwatch.YAxisProps(min=0, label=label, show_units=False)
    return cloudwatch.GraphWidget(title=title, left=list(lines), left_y_axis=axis, width=width, height=6)


def _waiting(queue: InterruptionQueue) -> cloudwatch.IWidget:
    shown = [
        queue.queue.metric_number_of_messages_sent(label="events in", period=_PERIOD),
        queue.queue.metric_number_of_messages_deleted(label="events done", period=_PERIOD),
        queue.queue.metric_approximate_number_of_messages_visible(label="waiting", statistic="Maximum", period=_PERIOD),
    ]
    shown.append(
        queue.state_changes.metric_approximate_number_of_messages_visible(
            label="state changes waiting", statistic="Maximum", period=_PERIOD
        )
    )
    return _graph("Interruption queue", shown, _THIRD, "messages")


def _oldest(queue: InterruptionQueue, namespace: str) -> cloudwatch.IWidget:
    """Return the age of what SQS counts, and of what fails: SQS leaves out what was received three times."""
    unread = queue.queue.metric_approximate_age_of_oldest_message(label="unread", statistic="Maximum", period=_PERIOD)
    failing = [
        cloudwatch.Metric(
            namespace=namespace,
            metric_name=name,
            dimensions_map={"service": "interruption"},
            label=label,
            statistic="Maximum",
            period=_PERIOD,
        )
        for name, label in metrics.FAILING.items()
    ]
    return _graph("Age of the oldest message (a spot warning leaves 120 s)", [unread, *failing], _THIRD, "seconds")


def _dead(queue: InterruptionQueue) -> cloudwatch.IWidget:
    depth = queue.dead_letters.metric_approximate_number_of_messages_visible(
        label="dead letters", statistic="Maximum", period=_PERIOD
    )
    return _graph("Dead letters (should be none)", [depth], _THIRD, "messages")


def _executions(title: str, machines: Sequence[Machine], width: int = _HALF) -> cloudwatch.IWidget:
    shown = [
        metric
        for machine in (each.state_machine for each in machines)
        for metric in (
            machine.metric_started(label="started", period=_PERIOD),
            machine.metric_succeeded(label="succeeded", period=_PERIOD),
            machine.metric_failed(label="failed", period=_PERIOD),
            machine.metric_timed_out(label="timed out", period=_PERIOD),
            machine.metric_aborted(label="stopped", period=_PERIOD),
        )
    ]
    return _graph(title, shown, width, "executions")


def _durations(termination: Termination) -> cloudwatch.IWidget:
    shown = [
        termination.machine.state_machine.metric_time(label=label, statistic=statistic, period=_PERIOD)
        for label, statistic in (("median", "p50"), ("p90", "p90"), ("longest", "Maximum"))
    ]
    return _graph("From claim to gone", shown, _HALF, "milliseconds")


class _OwnMetrics:
    """Graphs of the functions' own metrics, in the namespace of the deployment."""

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace

    def whole(self, title: str) -> cloudwatch.IWidget:
        """Return a graph over the whole deployment."""
        shown = [
            cloudwatch.Metric(
                namespace=self._namespace,
                metric_name=name,
                dimensions_map={"service": service},
                label=label,
                statistic="Sum",
                period=_PERIOD,
            )
            for service, labels in metrics.WHOLE[title].items()
            for name, label in labels.items()
        ]
        return _graph(title, shown, _THIRD)

    def row(self, graphs: Sequence[metrics.Searched], width: int = _THIRD) -> list[cloudwatch.IWidget]:
        """Return graphs with a line for each value of their dimensions that has a point."""
        return [
            _graph(graph.title, [self._search(graph, name, label) for name, label in graph.metrics.items()], width)
            for graph in graphs
        ]

    def _search(self, graph: metrics.Searched, name: str, label: str) -> cloudwatch.IMetric:
        schema = ",".join((f'"{self._namespace}"', "service", *graph.by))
        found = f'{{{schema}}} MetricName="{name}" service="{graph.service}"'
        values = " ".join(f"${{PROP('Dim.{dimension}')}}" for dimension in graph.by)
        return cloudwatch.MathExpression(
            expression=f"SEARCH('{found}', '{graph.statistic}', {int(_PERIOD.to_seconds())})",
            label=f"{values}: {label}",
            using_metrics={},
            period=_PERIOD,
        )


def _table(
    title: str, functions: Sequence[LeewardFunction], query: Sequence[str], width: int = _FULL
) -> cloudwatch.IWidget:
    """Return a table from log lines: a query is billed only when the dashboard is open."""
    groups = [each.log_group.log_group_name for each in functions]
    return cloudwatch.LogQueryWidget(
        title=title, log_group_names=groups, query_lines=list(query), width=width, height=6
    )


def _functions(title: str, functions: Sequence[LeewardFunction]) -> cloudwatch.IWidget:
    shown = [
        metric
        for each in functions
        for metric in (
            each.function.metric_errors(label=f"{each.shape.name} errors", period=_PERIOD),
            each.function.metric_throttles(label=f"{each.shape.name} throttles", period=_PERIOD),
        )
    ]
    return _graph(title, shown, _HALF, "calls")


def _work(title: str, functions: Sequence[LeewardFunction]) -> cloudwatch.IWidget:
    shown = [
        each.function.metric_duration(label=each.shape.name, statistic="p99", period=_PERIOD) for each in functions
    ]
    return _graph(title, shown, _HALF, "milliseconds")


def _failures(functions: Sequence[LeewardFunction]) -> cloudwatch.IWidget:
    lines = (
        "fields @timestamp, service, coalesce(message, @message) as what",
        'filter level = "ERROR" or @message like /Traceback|Task timed out/',
        "sort @timestamp desc",
        "limit 20",
    )
    return _table("Latest errors", functions, lines)
