"""One dashboard, read from top to bottom: alarms, what needs an operator, incoming messages, outcomes of nodes,
upgrades and disruption runs by cluster and group, slow functions.

The packages declare our own metrics; here are only their names (a test keeps the two in sync).
"""

from collections.abc import Mapping, Sequence

from aws_cdk import Duration, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from infra.alarms import Alarms
from infra.disruption import Disruption
from infra.function import LeewardFunction
from infra.names import METRICS, TERMINATION, Names
from infra.queue import InterruptionQueue
from infra.state_machine import Machine
from infra.termination import Termination
from infra.upgrade import Upgrade

_HALF = 12
_THIRD = 8
_FULL = 24
_PERIOD = Duration.minutes(5)

# package -> its metric names, with the operators' labels
MESSAGES: Mapping[str, Mapping[str, str]] = {
    "interruption": {
        "InterruptionMessages": "messages read",
        "NodesTainted": "nodes tainted",
        "InterruptionMessagesRetried": "messages to be read again",
        "InterruptionMessagesDeadLettered": "messages that cannot be read",
    }
}
NODES: Mapping[str, Mapping[str, str]] = {
    "termination": {
        "NodesTerminated": "nodes terminated",
        "DrainsBlocked": "looks at a drain that a PodDisruptionBudget blocked",
        "PodEvictionFailures": "nodes returned to service: pods did not leave in time",
        "StepsFailed": "steps that used up their retries",
        "ReplacementsElsewhere": "replacements in another zone",
        "ReplacementsNowhere": "replacements without a place",
    }
}
UPGRADES: Mapping[str, Mapping[str, str]] = {
    "upgrade": {"GroupsUpgraded": "groups upgraded or rolled back", "UpgradesFailed": "upgrades that stopped"}
}
RUNS: Mapping[str, Mapping[str, str]] = {
    "disruption": {"DisruptionsDone": "runs done", "DisruptionsGivenUp": "runs given up: nothing was disrupted"}
}
BY_CLUSTER: Mapping[str, Mapping[str, str]] = {
    "Blocked nodes and hooks, by cluster": {
        "DrainsBlockedLong": "drains blocked for an hour",
        "HooksNearTheirEnd": "hooks near their end",
        "NodesBlockedByPods": "nodes that pods keep",
    },
    "Pauses, by cluster": {"PausesInForce": "in force", "PausesForgotten": "without an end for three days"},
    "Dollars an hour saved by disruption runs, by cluster": {"DollarsSavedPerHour": "$/h"},
}
SUMMED = frozenset({"DollarsSavedPerHour"})  # of the metrics by cluster; the others are repeated each minute
NOT_SHOWN: Mapping[str, str] = {
    "StaleFacts": "it has an alarm",
    "LaunchesRefused": "an Event on the node says it, and leeward doctor",
    "NodesOfOtherDeployments": "leeward doctor names both deployments",
    "PlansTimedOut": "harmless now and then; the log of fn disruption-planner has it",
    "NodesLabelled": "routine",
    "EventsPublished": "routine",
    "ChangesUnreadable": "none, unless two versions share a table",
    "EventsLost": "the log says which and why",
    "CallsThrottled": "it has an alarm",
}
FIXED: Mapping[str, Mapping[str, str]] = {
    "reconcile": {
        "HooksAnsweredByReconciler": "hooks answered by the reconciler",
        "ExecutionsRestarted": "executions started again",
        "StaleTaintsRemoved": "stale taints removed",
        "Reconciliations": "reconciliations",
    },
    "sync": {"HooksPut": "hooks put on groups", "FactsNotKept": "facts that could not be synced"},
}

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
_TERMINATED = (
    'filter step = "finish" and next = "done"',
    "stats count(*) as terminated by cluster, group",
    "sort terminated desc",
    "limit 30",
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

QUERIES = (_BLOCKED, _NEEDED, _TERMINATED, _UPGRADED, _DISRUPTED)


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
    return cloudwatch.Dashboard(
        scope,
        "Dashboard",
        dashboard_name=names.dashboard(Stack.of(scope).region),
        default_interval=Duration.hours(3),
        widgets=[
            [cloudwatch.TextWidget(markdown=_introduction(names), width=_HALF, height=4), _alarms(alarms)],
            [_by_cluster(title, labels) for title, labels in BY_CLUSTER.items()],
            [_table("Blocked drains, and what blocks them", [termination.drain], _BLOCKED)],
            [_table("What needs an operator", [termination.reconcile], _NEEDED)],
            [_waiting(queue), _oldest(queue), _dead(queue)],
            [_executions("Terminations by how they ended", [termination.machine]), _durations(termination)],
            [_own("Messages", MESSAGES), _own("Nodes", NODES), _own("Fixed, and kept in place", FIXED)],
            [_table("Nodes terminated, by cluster and group", [termination.terminate], _TERMINATED)],
            [
                _executions("Upgrades by how they ended", [upgrade.machine, upgrade.managed_machine], _THIRD),
                _own("Upgrades", UPGRADES),
                _own("Disruption runs", RUNS),
            ],
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


def _graph(title: str, metrics: Sequence[cloudwatch.IMetric], width: int, label: str = "") -> cloudwatch.GraphWidget:
    axis = cloudwatch.YAxisProps(min=0, label=label, show_units=False)
    return cloudwatch.GraphWidget(title=title, left=list(metrics), left_y_axis=axis, width=width, height=6)


def _waiting(queue: InterruptionQueue) -> cloudwatch.IWidget:
    metrics = [
        queue.queue.metric_number_of_messages_sent(label="events in", period=_PERIOD),
        queue.queue.metric_number_of_messages_deleted(label="events done", period=_PERIOD),
        queue.queue.metric_approximate_number_of_messages_visible(label="waiting", statistic="Maximum", period=_PERIOD),
    ]
    metrics.append(
        queue.state_changes.metric_approximate_number_of_messages_visible(
            label="state changes waiting", statistic="Maximum", period=_PERIOD
        )
    )
    return _graph("Interruption queue", metrics, _THIRD, "messages")


def _oldest(queue: InterruptionQueue) -> cloudwatch.IWidget:
    age = queue.queue.metric_approximate_age_of_oldest_message(label="oldest", statistic="Maximum", period=_PERIOD)
    return _graph("Age of the oldest message (a spot warning leaves 120 s)", [age], _THIRD, "seconds")


def _dead(queue: InterruptionQueue) -> cloudwatch.IWidget:
    depth = queue.dead_letters.metric_approximate_number_of_messages_visible(
        label="dead letters", statistic="Maximum", period=_PERIOD
    )
    return _graph("Dead letters (should be none)", [depth], _THIRD, "messages")


def _executions(title: str, machines: Sequence[Machine], width: int = _HALF) -> cloudwatch.IWidget:
    metrics = [
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
    return _graph(title, metrics, width, "executions")


def _durations(termination: Termination) -> cloudwatch.IWidget:
    metrics = [
        termination.machine.state_machine.metric_time(label=label, statistic=statistic, period=_PERIOD)
        for label, statistic in (("median", "p50"), ("p90", "p90"), ("longest", "Maximum"))
    ]
    return _graph("From claim to gone", metrics, _HALF, "milliseconds")


def _own(title: str, services: Mapping[str, Mapping[str, str]]) -> cloudwatch.IWidget:
    metrics = [
        cloudwatch.Metric(
            namespace=METRICS,
            metric_name=name,
            dimensions_map={"service": service},
            label=label,
            statistic="Sum",
            period=_PERIOD,
        )
        for service, labels in services.items()
        for name, label in labels.items()
    ]
    return _graph(title, metrics, _THIRD)


def _by_cluster(title: str, labels: Mapping[str, str]) -> cloudwatch.IWidget:
    """Return a graph with a line for each cluster that has a point: CloudWatch searches for them by itself."""
    metrics = [
        cloudwatch.MathExpression(
            expression=f"SEARCH('{{{METRICS},cluster,service}} MetricName=\"{name}\"', "
            f"'{'Sum' if name in SUMMED else 'Maximum'}', {int(_PERIOD.to_seconds())})",
            label=label,
            using_metrics={},
            period=_PERIOD,
        )
        for name, label in labels.items()
    ]
    return _graph(title, metrics, _THIRD)


def _table(
    title: str, functions: Sequence[LeewardFunction], query: Sequence[str], width: int = _FULL
) -> cloudwatch.IWidget:
    """Return a table from log lines: a query is billed only when the dashboard is open."""
    groups = [each.log_group.log_group_name for each in functions]
    return cloudwatch.LogQueryWidget(
        title=title, log_group_names=groups, query_lines=list(query), width=width, height=6
    )


def _functions(title: str, functions: Sequence[LeewardFunction]) -> cloudwatch.IWidget:
    metrics = [
        metric
        for each in functions
        for metric in (
            each.function.metric_errors(label=f"{each.shape.name} errors", period=_PERIOD),
            each.function.metric_throttles(label=f"{each.shape.name} throttles", period=_PERIOD),
        )
    ]
    return _graph(title, metrics, _HALF, "calls")


def _work(title: str, functions: Sequence[LeewardFunction]) -> cloudwatch.IWidget:
    metrics = [
        each.function.metric_duration(label=each.shape.name, statistic="p99", period=_PERIOD) for each in functions
    ]
    return _graph(title, metrics, _HALF, "milliseconds")


def _failures(functions: Sequence[LeewardFunction]) -> cloudwatch.IWidget:
    lines = (
        "fields @timestamp, service, coalesce(message, @message) as what",
        'filter level = "ERROR" or @message like /Traceback|Task timed out/',
        "sort @timestamp desc",
        "limit 20",
    )
    return _table("Latest errors", functions, lines)
