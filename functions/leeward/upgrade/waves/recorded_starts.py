"""Old nodes that a killed step recorded and whose termination it did not request: whether they still fit."""

from collections.abc import Collection, Mapping

from leeward.model.termination import TerminationRecord
from leeward.upgrade.capacity_ledger import not_requested
from leeward.upgrade.preflight.model import Preflight, zone_of
from leeward.upgrade.record import UpgradeRecord
from leeward.upgrade.waves.drain_selection import busy_nodes
from leeward.upgrade.waves.shared_budgets import is_begun, within_limits


def without_misfits(
    record: UpgradeRecord,
    unrequested: Collection[str],
    terminations: Mapping[str, TerminationRecord],
    preflight: Preflight,
) -> UpgradeRecord:
    """Take back recorded nodes that hold pods while more nodes are unavailable than the limits allow. An instance that
    was booting, or a Node that was empty, when the step recorded it counted against no limit; a step may hang for
    minutes, and pods have come since. Those taken back are selected again as the limits allow. Nodes in a zone that has
    been shifted since are taken back as well.

    `unrequested`: old instances under way without a termination request; one that is requested in part stays.
    """
    left = [old for old in unrequested if old in record.under_way and not is_begun(record, old, terminations)]
    shifted = preflight.snapshot.shifted_zones
    if left and shifted:
        zones = {one.instance.id: zone_of(preflight.snapshot, one) for one in preflight.members}
        record = not_requested(record, [old for old in left if zones.get(old) in shifted])
        left = [old for old in left if old in record.under_way]
    if not left or within_limits(record, preflight):
        return record
    nodes = {node.instance_id: node.name for node in preflight.snapshot.nodes}
    busy = {one.name for one in busy_nodes(preflight, record)}
    return not_requested(record, [old for old in left if nodes.get(old, old) in busy])
