"""Limits of drains that an upgrade shares: budgets that name the reason Upgrade with the other upgrades of its policy's
groups and the cluster's run, and all of them with surplus that terminations drain in its own group.

Each upgrade records the nodes it is about to drain, then re-reads the other upgrades' records before it requests a
termination: of two that write at the same moment at least one sees the other. The upgrade that began later takes
back its entries; the one that began earlier keeps its own and waits until that has been done. So the budget holds at
every moment, and at least one upgrade always proceeds. A surplus waits for the nodes that the group's upgrade has
recorded (`termination/surplus_turn.py`), and the upgrade takes back entries beside a surplus claimed meanwhile."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from leeward.budgets.disruption_budgets import upgrade_budgets
from leeward.model.group import Group
from leeward.model.termination import Status, TerminationRecord
from leeward.policy.document import NodePolicy
from leeward.ports import Ports
from leeward.ports.autoscaling import Groups
from leeward.ports.kubernetes import Clusters
from leeward.ports.records import Claims, Disruptions
from leeward.termination.capacity_ledger import is_under_way, only_surplus
from leeward.termination.requests import read_apart
from leeward.upgrade.capacity_ledger import not_requested
from leeward.upgrade.preflight.model import Preflight, zone_of
from leeward.upgrade.record import UpgradeRecord, cause_id
from leeward.upgrade.run import is_held, written
from leeward.upgrade.waves.drain_selection import busy_nodes


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherTerminations:
    """Instances whose termination is requested or about to be: `later` by upgrades that began later than this one."""

    before: frozenset[str] = frozenset()
    later: frozenset[str] = frozenset()

    @property
    def all(self) -> frozenset[str]:
        """Instances of both, whichever upgrade or run requested them."""
        return self.before | self.later


def others_of(policy: NodePolicy, group: Group, cluster: str, clusters: Clusters, groups: Groups) -> dict[str, Group]:
    """Return the policy's other groups in the cluster, by name. Reads nothing where no budget names the reason Upgrade:
    no other limits an upgrade.
    """
    if not upgrade_budgets(policy):
        return {}
    policies = clusters.policies(cluster)
    groups_by_name = {one.name: one for one in groups.of_clusters([cluster]) if one.name != group.name}
    return {name: one for name, one in groups_by_name.items() if policies.policy_of(one) == policy}


def terminating_elsewhere(record: UpgradeRecord, others: Collection[str], ports: Ports) -> OtherTerminations:
    """Return the instances of these groups, by their upgrades and by the cluster's open run: one read of the table
    for each.
    """
    if not others:
        return OtherTerminations()
    before, later = set(_by_disruption(record.cluster, ports.disruptions)), set[str]()
    for name in others:
        other = ports.upgrades.read(name)
        if other is not None:
            (later if (other.began, name) > (record.began, record.group) else before).update(
                _requested_by(other, ports)
            )
    return OtherTerminations(before=frozenset(before), later=frozenset(later))


def _requested_by(other: UpgradeRecord, ports: Ports) -> Iterator[str]:
    """Yield the instances of an upgrade. Where no execution works on it, only those with a termination request: the
    others are requested when it is started again.
    """
    if is_held(other, ports.upgrade_executions, ports.managed_upgrade_executions):
        yield from other.under_way
        return
    terminations = read_apart(other.under_way, ports.claims)
    yield from terminations.unreadable
    yield from (instance for instance, record in terminations.read.items() if record.status is Status.OPEN)


def _by_disruption(cluster: str, disruptions: Disruptions) -> tuple[str, ...]:
    disruption = disruptions.read(cluster)
    return disruption.under_way if disruption is not None and disruption.open else ()


def surplus_requested(groups: Iterable[Group], claims: Claims) -> frozenset[str]:
    """Return the members whose open termination an offset alone requests: one read of the table for a hundred members.
    Each counts from its claim on, so that its turn comes.
    """
    members = [member.id for group in groups for member in group.instances]
    return surplus_among(members, read_apart(members, claims).read)


def surplus_among(members: Iterable[str], records: Mapping[str, TerminationRecord]) -> frozenset[str]:
    """Return the same of records that were read."""
    known = ((name, records[name]) for name in members if name in records)
    return frozenset(name for name, one in known if is_under_way(one) and only_surplus(one))


def still_allowed(
    record: UpgradeRecord, unrequested: Collection[str], preflight: Preflight, ports: Ports
) -> tuple[UpgradeRecord, list[str]]:
    """Return the record and the old instances whose termination to request now, of those recorded as under way without
    a request yet. The others wait for a later turn, or are taken back and the record is written.
    """
    if not unrequested:
        return record, []
    others = preflight.snapshot.groups.keys() - {record.group} if upgrade_budgets(preflight.policy) else set[str]()
    surplus = surplus_requested(preflight.snapshot.groups.values(), ports.claims)
    if not others and surplus <= preflight.snapshot.terminating:
        return record, list(unrequested)
    preflight = replace(preflight, snapshot=replace(preflight.snapshot, terminating=surplus))
    going = terminating_elsewhere(record, others, ports)
    if within_limits(record, preflight, going.all | surplus):
        return record, list(unrequested)
    claims = read_apart(unrequested, ports.claims).read
    begun = [old for old in unrequested if is_begun(record, old, claims)]
    if not within_limits(record, preflight, going.before | surplus):
        record = written(not_requested(record, [old for old in unrequested if old not in begun]), ports.upgrades)
    return record, begun


def is_begun(record: UpgradeRecord, old: str, claims: Mapping[str, TerminationRecord]) -> bool:
    """Return whether a step that died has requested this termination in part: that cannot be taken back."""
    claim = claims.get(old)
    return claim is not None and claim.knows(cause_id(record, old))


def within_limits(record: UpgradeRecord, preflight: Preflight, going: frozenset[str] = frozenset()) -> bool:
    """Return whether all nodes under way are no more than the limits allow beside these of other groups."""
    limits = preflight.limits_with(going)
    zones = [one.zone for one in busy_nodes(preflight, record)]
    crowded = any(zones.count(zone) > most for zone, most in limits.per_zone.items())
    return len(zones) <= limits.together and not crowded


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
