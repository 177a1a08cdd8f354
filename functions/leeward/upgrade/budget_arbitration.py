"""Arbitration between upgrades that share a budget, at the moment when old nodes are about to drain.

Each upgrade records the nodes it is about to drain, then re-reads the other upgrades' records before it requests a
termination: of two that write at the same moment at least one sees the other. The upgrade that began later takes
back its entries; the one that began earlier keeps its own and waits until that has been done. So the budget holds at
every moment, and at least one upgrade always proceeds."""

from collections.abc import Collection, Mapping

from leeward.budgets.disruption_budgets import upgrade_budgets
from leeward.model.termination import TerminationRecord
from leeward.ports import Ports
from leeward.upgrade.capacity_ledger import not_told
from leeward.upgrade.lease import written
from leeward.upgrade.preflight import Preflight
from leeward.upgrade.record import UpgradeRecord, cause_id
from leeward.upgrade.shared_budgets import going_elsewhere
from leeward.upgrade.unavailable_nodes import busy_nodes


def still_allowed(
    record: UpgradeRecord, untold: Collection[str], preflight: Preflight, ports: Ports
) -> tuple[UpgradeRecord, list[str]]:
    """Return the record and the old instances whose termination to request now, of those recorded as under way without
    a request yet. The others wait for a later turn, or are taken back and the record is written.
    """
    others = preflight.world.groups.keys() - {record.group}
    if not untold or not others or not upgrade_budgets(preflight.policy):
        return record, list(untold)
    going = going_elsewhere(record, others, ports)
    if _within(record, preflight, going.all):
        return record, list(untold)
    claims = ports.claims.read_all(untold)
    begun = [old for old in untold if _is_begun(record, old, claims)]
    if not _within(record, preflight, going.before):
        record = written(not_told(record, [old for old in untold if old not in begun]), ports.upgrades)
    return record, begun


def _is_begun(record: UpgradeRecord, old: str, claims: Mapping[str, TerminationRecord]) -> bool:
    """Return whether a step that died has requested this termination in part: that cannot be taken back."""
    claim = claims.get(old)
    return claim is not None and claim.knows(cause_id(record, old))


def _within(record: UpgradeRecord, preflight: Preflight, going: frozenset[str]) -> bool:
    """Return whether all nodes under way are no more than the budgets allow beside these."""
    limits = preflight.limits_beside(going)
    zones = [one.zone for one in busy_nodes(preflight, record)]
    crowded = any(zones.count(zone) > most for zone, most in limits.per_zone.items())
    return len(zones) <= limits.together and not crowded
