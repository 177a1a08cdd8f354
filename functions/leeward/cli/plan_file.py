"""Earlier plan, read back from the JSON that `leeward plan -o json` printed."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from leeward.adapters.folder.files import load_json
from leeward.adapters.folder.schema import SchemaError, check_of
from leeward.disruption.command import Command, Decision, MethodName, Plan, Replacement
from leeward.errors import InvalidInputError
from leeward.model.instance import CapacityType

_COMMAND = "leeward plan -o json"


def read_plan(path: Path) -> Plan:
    """Read a plan. Raises InvalidInputError naming file, path, found and expected."""
    documents = load_json(path, _COMMAND)
    if len(documents) != 1:
        found = "no such file" if not documents else f"{len(documents)} documents"
        raise InvalidInputError(f"{path}: document: found {found}, expected one plan, the output of: {_COMMAND}")
    raw = documents[0]
    try:
        check_of("plan")(raw, "")
        for place, command in enumerate(raw["commands"]):
            if command["decision"] == Decision.REPLACE and not command.get("replacements"):
                raise SchemaError(f"commands[{place}].replacements", "nothing", "at least one, the decision is replace")
    except SchemaError as error:
        raise InvalidInputError(f"{path}: {error} (the output of: {_COMMAND})") from error
    method = raw.get("method")
    if method is None and raw["commands"]:
        raise InvalidInputError(f"{path}: method: found nothing, expected the method of its commands")
    return Plan(
        method=MethodName(method) if method else None,
        commands=tuple(_command(one) for one in raw["commands"]),
        verdicts={},
    )


def _command(raw: Mapping[str, Any]) -> Command:
    return Command(
        decision=Decision(raw["decision"]),
        nodes=tuple(raw["nodes"]),
        reason=raw.get("reason", ""),
        replacements=tuple(_replacement(one) for one in raw.get("replacements", ())),
        savings=raw.get("savingsPerHour"),
        cost=raw.get("disruptionCost", 0.0),
    )


def _replacement(raw: Mapping[str, Any]) -> Replacement:
    capacity = raw.get("capacityType")
    return Replacement(
        group=raw["group"],
        types=tuple(raw["instanceTypes"]),
        zones=tuple(raw["zones"]),
        capacity=CapacityType(capacity) if capacity else None,
    )
