"""Metrics of the functions that the dashboard shows, and in which series; a test holds them against what the functions
emit, both ways.

Graphs of the whole deployment name their metrics. Graphs by cluster, node group or cause search for them, because
CloudWatch finds a new cluster or group by itself.
"""

from collections.abc import Mapping
from dataclasses import dataclass

CLUSTER, GROUP, CAUSE = ("cluster",), ("cluster", "group"), ("cluster", "cause")  # dimensions beside the service

FAILING = {"OldestInterruptionRetried": "failing", "OldestStateChangeRetried": "failing state changes"}
"""Metric of package interruption -> label, in the graph of the queue's age."""

# Graph -> package -> its metric names, with the operators' labels
WHOLE: Mapping[str, Mapping[str, Mapping[str, str]]] = {
    "Messages": {
        "interruption": {
            "InterruptionMessages": "messages read",
            "NodesTainted": "nodes tainted",
            "InterruptionMessagesRetried": "messages to be read again",
            "InterruptionMessagesDeadLettered": "messages that cannot be read",
        }
    },
    "Replacements and drains": {
        "termination": {
            "DrainsBlocked": "drain steps that ended blocked",
            "ReplacementsElsewhere": "replacements in another zone",
            "ReplacementsNowhere": "replacements without a place",
        }
    },
    "Fixed, and kept in place": {
        "reconcile": {
            "HooksAnsweredByReconciler": "hooks answered by the reconciler",
            "ExecutionsRestarted": "executions started again",
            "StaleTaintsRemoved": "stale taints removed",
            "Reconciliations": "reconciliations",
        },
        "sync": {"HooksPut": "hooks put on groups", "FactsNotKept": "facts that could not be synced"},
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Searched:
    """Graph with a line for each value of the dimensions. `metrics`: name -> label; `statistic`: Maximum for what is
    counted again each minute, Sum for what happens once.
    """

    title: str
    service: str
    by: tuple[str, ...]
    metrics: Mapping[str, str]
    statistic: str = "Sum"


INTERRUPTIONS = (
    Searched(
        title="Nodes that AWS takes, by cluster",
        service="notifications",
        by=CLUSTER,
        metrics={"NodesInterrupted": "interrupted"},
    ),
    Searched(
        title="Nodes that AWS takes, by group",
        service="notifications",
        by=GROUP,
        metrics={"NodesInterrupted": "interrupted"},
    ),
    Searched(
        title="Terminations requested, by cause",
        service="notifications",
        by=CAUSE,
        metrics={"TerminationsRequested": "requested"},
    ),
)
BLOCKED = (
    Searched(
        title="Nodes blocked now, by cause",
        service="reconcile",
        by=CAUSE,
        metrics={"NodesBlocked": "blocked"},
        statistic="Maximum",
    ),
    Searched(
        title="Nodes blocked now, by group",
        service="reconcile",
        by=GROUP,
        metrics={"NodesBlocked": "blocked"},
        statistic="Maximum",
    ),
    Searched(
        title="Need an operator, by cluster",
        service="reconcile",
        by=CLUSTER,
        metrics={"DrainsBlockedLong": "drains blocked for an hour", "HooksNearTheirEnd": "hooks near their end"},
        statistic="Maximum",
    ),
    Searched(
        title="Nodes that pods keep for longer than a day, by cluster",
        service="disruption",
        by=CLUSTER,
        metrics={"NodesBlockedByPods": "kept by pods"},
        statistic="Maximum",
    ),
)
PAUSES = (
    Searched(
        title="Pauses, by cluster",
        service="reconcile",
        by=CLUSTER,
        metrics={"PausesInForce": "in force", "PausesForgotten": "without an end for three days"},
        statistic="Maximum",
    ),
    Searched(
        title="Zones that ARC has shifted away from, by cluster",
        service="reconcile",
        by=CLUSTER,
        metrics={"ZonesShifted": "shifted"},
        statistic="Maximum",
    ),
    Searched(
        title="Pauses of groups",
        service="reconcile",
        by=GROUP,
        metrics={"PausesInForce": "in force"},
        statistic="Maximum",
    ),
    Searched(
        title="Facts out of date, by kind",
        service="sync",
        by=CAUSE,
        metrics={"FactsOutOfDate": "out of date"},
        statistic="Maximum",
    ),
)
TERMINATIONS = (
    Searched(
        title="Nodes terminated, by cluster",
        service="termination",
        by=CLUSTER,
        metrics={"NodesTerminated": "terminated"},
    ),
    Searched(
        title="Nodes terminated, by group",
        service="termination",
        by=GROUP,
        metrics={"NodesTerminated": "terminated"},
    ),
    Searched(
        title="Terminations that failed, by group",
        service="termination",
        by=GROUP,
        metrics={"PodEvictionFailures": "pods did not leave", "StepsFailed": "a step failed"},
    ),
)
UPGRADES = (
    Searched(
        title="Upgrades, by group",
        service="upgrade",
        by=GROUP,
        metrics={"GroupsUpgraded": "upgraded or rolled back", "UpgradesFailed": "stopped"},
    ),
)
DISRUPTION = (
    Searched(
        title="Disruption runs, by cluster",
        service="disruption",
        by=CLUSTER,
        metrics={"DisruptionsDone": "done", "DisruptionsGivenUp": "given up"},
    ),
    Searched(
        title="Nodes removed by disruption runs, by group",
        service="disruption",
        by=GROUP,
        metrics={"NodesDisrupted": "removed"},
    ),
)
SAVINGS = (
    Searched(
        title="Dollars an hour saved by disruption runs, by cluster",
        service="disruption",
        by=CLUSTER,
        metrics={"DollarsSavedPerHour": "$ an hour"},
    ),
    Searched(
        title="Dollars an hour saved by disruption runs, by group",
        service="disruption",
        by=GROUP,
        metrics={"DollarsSavedPerHour": "$ an hour"},
    ),
)
SEARCHED = (*INTERRUPTIONS, *BLOCKED, *PAUSES, *TERMINATIONS, *UPGRADES, *DISRUPTION, *SAVINGS)

NOT_SHOWN: Mapping[str, str] = {
    "StaleFacts": "FactsOutOfDate shows them before a replacement is placed",
    "LaunchesRefused": "an Event on the node says it, and leeward doctor",
    "NodesOfOtherDeployments": "leeward doctor names both deployments",
    "PlansTimedOut": "harmless now and then; the log of fn disruption-planner has it",
    "NodesLabelled": "routine",
    "EventsPublished": "routine",
    "ChangesUnreadable": "none, unless two versions share a table",
    "EventsLost": "the log says which and why",
    "CallsThrottled": "it has an alarm",
    "ColdStart": "routine; one a call in a row says that the function's process ends each time",
}
"""Metric -> reason why no graph shows it."""
