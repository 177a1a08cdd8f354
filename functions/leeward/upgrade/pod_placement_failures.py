"""New nodes that do not come: after a quarter of an hour each is reported with its cause and the fix.

Decides the NodeCreationFailure; the messages are in `failures.py`."""

from datetime import datetime, timedelta

from leeward.upgrade.creation_failures import (
    NodeCreationFailure,
    code_in,
    labels_missing,
    launch_failure,
    never_joined,
    not_ready,
)
from leeward.upgrade.gate import Gate, Lack
from leeward.upgrade.observation import Scene
from leeward.upgrade.record import UpgradeRecord

JOINS_WITHIN = timedelta(minutes=15)  # the same as EKS gives a new node
SEARCH = timedelta(minutes=15)  # for capacity in a zone that has lacked it
NO_CAPACITY = "InsufficientInstanceCapacity"


def creation_failures(
    record: UpgradeRecord, scene: Scene, gate: Gate, now: datetime, *, exhausted: bool
) -> tuple[NodeCreationFailure, ...]:
    """Return the failures, empty while there is still time, which begins once pre-flight waits for nothing.
    `exhausted`: INCREMENTAL has launched as many as it may.
    """
    members = {one.name: one for one in scene.preflight.members}
    since = max((moment for moment in (record.phase_since, record.measured) if moment), default=now)
    found: list[NodeCreationFailure] = []
    for missing in gate.missing:
        member = members.get(missing.object)
        if missing.lack is Lack.NO_NEW_NODE or member is None:
            if now - since >= SEARCH or exhausted:
                found.append(_nothing_launched(record, missing.object))
            continue
        instance = scene.instances.get(member.instance.id)
        waited = now - (instance.launched if instance is not None else since)
        if waited < JOINS_WITHIN:
            continue
        if missing.lack is Lack.NOT_JOINED:
            state = instance.state if instance is not None else "terminated"
            found.append(never_joined(member.instance.id, member.instance.zone, waited, state))
        elif missing.lack is Lack.LABELS:
            found.append(labels_missing(member.name, missing.labels))
        else:
            found.append(not_ready(member.name, member.node.conditions if member.node else (), waited))
    return tuple(found)


def _nothing_launched(record: UpgradeRecord, zone: str) -> NodeCreationFailure:
    said = "; ".join(why for why in record.short.values() if why.startswith(zone)) or record.refusal
    if not said:
        return launch_failure(zone, "LaunchRefused", "no subnet of the group has room, or the launched instance ended")
    code = code_in(said) or (NO_CAPACITY if record.short else "LaunchRefused")
    return launch_failure(zone, code, said)
