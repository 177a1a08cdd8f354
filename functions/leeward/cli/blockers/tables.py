"""Tables of blockers: one row for each cause, however many pods and nodes it holds, then the fixes.

Decides what counts as the same cause: the same kind and object."""

from collections.abc import Iterable, Iterator, Sequence

from leeward.blockers.blocker import Blocker
from leeward.blockers.namespaces import KeptByNamespace
from leeward.cli.fixes import commands_in, copied, fix_lines
from leeward.cli.tables import Table
from leeward.model.counts import count_of
from leeward.model.times import format_instant

MOST_FIXES = 3  # of one cause; `-o json` has all
UNKNOWN = "unknown"


def blockers_report(
    blockers: Sequence[Blocker], namespaces: Sequence[KeptByNamespace], nodes: Sequence[str], *, verbose: bool
) -> list[Table | str]:
    """Build the summary, one row a cause (`verbose`: one row a pod), namespaces, and the fixes. `nodes`: all that were
    judged.
    """
    causes = list(_causes(blockers))
    table = _table([(blocker,) for blocker in blockers] if verbose else causes, _nothing(nodes))
    return [*_summary(blockers, causes, nodes), table, *_namespaces(namespaces), *_fixes(causes)]


def blocker_tables(blockers: Sequence[Blocker]) -> list[Table | str]:
    """Build one row a cause, and the fixes, for a report of another command."""
    causes = list(_causes(blockers))
    return [_table(causes), *_fixes(causes)]


def _causes(blockers: Iterable[Blocker]) -> Iterator[tuple[Blocker, ...]]:
    """Yield the blockers of each cause, causes that hold most nodes first."""
    causes: dict[tuple[str, str], list[Blocker]] = {}
    for blocker in blockers:
        causes.setdefault((blocker.kind.value, blocker.object), []).append(blocker)
    yield from sorted(map(tuple, causes.values()), key=lambda cause: -len({blocker.node for blocker in cause}))


def _summary(
    blockers: Sequence[Blocker], causes: Sequence[tuple[Blocker, ...]], nodes: Sequence[str]
) -> tuple[str, ...]:
    blocked = len({blocker.node for blocker in blockers})
    many = count_of(len(causes), "cause")
    return (f"{blocked} of {count_of(len(nodes), 'node')} blocked, {many}",) if blockers else ()


def _nothing(nodes: Sequence[str]) -> str:
    return f"nothing blocks {nodes[0] if len(nodes) == 1 else f'any of {len(nodes)} nodes'}"


def _table(causes: Sequence[tuple[Blocker, ...]], empty: str = "") -> Table:
    table = Table(
        ("KIND", "OBJECT", "POD", "NODE", "UNTIL", "OWNER", "PODS", "NODES"),
        wide=frozenset({"OWNER", "PODS", "NODES"}),
        optional=("UNTIL", "POD", "KIND"),
        text="OBJECT",
        kind="node",
        empty=empty,
    )
    for cause in causes:
        pods, on = _names(one.pod for one in cause), _names(one.node for one in cause)
        ends = [one.until for one in cause if one.until is not None]
        until = format_instant(max(ends)) if len(ends) == len(cause) else UNKNOWN
        owners = ",".join(_names(one.owner for one in cause))
        table.add(
            cause[0].kind.value,
            cause[0].object,
            _one_or_many(pods, "pod"),
            _one_or_many(on, "node"),
            until,
            owners,
            ",".join(pods),
            ",".join(on),
            names=on,
        )
    return table


def _names(found: Iterable[str | None]) -> list[str]:
    return sorted({name for name in found if name})


def _one_or_many(names: Sequence[str], noun: str) -> str:
    return names[0] if len(names) == 1 else count_of(len(names), noun) if names else ""


def _namespaces(namespaces: Sequence[KeptByNamespace]) -> tuple[Table, ...]:
    if not namespaces:
        return ()
    title = "nodes kept by opt-outs, finalizers and lists beyond the limits"
    table = Table(
        ("NAMESPACE", "PODS", "NODES", "SINCE", "LONGER-THAN-A-DAY"), title=title, kind="namespace", optional=("SINCE",)
    )
    for one in namespaces:
        since = format_instant(one.since) if one.since else UNKNOWN
        table.add(one.namespace, one.pods, len(one.nodes), since, ",".join(one.long) or "none")
    return (table,)


def _fixes(causes: Iterable[tuple[Blocker, ...]]) -> Iterator[str]:
    """Yield the fix of each cause: the sentence of its first blocker, and the commands of the others."""
    for cause in causes:
        yield ""
        first, *others = dict.fromkeys(blocker.fix for blocker in cause)
        yield from fix_lines(f"fix {cause[0].kind.value}, {cause[0].object}", first)
        more = list(dict.fromkeys(command for fix in others for command in commands_in(fix)))
        more = [command for command in more if command not in set(commands_in(first))]
        yield from (copied(command) for command in more[: MOST_FIXES - 1])
        if len(more) >= MOST_FIXES:
            yield (
                f"  ... and {count_of(len(more) - MOST_FIXES + 1, 'more command')} "
                f"for other pods and nodes (-o json has all)"
            )
