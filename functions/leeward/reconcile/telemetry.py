"""Log lines and metrics of the minute reconciler, each name declared once (docs/reference/metrics.md lists them)."""

from collections import Counter
from collections.abc import Iterable

from leeward.reconcile.result import AttentionNotice, ReconcileResult
from leeward.telemetry import Telemetry, scopes_of

RECONCILIATIONS = "Reconciliations"
EXECUTIONS_RESTARTED = "ExecutionsRestarted"
HOOKS_ANSWERED = "HooksAnsweredByReconciler"
STALE_TAINTS_REMOVED = "StaleTaintsRemoved"
FOREIGN_TAINTS = "NodesOfOtherDeployments"
DRAINS_BLOCKED_LONG = "DrainsBlockedLong"
HOOKS_NEAR_THEIR_END = "HooksNearTheirEnd"
PAUSES_FORGOTTEN = "PausesForgotten"
PAUSES_IN_FORCE = "PausesInForce"
NODES_BLOCKED = "NodesBlocked"
ZONES_SHIFTED = "ZonesShifted"

telemetry = Telemetry("reconcile")


def reconciled(result: ReconcileResult) -> None:
    """Log the result of one pass, and count it and its fixes."""
    telemetry.info("reconciled", result.to_json())
    for node in result.foreign:
        telemetry.warning(f"another deployment of Leeward is terminating node {node}")
    for nodes in result.duplicates:
        telemetry.warning(nodes)
    for change in result.shift_changes:
        telemetry.warning(change)
    telemetry.count(
        {
            RECONCILIATIONS: 1,
            EXECUTIONS_RESTARTED: len(result.restarted),
            HOOKS_ANSWERED: len(result.answered),
            STALE_TAINTS_REMOVED: len(result.untainted),
            FOREIGN_TAINTS: len(result.foreign),
        }
    )
    needed = {
        DRAINS_BLOCKED_LONG: result.blocked_long,
        HOOKS_NEAR_THEIR_END: result.hooks_ending,
        PAUSES_FORGOTTEN: result.pauses_forgotten,
    }
    for name, notices in needed.items():
        for notice in notices:
            telemetry.warning(str(notice), {"needs": name})
    lasting = {PAUSES_IN_FORCE: result.pauses, NODES_BLOCKED: result.blocked, ZONES_SHIFTED: result.shifted}
    for name, notices in {**needed, **lasting}.items():
        _count(name, notices)


def _count(name: str, notices: Iterable[AttentionNotice]) -> None:
    """Count what lasts, again in each pass: in all, by cluster and by group; blocked nodes also for each of their
    causes. Alarms watch the number of the whole deployment.
    """
    series: Counter[tuple[tuple[str, str], ...]] = Counter()
    for notice in notices:
        series.update(tuple(scope.items()) for scope in scopes_of(notice.cluster, notice.group))
        if name == NODES_BLOCKED:
            series.update((("cluster", notice.cluster), ("cause", cause.value)) for cause in notice.causes)
    for scope, number in series.items():
        telemetry.count({name: number}, dict(scope))
