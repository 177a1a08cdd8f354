"""Tables of `leeward plan`: a summary, one row a command, and on request where pods go and why nodes stay.

Decides nothing: the tables show what the JSON says."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from leeward.cli.tables import Table
from leeward.disruption.savings import dollars
from leeward.model.counts import count_of

MOST_CAUSES = 10  # in the summary; --verbose has a row for each node


def plan_report(
    document: Mapping[str, Any], *, pods: bool, verbose: bool, asked: str | None, warnings: Sequence[str]
) -> list[Table | str]:
    """Build the report. `pods`: where they go; `verbose`: the verdicts on every node, of the method `asked` for alone
    where one was.
    """
    nodes = {entry["node"]: entry for entry in document["nodes"]}
    tables = [_commands(document["commands"], nodes)]
    tables += [_placements(document["commands"])] if pods else []
    tables += [_verdicts(document["nodes"], asked)] if verbose else []
    first, *more = tables
    said = (*_reasons(document["commands"]), *_refused(document["refusedTargets"]))
    return [*_summary(document), first, *said, *more, *warnings]


def _summary(document: Mapping[str, Any]) -> Iterator[str]:
    summary, method = document["summary"], document["method"]
    counts, prices = summary["nodes"], summary["pricePerMonth"]
    yield f"{count_of(counts['now'], 'node')}, {monthly(prices['now'])}"
    if document["commands"]:
        saved = saved_monthly(prices)
        yield f"after {method}: {count_of(counts['after'], 'node')}, {monthly(prices['after'])}{saved}"
        if summary["laterRuns"]:
            yield "that is one run: later ones may remove more nodes (--until-done plans them)"
    else:
        yield f"nothing to do{f' by {method}' if method else ''}"
    if summary["cheaperTypesPerMonth"]:
        yield f"cheaper instance types could save {monthly(summary['cheaperTypesPerMonth'])}, if groups launched them"
    yield from reasons_to_stay(summary["notConsidered"])


def reasons_to_stay(causes: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a line for each cause for which nodes are not considered, those with most nodes first."""
    for cause in causes[:MOST_CAUSES]:
        yield f"{count_of(len(cause['nodes']), 'node')} {_cause(cause)}"
    left = causes[MOST_CAUSES:]
    if left:
        nodes = sum(len(cause["nodes"]) for cause in left)
        yield f"{count_of(nodes, 'node')} not considered for {len(left)} other reasons (--verbose shows them)"


def _cause(cause: Mapping[str, Any]) -> str:
    """Return the object, with the sentence where it holds one node alone."""
    if cause["object"] is None:
        return f"not considered: {cause['reason']}"
    return f"blocked by {cause['object']}" if len(cause["nodes"]) > 1 else f"blocked: {cause['reason']}"


def monthly(price: float | None) -> str:
    return "price not known" if price is None else f"${price:,.2f} a month"


def saved_monthly(prices: Mapping[str, float | None]) -> str:
    now, after = prices["now"], prices["after"]
    return "" if now is None or after is None else f" (${now - after:,.2f} less)"


def _commands(commands: Sequence[Mapping[str, Any]], nodes: Mapping[str, Mapping[str, Any]]) -> Table:
    table = Table(
        (
            *("COMMAND", "DECISION", "NODES", "GROUP", "TYPE", "ZONE", "CAPACITY", "PRICE", "CPU", "MEMORY"),
            *("LAUNCHES", "SAVES", "COST", "SCORE", "NODE"),
        ),
        wide=frozenset({"CAPACITY", "COST", "SCORE"}),
        optional=("MEMORY", "CPU", "ZONE", "TYPE", "PRICE", "GROUP", "LAUNCHES"),
        kind="node",
    )
    for number, command in enumerate(commands, 1):
        own = [nodes[name] for name in command["nodes"] if name in nodes]
        table.add(
            number,
            command["decision"],
            len(command["nodes"]),
            _joined(own, "group"),
            _joined(own, "instanceType"),
            _joined(own, "zone"),
            _joined(own, "capacityType"),
            _price(own),
            _share(own, "cpu"),
            _share(own, "memory"),
            _launches(command["replacements"]),
            "unknown" if command["savingsPerHour"] is None else dollars(command["savingsPerHour"]),
            f"{command['disruptionCost']:.1f}",
            "" if command["score"] is None else f"{command['score']:.2f}",
            ",".join(command["nodes"]),
            names=command["nodes"],
        )
    return table


def _joined(nodes: Iterable[Mapping[str, Any]], key: str) -> str:
    return ",".join(sorted({entry[key] for entry in nodes if entry[key]}))


def _price(nodes: Sequence[Mapping[str, Any]]) -> str:
    """Return the dollars an hour of the nodes together."""
    prices = [entry["pricePerHour"] for entry in nodes]
    return "unknown" if None in prices or not prices else dollars(sum(prices))


def _share(nodes: Iterable[Mapping[str, Any]], key: str) -> str:
    """Return the requested part of what the nodes can allocate together."""
    uses = [entry[key] for entry in nodes]
    offered = sum(use["allocatable"] for use in uses)
    return f"{round(100 * sum(use['requested'] for use in uses) / offered)}%" if offered else "unknown"


def _launches(replacements: Iterable[Mapping[str, Any]]) -> str:
    return ",".join(f"{one['group']}({_some(one['instanceTypes'])})" for one in replacements)


def _some(names: Sequence[str]) -> str:
    return "|".join(names) if len(names) <= 3 else f"{names[0]}|+{len(names) - 1}"


def _reasons(commands: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for number, command in enumerate(commands, 1):
        zones = sorted({zone for one in command["replacements"] for zone in one["zones"]})
        launched = f"; launched in {' or '.join(zones)}" if zones else ""
        yield f"command {number}: {command['reason']}{launched}"


def _refused(refused: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for one in refused[:MOST_CAUSES]:
        nodes = one["nodes"][0] if len(one["nodes"]) == 1 else count_of(len(one["nodes"]), "node")
        fix = f"; {one['fix']}" if one["fix"] else ""
        yield f"refused: {one['group']} in place of {nodes}, pod {one['pod']}: {one['reason']}{fix}"


def _placements(commands: Sequence[Mapping[str, Any]]) -> Table:
    table = Table(
        ("POD", "TO-NODE", "COMMAND"), title="where pods go", kind="pod", empty="no pod of these nodes has to move"
    )
    for number, command in enumerate(commands, 1):
        for entry in command["placements"]:
            table.add(entry["pod"], entry["node"], number)
    return table


def _verdicts(nodes: Iterable[Mapping[str, Any]], asked: str | None) -> Table:
    table = Table(
        ("NODE", "GROUP", "TYPE", "ZONE", "PRICE", "CPU", "MEMORY", "METHOD", "CONSIDERED", "WHY"),
        title="why nodes stay, or are disrupted",
        optional=("MEMORY", "CPU", "ZONE", "PRICE", "TYPE", "CONSIDERED", "GROUP"),
        kind="node",
    )
    for entry in nodes:
        about = (entry["node"], entry["group"], entry["instanceType"], entry["zone"], _price([entry]))
        used = (_share([entry], "cpu"), _share([entry], "memory"))
        verdicts = [one for one in entry["verdicts"] if asked in {None, one["method"]}]
        for methods, verdict in _grouped(verdicts):
            table.add(*about, *used, methods, "yes" if verdict["candidate"] else "no", verdict["reason"])
    return table


def _grouped(verdicts: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the verdicts, each once with the methods in a row that share it."""
    for _, same in groupby(verdicts, key=lambda verdict: (verdict["candidate"], verdict["reason"])):
        shared = list(same)
        many = len(shared) == len(verdicts) > 1
        yield "all" if many else ",".join(one["method"] for one in shared), shared[0]
