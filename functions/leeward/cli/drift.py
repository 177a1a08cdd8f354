"""`leeward drift`: the nodes that differ from what their group would launch now, the fields that differ, and the
remedy.

Decides how the result is printed; `leeward.drift` decides what has drifted."""

import argparse
from collections import Counter
from collections.abc import Sequence
from typing import Any

from leeward.cli.cluster_state import cluster_of
from leeward.cli.node_filter import NodeFilter, add_node_filters, node_filter
from leeward.cli.output import emit
from leeward.cli.tables import Table
from leeward.drift.detect import Drifted, all_drift
from leeward.model.counts import count_of
from leeward.model.times import format_instant
from leeward.snapshot.cluster import ClusterSnapshot

DESCRIPTION = """Shows every node with all differences from what its group would launch now and from its policy. The
remedy is replace where a new node of the group would be in order, upgrade where a new one would drift as well, and
none where nothing has drifted, nodes that were launched since show the difference too, what the group launches cannot
be read, or drift is switched off."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the filters."""
    add_node_filters(parser)


def run(arguments: argparse.Namespace) -> int:
    """Compare and print; return 0, whatever the report finds."""
    context, snapshot = cluster_of(arguments, "drift")
    listed = node_filter(arguments, context)
    found = [one for one in all_drift(snapshot) if _includes(listed, snapshot, one.node)]
    emit(to_json(found, snapshot), arguments.view, lambda: _report(found, snapshot), snapshot.warnings)
    return 0


def _includes(listed: NodeFilter, snapshot: ClusterSnapshot, name: str) -> bool:
    node = snapshot.node(name)
    return node is not None and listed.includes(node.labels, _group(snapshot, name))


def _group(snapshot: ClusterSnapshot, name: str) -> str | None:
    node = snapshot.node(name)
    group = snapshot.group_of(node) if node is not None else None
    return group.name if group is not None else None


def to_json(found: Sequence[Drifted], snapshot: ClusterSnapshot) -> dict[str, Any]:
    """Return the document that `docs/schema/drift.json` describes."""
    return {
        "nodes": [
            {
                "node": one.node,
                "group": _group(snapshot, one.node),
                "drifted": one.drifted,
                "since": format_instant(one.since) if one.since else None,
                "remedy": one.remedy.value,
                "notJudged": one.unread or None,
                "reasons": [
                    {
                        "field": why.field.value,
                        "class": why.kind.value,
                        "have": why.have,
                        "want": why.want,
                        "fixable": why.fixable,
                        "proof": why.proof or None,
                    }
                    for why in one.reasons
                ],
            }
            for one in found
        ]
    }


def _report(found: Sequence[Drifted], snapshot: ClusterSnapshot) -> list[Table | str]:
    drifted = [one for one in found if one.drifted]
    table = Table(
        ("NODE", "GROUP", "SINCE", "REMEDY", "FIELD", "CLASS", "HAVE", "WANT"),
        wide=frozenset({"CLASS"}),
        optional=("SINCE", "GROUP", "REMEDY"),
        kind="node",
    )
    for one in drifted:
        since = format_instant(one.since) if one.since else None
        for why in one.reasons:
            group = _group(snapshot, one.node)
            remedy = one.remedy_of(why).value
            table.add(one.node, group, since, remedy, why.field.value, why.kind.value, why.have, why.want)
    proofs = {(_group(snapshot, one.node), why.field, why.want): why.proof for one in drifted for why in one.reasons}
    not_fixed = [
        f"{group}: a new node would differ too in {field.value}, wanted {want}: {proof}"
        for (group, field, want), proof in proofs.items()
        if proof
    ]
    unread = Counter((_group(snapshot, one.node), one.unread) for one in found if one.unread)
    not_judged = [f"{group}: not judged, {why}" for group, why in unread]
    total = f"{len(drifted)} of {count_of(len(found), 'node')} drifted"
    total += f", {unread.total()} not judged" if unread else ""
    upgrades = dict.fromkeys(one.upgrade for one in drifted if one.upgrade)
    return [total, table, *not_fixed, *upgrades, *not_judged, *snapshot.warnings]
