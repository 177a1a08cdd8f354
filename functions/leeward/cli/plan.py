"""`leeward plan`: the next run of voluntary disruption, what it saves, and the reason why every other node stays.

Decides how a plan is read and printed; `leeward.disruption` makes it."""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Group as Rows
from rich.console import RenderableType
from rich.table import Table

from leeward.adapters.folder.files import load_json
from leeward.adapters.folder.schema import SchemaError, check_of
from leeward.cli.cluster_state import cluster_of
from leeward.cli.output import emit
from leeward.disruption.command import Command, Decision, MethodName, Plan, Replacement, Verdict
from leeward.disruption.plan import plan_disruption
from leeward.disruption.savings import dollars
from leeward.disruption.validation import validate
from leeward.errors import InvalidInputError
from leeward.model.instance import CapacityType
from leeward.reconcile.repair_plan import repair_plan

_PRINTED_BY = "leeward plan -o json"
DESCRIPTION = """Shows the next run of voluntary disruption: which nodes would go, what is launched before, what that
saves an hour, and for every other node why it stays. One method acts in a run, the first that has something to do:
expiration, drift, emptiness, consolidation. With --method unhealthy it shows the nodes that the minute reconciler would
replace because they are NotReady or their instance is impaired. Nothing is changed. With --validate an earlier plan
(the JSON of this command) is checked again: what still holds is printed."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add one method, or an earlier plan."""
    parser.add_argument("--method", choices=[name.value for name in MethodName], help="this method alone")
    parser.add_argument("--validate", metavar="PLAN.json", type=Path, help="check an earlier plan again")


def run(arguments: argparse.Namespace) -> int:
    """Plan or check, and print."""
    earlier = read_plan(arguments.validate) if arguments.validate is not None else None
    only = MethodName(arguments.method) if arguments.method else None
    method = earlier.method if earlier is not None else only
    context, snapshot = cluster_of(arguments, "plan")
    if method is MethodName.UNHEALTHY:
        plan = repair_plan(snapshot, context.ports.instances.impaired())
        if earlier is not None:
            known = {command.nodes for command in earlier.commands}
            plan = replace(plan, commands=tuple(one for one in plan.commands if one.nodes in known))
    elif earlier is not None:
        plan = validate(snapshot, earlier.method, earlier.commands)
    else:
        plan = plan_disruption(snapshot, only=only)
    emit(to_json(plan), arguments.output, lambda: _tables(plan, arguments.method))
    return 0


def to_json(plan: Plan) -> dict[str, Any]:
    """Return the document that docs/command-line.md and `docs/schema/plan.json` describe."""
    return {
        "method": plan.method.value if plan.method else None,
        "commands": [_command(command) for command in plan.commands],
        "nodes": [
            {
                "node": node,
                "verdicts": [
                    {"method": name.value, "candidate": verdict.candidate, "reason": verdict.reason}
                    for name, verdict in verdicts.items()
                ],
            }
            for node, verdicts in plan.verdicts.items()
        ],
    }


def _command(command: Command) -> dict[str, Any]:
    return {
        "decision": command.decision.value,
        "nodes": list(command.nodes),
        "replacements": [
            {
                "group": one.group,
                "instanceTypes": list(one.types),
                "zones": list(one.zones),
                "capacityType": one.capacity.value if one.capacity else None,
            }
            for one in command.replacements
        ],
        "savingsPerHour": command.savings,
        "disruptionCost": round(command.cost, 6),
        "reason": command.reason,
    }


def _tables(plan: Plan, asked: str | None) -> RenderableType:
    stay = Table(title="why nodes stay, or go", title_justify="left", title_style="bold")
    for column in ("node", "method", "considered", "what was found"):
        stay.add_column(column, overflow="fold")
    for node, verdicts in plan.verdicts.items():
        asked_for = {name: one for name, one in verdicts.items() if asked in {None, name.value}}
        for place, (names, verdict) in enumerate(_alike(asked_for)):
            stay.add_row("" if place else node, names, "yes" if verdict.candidate else "no", verdict.reason)
    return Rows(_commands(plan), "", stay, *plan.warnings)


def _alike(verdicts: Mapping[MethodName, Verdict]) -> Iterator[tuple[str, Verdict]]:
    """Yield the verdict of each method; a verdict that all methods share is yielded once."""
    if len(verdicts) > 1 and len(set(verdicts.values())) == 1:
        yield "all", next(iter(verdicts.values()))
        return
    yield from ((name.value, verdict) for name, verdict in verdicts.items())


def _commands(plan: Plan) -> RenderableType:
    if not plan.commands:
        return f"nothing to do{f' by {plan.method.value}' if plan.method else ''}"
    total = [command.savings for command in plan.commands if command.savings is not None]
    saves = f": saves {dollars(sum(total))} an hour" if sum(total) > 0 else ""
    table = Table(
        title=f"next run, by {plan.method.value if plan.method else ''}{saves}",
        title_justify="left",
        title_style="bold",
    )
    for column in ("decision", "nodes", "launched before", "saves an hour", "disruption cost", "why"):
        table.add_column(column, overflow="fold")
    for command in plan.commands:
        savings = "not known" if command.savings is None else dollars(command.savings)
        new = _replacements(command)
        nodes = ", ".join(command.nodes)
        table.add_row(command.decision.value, nodes, new, savings, f"{command.cost:.1f}", command.reason)
    return table


def _replacements(command: Command) -> str:
    return "; ".join(
        f"1 of {one.group} ({_some(one.types)}) in {' or '.join(one.zones)}" for one in command.replacements
    )


def _some(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= 3 else f"{names[0]} and {len(names) - 1} other types"


def read_plan(path: Path) -> Plan:
    """Read a plan. Raises InvalidInputError naming file, path, found and expected."""
    documents = load_json(path, _PRINTED_BY)
    if len(documents) != 1:
        found = "no such file" if not documents else f"{len(documents)} documents"
        raise InvalidInputError(f"{path}: document: found {found}, expected one plan, the output of: {_PRINTED_BY}")
    raw = documents[0]
    try:
        check_of("plan")(raw, "")
        for place, command in enumerate(raw["commands"]):
            if command["decision"] == Decision.REPLACE and not command.get("replacements"):
                raise SchemaError(f"commands[{place}].replacements", "nothing", "at least one, the decision is replace")
    except SchemaError as error:
        raise InvalidInputError(f"{path}: {error} (the output of: {_PRINTED_BY})") from error
    method = raw.get("method")
    if method is None and raw["commands"]:
        raise InvalidInputError(f"{path}: method: found nothing, expected the method of its commands")
    return Plan(
        method=MethodName(method) if method else None,
        commands=tuple(_command_of(one) for one in raw["commands"]),
        verdicts={},
    )


def _command_of(raw: Mapping[str, Any]) -> Command:
    return Command(
        decision=Decision(raw["decision"]),
        nodes=tuple(raw["nodes"]),
        reason=raw.get("reason") or "the earlier plan names no reason",
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
