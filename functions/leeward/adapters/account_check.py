"""Answer of a function to `leeward doctor`: which accounts and Regions it can act in.

Only the function itself can assume its roles there, so nothing else can tell whether it may. Asking changes nothing."""

from collections.abc import Callable, Mapping
from functools import partial, wraps
from typing import Any

from leeward.errors import LeewardError
from leeward.isolation import attempt
from leeward.ports import Ports

CHECK = {"check": "accounts"}
UNKNOWN_INSTANCE = "i-00000000000000000"
Handler = Callable[[Mapping[str, Any], object], dict[str, Any]]


def answers_account_check(handler: Handler) -> Handler:
    """Return the handler, which answers `CHECK` with the accounts and every other event as before."""

    @wraps(handler)
    def handle(event: Mapping[str, Any], context: object) -> dict[str, Any]:
        if event != CHECK:
            return handler(event, context)
        from leeward.adapters import wiring  # late, as in the handlers

        return {"accounts": check_accounts(wiring.invocation_ports(context))}

    return handle


def check_accounts(ports: Ports) -> dict[str, str]:
    """Return cluster -> the error of a call to EC2 in its account and Region, empty where it answers."""
    found: dict[str, str] = {}
    for there in ports.everywhere():
        answer = attempt(partial(there.instances.describe, [UNKNOWN_INSTANCE]))
        error = str(answer) if isinstance(answer, LeewardError) else ""
        found |= dict.fromkeys(there.clusters.names(), error)
    return found
