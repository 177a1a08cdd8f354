"""`python -m infra.quota`: check before a deployment that the account's Lambda quota allows the reservations of the
settings.

Without this check the first function that reserves is refused, and the whole deployment rolls back.
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError
from botocore.session import Session

from infra.interruption import reserved_concurrency
from infra.settings import Settings, read_settings
from leeward.errors import InvalidInputError
from leeward.model.concurrency import RAISE, Concurrency, shortage

ROOT = Path(__file__).resolve().parent.parent
RESERVING = ("interruption", "drain")


def main(root: Path = ROOT, client: Any = None) -> int:
    """Print quotas that are too low and how to raise them, and return 1 then. A quota that may not be read is reported
    and does not fail the check.
    """
    context = json.loads((root / "cdk.json").read_text())["context"]
    try:
        settings = read_settings(context.get, root, {})
        wanted = (reserved_concurrency(settings) or 0) + (settings.drain_concurrency or 0)
        if not wanted:
            return 0
        account, held = _read(client or _client(settings), settings)
    except InvalidInputError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    except (BotoCoreError, ClientError) as error:
        sys.stderr.write(f"Lambda's quota was not looked at: {error}\n")
        return 0
    why = shortage(account, wanted=wanted, held=held)
    if why:
        sys.stderr.write(f"{why}. {RAISE}\n")
    return 1 if why else 0


def _client(settings: Settings) -> Any:
    return Session().create_client("lambda", region_name=settings.region)


def _read(client: Any, settings: Settings) -> tuple[Concurrency, int]:
    """Read the account's limits, and the concurrency that functions of an earlier deployment reserve."""
    limits: Mapping[str, Any] = client.get_account_settings()["AccountLimit"]
    held = 0
    for function in map(settings.names.function, RESERVING):
        try:
            held += int(client.get_function_concurrency(FunctionName=function).get("ReservedConcurrentExecutions") or 0)
        except client.exceptions.ResourceNotFoundException:
            continue
    account = Concurrency(
        limit=int(limits["ConcurrentExecutions"]), unreserved=int(limits["UnreservedConcurrentExecutions"])
    )
    return account, held


if __name__ == "__main__":
    sys.exit(main())
