"""Entry point of fn sync, every five minutes."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from leeward.adapters import wiring
from leeward.adapters.account_check import answers_account_check
from leeward.adapters.entry import entry_point
from leeward.adapters.initialization import initialize
from leeward.errors import LeewardError
from leeward.sync.controller import Synced, sync_once
from leeward.telemetry import Telemetry

HOOKS_PUT = "HooksPut"
NODES_LABELLED = "NodesLabelled"
FACTS_NOT_KEPT = "FactsNotKept"
FACTS_OUT_OF_DATE = "FactsOutOfDate"

telemetry = Telemetry("sync")


@entry_point("sync")
@answers_account_check
def handle(_event: Mapping[str, Any], context: object) -> dict[str, Any]:
    """Return `{"hooksPut": [group …], "hooksTakenOff": [group …], "nodesLabelled": [node …], "factsKept": [cluster/kind
    …]}` with `warnings` and `errors` as lists of sentences.

    Raises LeewardError if a hook could not be kept in place. Facts that could not be gathered are only named: the older
    ones stay, and their readers report how old they are.
    """
    synced = sync_once(wiring.invocation_ports(context))
    outcome = synced.to_json()
    (telemetry.warning if synced.warnings else telemetry.info)("synced", outcome)
    telemetry.count(
        {
            HOOKS_PUT: len(synced.hooks),
            NODES_LABELLED: len(synced.labelled),
            FACTS_NOT_KEPT: len(synced.warnings),
        }
    )
    _count_out_of_date(synced)
    if synced.errors:
        raise LeewardError("; ".join(synced.errors))
    return dict(outcome)


def _count_out_of_date(synced: Synced) -> None:
    """Count facts that are out of date at this moment: in all, by cluster and by kind."""
    telemetry.count({FACTS_OUT_OF_DATE: len(synced.out_of_date)})
    for cluster, number in Counter(cluster for cluster, _ in synced.out_of_date).items():
        telemetry.count({FACTS_OUT_OF_DATE: number}, {"cluster": cluster})
    for cluster, kind in synced.out_of_date:
        telemetry.count({FACTS_OUT_OF_DATE: 1}, {"cluster": cluster, "cause": kind.value})


initialize()
