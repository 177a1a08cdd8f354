"""Sharing of budgets that name the reason Upgrade: they are the policy's, for the upgrades of its groups and the
cluster's run.

Decides nothing: returns which other groups there are, and which of their instances have a termination request of
others."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from leeward.budgets.disruption_budgets import upgrade_budgets
from leeward.model.group import Group
from leeward.model.termination import Status
from leeward.policy.document import NodePolicy
from leeward.policy.selection import policy_for
from leeward.ports import Ports
from leeward.ports.autoscaling import Groups
from leeward.ports.kubernetes import Clusters
from leeward.ports.records import Disruptions
from leeward.upgrade.executions import is_running
from leeward.upgrade.record import UpgradeRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Going:
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
    chain = clusters.policies(cluster).policies
    found = {one.name: one for one in groups.of_clusters([cluster]) if one.name != group.name}
    return {name: one for name, one in found.items() if policy_for(chain, name, one.tags) == policy}


def going_elsewhere(record: UpgradeRecord, others: Collection[str], ports: Ports) -> Going:
    """Return the instances of these groups, by their upgrades and by the cluster's open run: one read of the table
    for each.
    """
    if not others:
        return Going()
    before, later = set(_by_disruption(record.cluster, ports.disruptions)), set[str]()
    for name in others:
        other = ports.upgrades.read(name)
        if other is not None:
            (later if (other.began, name) > (record.began, record.group) else before).update(_by(other, ports))
    return Going(before=frozenset(before), later=frozenset(later))


def _by(other: UpgradeRecord, ports: Ports) -> Iterator[str]:
    """Yield the instances of an upgrade. Where no execution works on it, only those with a termination request: the
    others are requested when it is started again.
    """
    if other.ended is None and is_running(other.execution, ports.upgrade_executions, ports.managed_upgrade_executions):
        yield from other.under_way
        return
    told = ports.claims.read_all(other.under_way)
    yield from (instance for instance, record in told.items() if record.status is Status.OPEN)


def _by_disruption(cluster: str, disruptions: Disruptions) -> tuple[str, ...]:
    record = disruptions.read(cluster)
    return record.under_way if record is not None and record.open else ()
