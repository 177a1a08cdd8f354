"""Entry point of fn drain: the steps of node-termination that call Kubernetes.

Separate from `handler.py`, so that each function loads only its own steps on a cold start."""

from collections.abc import Mapping
from typing import Any

from leeward.adapters import wiring
from leeward.adapters.account_check import answers_account_check
from leeward.adapters.entry import entry_point
from leeward.adapters.initialization import initialize
from leeward.termination.drain import STEPS
from leeward.termination.handler import answer


@entry_point("termination")
@answers_account_check
def drain(event: Mapping[str, Any], context: object) -> dict[str, Any]:
    """Run one step: `{"step", "run"}` -> the run document."""
    return answer(event, STEPS, wiring.invocation_ports(context))


initialize()
