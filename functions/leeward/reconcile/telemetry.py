"""Log lines and metrics of the minute reconciler, each name declared once (docs/operations.md lists them)."""

from leeward.reconcile.result import ReconcileResult
from leeward.telemetry import Telemetry

RECONCILIATIONS = "Reconciliations"
EXECUTIONS_RESTARTED = "ExecutionsRestarted"
HOOKS_ANSWERED = "HooksAnsweredByReconciler"
STALE_TAINTS_REMOVED = "StaleTaintsRemoved"
FOREIGN_TAINTS = "NodesOfOtherDeployments"

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
