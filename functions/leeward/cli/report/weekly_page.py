"""Page and JSON document of a weekly report."""

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any

from leeward.cli.report.causes import NAMES
from leeward.cli.report.headline import Figure
from leeward.cli.report.page import document, figure_list, notes
from leeward.cli.report.tables import Cell, table
from leeward.cli.report.texts import clock, count, day, length, noun, safe
from leeward.cli.report.weekly import Ended, OwnerRow, Weekly
from leeward.model.times import format_instant

MOST_NODES = 500  # rows
MOST_OWNERS = 20
NO_TIME = timedelta()


def weekly_page(week: Weekly) -> str:
    """Return the whole HTML document."""
    return document(
        title=f"Leeward: {week.cluster}, {day(week.begin)} to {day(week.end)}",
        heading=headline(week),
        under=f'<p class="quiet">{day(week.begin)} {clock(week.begin)} to {day(week.end)} {clock(week.end)} UTC</p>',
        body=f"""{figure_list(figures(week))}
<main>
{notes(week.missing)}
<h2>Replaced by cause</h2>
{_causes(week)}
<h2>Deadlines</h2>
{_deadlines(week)}
<h2>Blocked time by owner</h2>
{_owners(week.owners)}
<h2>Nodes</h2>
{_nodes(week.ended)}
</main>""",
    )


def headline(week: Weekly) -> str:
    """Return the sentence at the top: nodes, pods, deadlines."""
    pods = sum(row.pods for row in week.causes)
    said = f"{week.cluster}: {count(len(week.ended), 'node')} left, {count(pods, 'pod')} moved"
    kept, all_of_them = week.deadlines
    return f"{said}; {kept} of {count(all_of_them, 'deadline')} kept" if all_of_them else said


def figures(week: Weekly) -> tuple[Figure, ...]:
    """Return the figures under the headline."""
    kept, deadlines = week.deadlines
    least = min((row.least for row in week.causes if row.least is not None), default=None)
    found = [Figure(value=str(len(week.ended)), label=f"{noun(len(week.ended), 'node')} left")]
    if deadlines:
        good = kept == deadlines
        found.append(Figure(value=f"{kept} of {deadlines}", label="deadlines kept", good=good))
    if least is not None:
        found.append(Figure(value=length(least), label="least to spare"))
    found.append(Figure(value=length(week.blocked) if week.blocked else "none", label="node time blocked"))
    if week.returned:
        found.append(Figure(value=str(week.returned), label="returned to service", good=False))
    if week.savings.nodes:
        found.append(Figure(value=f"${week.savings.so_far:,.2f}", label="saved so far", good=True))
        found.append(Figure(value=f"${week.savings.a_month:,.2f}", label="saved a month from now on", good=True))
    return tuple(found)


def _causes(week: Weekly) -> str:
    most = max((row.nodes for row in week.causes), default=1)
    rows = (
        _bar(
            NAMES[row.cause],
            row.nodes / most,
            str(row.nodes),
            f"{count(row.pods, 'pod')} moved{f', {row.launched} launched ahead' if row.launched else ''}",
        )
        for row in week.causes
    )
    return _bars(rows, none="No node left.")


def _deadlines(week: Weekly) -> str:
    rows = [
        (
            f"deadline-{row.cause.value}",
            (
                ("name", safe(NAMES[row.cause])),
                ("right labelled", f"<i>kept </i>{row.kept} of {row.kept + row.missed}"),
                ("right labelled", f"<i>least to spare </i>{'-' if row.least is None else length(row.least)}"),
                ("right labelled", f"<i>to spare together </i>{length(row.spare)}"),
            ),
        )
        for row in week.causes
        if row.kept + row.missed
    ]
    return table(("cause", "kept", "least to spare", "to spare together"), rows, none="No node had a deadline.")


def _owners(owners: Sequence[OwnerRow]) -> str:
    most = max((row.blocked for row in owners), default=NO_TIME)
    rows = [
        _bar(
            row.owner,
            row.blocked / most if most else 0.0,
            length(row.blocked),
            f"{count(row.pods, 'pod')} on {count(row.nodes, 'node')}",
            kind="bar bad",
        )
        for row in owners[:MOST_OWNERS]
    ]
    rest = f'<p class="quiet">{len(owners) - MOST_OWNERS} more</p>' if len(owners) > MOST_OWNERS else ""
    return _bars(rows, none="Nothing blocked a drain.") + rest


def _bars(rows: Iterable[str], *, none: str) -> str:
    items = "".join(rows)
    return f'<ul class="bars">{items}</ul>' if items else f'<p class="quiet">{none}</p>'


def _bar(name: str, share: float, value: str, detail: str, *, kind: str = "bar") -> str:
    """Draw a row: name, a bar of `share` of the width, value and detail."""
    width = max(100 * share, 0.5)
    return (
        f'<li><span>{safe(name)}</span><svg height="16" aria-hidden="true"><rect class="rest" width="100%" height="16" '
        f'rx="3"/><rect class="{kind}" width="{width:.1f}%" height="16" rx="3"/></svg>'
        f'<span><b>{safe(value)}</b> <span class="quiet">{safe(detail)}</span></span></li>'
    )


def _nodes(ended: Sequence[Ended]) -> str:
    rows = [(f"node-{number}", tuple(_node(one))) for number, one in enumerate(ended[:MOST_NODES], start=1)]
    rest = f'<p class="quiet">{len(ended) - MOST_NODES} more</p>' if len(ended) > MOST_NODES else ""
    return table(("node", "ended", "cause", "pods", "drain", "to spare"), rows, none="No node left.") + rest


def _node(one: Ended) -> Iterable[Cell]:
    spare = "no deadline" if one.kept is None else "missed" if one.spare is None else length(one.spare)
    yield "name", f"{safe(one.node)}<span>{safe(' · '.join(word for word in (one.instance, one.group) if word))}</span>"
    yield "still", f"{day(one.at)} {clock(one.at)}"
    yield "", safe(NAMES[one.cause])
    yield "right labelled", f"<i>pods </i>{one.pods}"
    yield "right labelled", f"<i>drain </i>{'-' if one.drain is None else length(one.drain)}"
    yield f"right labelled{' bad' if one.kept is False else ''}", f"<i>to spare </i>{spare}"


def weekly_document(week: Weekly) -> dict[str, Any]:
    """Return the figures as JSON (docs/schema/report-weeks.json); lengths in seconds, money in dollars."""
    kept, deadlines = week.deadlines
    return {
        "cluster": week.cluster,
        "from": format_instant(week.begin),
        "to": format_instant(week.end),
        "nodes": len(week.ended),
        "returned": week.returned,
        "deadlines": {"kept": kept, "missed": deadlines - kept},
        "causes": [
            {
                "cause": row.cause.value,
                "nodes": row.nodes,
                "launched": row.launched,
                "pods": row.pods,
                "kept": row.kept,
                "missed": row.missed,
                "spareSeconds": _seconds(row.spare),
                "leastSeconds": None if row.least is None else _seconds(row.least),
            }
            for row in week.causes
        ],
        "blocked": [
            {"owner": row.owner, "pods": row.pods, "nodes": row.nodes, "seconds": _seconds(row.blocked)}
            for row in week.owners
        ],
        "saved": {
            "nodes": week.savings.nodes,
            "dollarsAnHour": round(week.savings.rate, 6),
            "dollars": round(week.savings.so_far, 2),
        },
        "missing": list(week.missing),
    }


def _seconds(span: timedelta) -> float:
    return round(span.total_seconds(), 1)
