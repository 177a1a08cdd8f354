"""Documents and tables of `leeward zone`."""

from collections.abc import Iterable, Sequence
from typing import Any

from leeward.cli.tables import Table
from leeward.cluster.facets import known_or
from leeward.evacuation.plan import EvacuationInputs, EvacuationStanding, NodeVerdict, plan_evacuation
from leeward.model.counts import count_of
from leeward.model.times import format_instant
from leeward.model.zonal_shift import NOT_SHIFTED, Evacuation, GroupSizes, ShiftKind, ZoneRecord
from leeward.snapshot.cluster import ClusterSnapshot

COLUMNS = ("NODE", "GROUP", "STANDING", "POD", "VOLUME", "WHY")
SEVERAL = {
    EvacuationStanding.LEAVES: "leave",
    EvacuationStanding.LEAVING: "leaving",
    EvacuationStanding.WAITS: "wait",
    EvacuationStanding.STAYS: "stay",
}
ZONE_COLUMNS = ("ZONE", "STATE", "NODES", "LEAVING", "WAIT", "STAY", "WHY")


def evacuation_document(zone: str, verdicts: Sequence[NodeVerdict], evacuation: Evacuation | None) -> dict[str, Any]:
    """Return the document of `docs/schema/zone-evacuate.json`. `evacuation` None: a dry run."""
    return {
        "zone": zone,
        "started": evacuation is not None,
        "evacuation": None if evacuation is None else _evacuation(evacuation),
        "nodes": [_node(one) for one in verdicts],
    }


def evacuation_report(document: dict[str, Any]) -> list[Table | str]:
    """Return a sentence, then one row for each node and each pod that holds it."""
    nodes, zone = document["nodes"], document["zone"]
    counts = [(sum(one["standing"] == each.value for one in nodes), each) for each in EvacuationStanding]
    said = ", ".join(count_of(number, each.value, SEVERAL[each]) for number, each in counts if number)
    closed = f"{zone} is closed for new nodes" if document["started"] else f"{zone}: dry run, nothing was changed"
    end = [f"leeward zone return {zone} opens it again"] if document["started"] else []
    return [f"{closed}; {count_of(len(nodes), 'node')}: {said or 'no node is there'}", _table(nodes), *end]


def return_document(
    zone: str, before: Evacuation | None, after: Evacuation | None, snapshot: ClusterSnapshot
) -> dict[str, Any]:
    """Return the document of `docs/schema/zone-return.json`. `before`, `after`: the evacuation around the write."""
    return {
        "zone": zone,
        "returned": before is not None and before.closed,
        "evacuation": None if after is None else _evacuation(after),
        "groups": [] if before is None else _sizes(before, snapshot),
    }


def return_report(document: dict[str, Any]) -> list[Table | str]:
    """Return a sentence and the sizes of the groups."""
    zone = document["zone"]
    said = f"{zone} is open again" if document["returned"] else f"{zone} was not closed by an evacuation"
    return [said, *_size_lines(document["groups"])]


def status_document(snapshot: ClusterSnapshot, record: ZoneRecord, inputs: EvacuationInputs) -> dict[str, Any]:
    """Return the document of `docs/schema/zone-status.json`."""
    zones = {subnet.zone for subnet in snapshot.subnets.values()} | {snapshot.zone_of(node) for node in snapshot.nodes}
    zones |= {one.zone for one in record.evacuations}
    return {"zones": [_zone(zone, snapshot, record, inputs) for zone in sorted(zones - {""})]}


def status_report(document: dict[str, Any]) -> list[Table | str]:
    """Return the zones, then the nodes of evacuated zones and sizes that differ."""
    table = Table(ZONE_COLUMNS, optional=("NODES", "LEAVING"), kind="zone", empty="no zone is known")
    lines: list[str] = []
    nodes: list[dict[str, Any]] = []
    for zone in document["zones"]:
        counts = [sum(one["standing"] == each for one in zone["nodes"]) for each in ("leaving", "waits", "stays")]
        table.add(zone["zone"], zone["state"], zone["nodeCount"], *counts, zone["why"])
        nodes += zone["nodes"]
        lines += _size_lines(zone["groups"])
    return [table, *([_table(nodes)] if nodes else []), *lines]


def _zone(zone: str, snapshot: ClusterSnapshot, record: ZoneRecord, inputs: EvacuationInputs) -> dict[str, Any]:
    evacuation = record.evacuation_of(zone)
    nodes = [node for node in snapshot.nodes if snapshot.zone_of(node) == zone]
    in_force = evacuation is not None and evacuation.closed
    verdicts = plan_evacuation(inputs, zone, evacuation.groups) if evacuation is not None and in_force else ()
    state, why = _state(zone, snapshot, evacuation, verdicts)
    return {
        "zone": zone,
        "state": state,
        "why": why,
        "nodeCount": len(nodes),
        "evacuation": None if evacuation is None else _evacuation(evacuation),
        "nodes": [_node(one) for one in verdicts],
        "groups": [] if evacuation is None else _sizes(evacuation, snapshot),
    }


def _state(
    zone: str, snapshot: ClusterSnapshot, evacuation: Evacuation | None, verdicts: Sequence[NodeVerdict]
) -> tuple[str, str]:
    """Return the state of the zone and its reason. A shift of ARC is named even where the zone is evacuated."""
    shifts = known_or(snapshot.shifts, NOT_SHIFTED).shifts
    shifted = next((one for one in shifts if one.zone == zone and one.kind is not ShiftKind.EVACUATION), None)
    reasons = [shifted.sentence] if shifted is not None else []
    if evacuation is not None:
        by = f"{evacuation.sentence} by {evacuation.by}{f': {evacuation.why}' if evacuation.why else ''}"
        reasons.append(by if evacuation.closed else f"{by}, opened again; its last terminations are under way")
    why = "; ".join(reasons)
    if evacuation is not None and evacuation.closed:
        left = any(one.standing is not EvacuationStanding.STAYS for one in verdicts)
        return ("evacuating" if left else "evacuated"), why
    if shifted is not None:
        return "shifted", why
    return ("returning" if evacuation is not None else "open"), why


def _node(verdict: NodeVerdict) -> dict[str, Any]:
    return {
        "node": verdict.node.name,
        "instance": verdict.node.instance_id or None,
        "group": verdict.group or None,
        "standing": verdict.standing.value,
        "reason": verdict.reason,
        "pods": [{"pod": one.pod, "volume": one.volume or None, "reason": one.reason} for one in verdict.pods],
    }


def _evacuation(one: Evacuation) -> dict[str, Any]:
    return {
        "by": one.by,
        "why": one.why or None,
        "since": format_instant(one.since),
        "returned": None if one.returned is None else format_instant(one.returned),
        "groups": list(one.groups),
    }


def _sizes(evacuation: Evacuation, snapshot: ClusterSnapshot) -> list[dict[str, Any]]:
    now = {
        name: GroupSizes(minimum=group.minimum, desired=group.desired, maximum=group.maximum)
        for name, group in snapshot.groups.items()
    }
    return [
        {"group": name, "before": _size(size), "now": _size(now[name]) if name in now else None}
        for name, size in sorted(evacuation.sizes.items())
    ]


def _size(size: GroupSizes) -> dict[str, int]:
    return {"minimum": size.minimum, "desired": size.desired, "maximum": size.maximum}


def _size_lines(groups: Iterable[dict[str, Any]]) -> list[str]:
    """Return a line for each group: its sizes as before, or what they were and are."""
    lines = []
    for one in groups:
        before, now = (one[each] and "/".join(map(str, one[each].values())) for each in ("before", "now"))
        said = f"has its sizes from before ({before})" if before == now else f"had {before} before, has {now} now"
        lines.append(f"{one['group']}: {said} (minimum/desired/maximum)")
    return lines


def _table(nodes: Iterable[dict[str, Any]]) -> Table:
    table = Table(COLUMNS, optional=("VOLUME", "GROUP", "POD"), kind="node", empty="no node leaves the zone")
    for node in nodes:
        row = (node["node"], node["group"], node["standing"])
        if not node["pods"]:
            table.add(*row, None, None, node["reason"])
        for pod in node["pods"]:
            table.add(*row, pod["pod"], pod["volume"], pod["reason"])
    return table
