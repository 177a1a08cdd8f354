"""Entry point of fn reconciler.

The pass is imported at the first call: in Lambda that has happened before, in INIT (`adapters.initialization`)."""

from collections.abc import Mapping
from typing import Any

from leeward.adapters import wiring
from leeward.adapters.account_check import answers_account_check
from leeward.adapters.entry import entry_point
from leeward.adapters.initialization import initialize
from leeward.reconcile import telemetry


@entry_point("reconcile")
@answers_account_check
def reconcile(_event: Mapping[str, Any], context: object) -> dict[str, Any]:
    """Run one pass over all clusters and return its result. The event says nothing: a pass reads the current state."""
    from leeward.reconcile.reconciler import reconcile_once

    result = reconcile_once(wiring.invocation_ports(context))
    telemetry.reconciled(result)
    return result.to_json()


initialize()
