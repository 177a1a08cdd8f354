"""Old nodes whose turn has come and for whom a budget that several upgrades share may just have been used up.

Everybody writes down whom he is about to tell, and looks at what the others have written before he tells anybody: of
two who write at one moment at least one sees the other. Who began later takes back what he wrote; who began earlier
keeps it and waits until that has been done. So the budget holds at every moment, and somebody always goes on."""

from collections.abc import Collection, Mapping

from leeward.model.termination import TerminationRecord
from leeward.ports import Ports
from leeward.upgrade.capacity_ledger import not_told
from leeward.upgrade.lease import written
from leeward.upgrade.preflight import Preflight, upgrade_budgets
from leeward.upgrade.record import UpgradeRecord, cause_id
from leeward.upgrade.shared_budgets import going_elsewhere
from leeward.upgrade.unavailable_nodes import busy_nodes


def still_allowed(
    record: UpgradeRecord, untold: Collection[str], preflight: Preflight, ports: Ports
) -> tuple[UpgradeRecord, list[str]]:
    """Of old instances that are written down as under way and that nobody has told yet, whom to tell now. The others
    wait for a later turn, or are taken back and the record is written.
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
        record = written(not_told(record, [old for old in untold if old not in begun]), ports)
    return record, begun


def _is_begun(record: UpgradeRecord, old: str, claims: Mapping[str, TerminationRecord]) -> bool:
    """A step that died has told him in part: that cannot be taken back."""
    claim = claims.get(old)
    return claim is not None and claim.knows(cause_id(record, old))


def _within(record: UpgradeRecord, preflight: Preflight, going: frozenset[str]) -> bool:
    """Whether all who are under way are no more than the budgets allow beside these."""
    limits = preflight.limits_beside(going)
    zones = [one.zone for one in busy_nodes(preflight, record)]
    crowded = any(zones.count(zone) > most for zone, most in limits.per_zone.items())
    return len(zones) <= limits.together and not crowded
