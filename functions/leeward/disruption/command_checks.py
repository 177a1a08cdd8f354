"""Validation of a run's commands against a fresh snapshot: a changed cluster state is a normal outcome.

Decides nothing of its own: `validate` does. Once replacements have come up, their commands are checked as deletions
beside nodes that exist; the cost of a new node is compared with the planned cost."""

from collections.abc import Mapping
from dataclasses import replace

from leeward.disruption.command import Command, Decision, MethodName, Verdict
from leeward.disruption.launching import planned
from leeward.disruption.observation import without_our_marks
from leeward.disruption.record import DisruptionRecord
from leeward.disruption.validation import validate
from leeward.snapshot.cluster import ClusterSnapshot

CENTS = 1e-6  # dollars an hour that are no difference


def judged(record: DisruptionRecord, snapshot: ClusterSnapshot, deployment: str) -> DisruptionRecord:
    """Return the record with the commands as they hold now; commands that no longer hold are dropped (`fallen`), each
    with its reason.
    """
    snapshot = without_our_marks(snapshot, record, deployment)
    asked = {number: _as_it_stands(record, number, command) for number, command in record.standing.items()}
    found = validate(snapshot, record.method, asked.values(), more=lambda: False)
    fallen: dict[int, str] = {}
    commands = list(record.commands)
    left = list(found.commands)
    for number, command in asked.items():
        still = next((one for one in left if set(one.nodes) <= set(command.nodes)), None)
        expensive = _why_expensive(record, number, snapshot)
        if still is None or expensive:
            fallen[number] = expensive or _why(found.verdicts, command, record)
        if still is not None:
            left.remove(still)
            commands[number] = _narrowed(commands[number], still)
    return replace(record.fell(fallen), commands=tuple(commands))


def _as_it_stands(record: DisruptionRecord, number: int, command: Command) -> Command:
    come = record.new_of(number)
    if command.decision is Decision.DELETE or len(come) < len(command.replacements):
        return command
    return replace(command, decision=Decision.DELETE, replacements=())


def _narrowed(command: Command, still: Command) -> Command:
    """Return the command reduced to the nodes of an empty set that are still empty, or to the zones of a replacement
    that are still possible.
    """
    coming = still.replacements or command.replacements
    return replace(command, nodes=still.nodes, replacements=coming)


def _why_expensive(record: DisruptionRecord, number: int, snapshot: ClusterSnapshot) -> str:
    nodes = {node.instance_id: node for node in snapshot.nodes}
    for new in record.new_of(number):
        wanted = planned(record, record.launched[new])
        price = snapshot.price_of(nodes[new]) if new in nodes else None
        if price is not None and wanted.price is not None and price > wanted.price + CENTS:
            return f"{new} costs ${price:.4f} an hour, planned were ${wanted.price:.4f} at the most"
    return ""


def _why(verdicts: Mapping[str, Mapping[MethodName, Verdict]], command: Command, record: DisruptionRecord) -> str:
    said = [verdicts[name][record.method].reason for name in command.nodes if record.method in verdicts.get(name, {})]
    return "; ".join(dict.fromkeys(said)) or f"{', '.join(command.nodes)}: the nodes are not there any more"
