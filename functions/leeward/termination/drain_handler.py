"""Entry point of fn drain: the steps of node-termination that speak to Kubernetes.

Apart from `handler.py`, so that each function starts cold with its own steps and no others."""

from collections.abc import Mapping
from typing import Any

from leeward.adapters import wiring
from leeward.adapters.initialization import initialize
from leeward.termination import drain_step
from leeward.termination.handler import take_step


def drain(event: Mapping[str, Any], context: object) -> dict[str, Any]:
    """`{"step", "run"}` -> the run document."""
    return take_step(event, drain_step.STEPS, wiring.invocation_ports(context))


initialize()
