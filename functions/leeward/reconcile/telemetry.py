"""Log lines and metrics of the minute reconciler, each name declared once (docs/operations.md lists them)."""

from collections import Counter

from leeward.reconcile.result import ReconcileResult
from leeward.telemetry import Telemetry

RECONCILIATIONS = "Reconciliations"
EXECUTIONS_RESTARTED = "ExecutionsRestarted"
HOOKS_ANSWERED = "HooksAnsweredByReconciler"
STALE_TAINTS_REMOVED = "StaleTaintsRemoved"
FOREIGN_TAINTS = "NodesOfOtherDeployments"
DRAINS_BLOCKED_LONG = "DrainsBlockedLong"
HOOKS_NEAR_THEIR_END = "HooksNearTheirEnd"
PAUSES_FORGOTTEN = "PausesForgotten"
PAUSES_IN_FORCE = "PausesInForce"

telemetry = Telemetry("reconcile")


def reconciled(result: ReconcileResult) -> None:
    """Log the result of one pass, and count it and its fixes."""
    telemetry.info("reconciled", result.to_json())
    for node in result.foreign:
        telemetry.warning(f"another deployment of Leeward is terminating node {node}")
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
    telemetry.count({name: len(found) for name, found in needed.items()})  # alarms watch the sum of all clusters
    for name, found in needed.items():
        for what in found:
            telemetry.warning(what, {"needs": name})
    for name, found in {**needed, PAUSES_IN_FORCE: result.pauses}.items():
        for cluster, count in Counter(one.partition(": ")[0] for one in found).items():
            telemetry.count({name: count}, {"cluster": cluster})
