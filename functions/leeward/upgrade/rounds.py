"""Disruption rounds beside an upgrade: it waits until the round that holds its group has ended, and counts the nodes
that a round of the policy's other groups takes.

The upgrade has written its lease before it looks here, and a round looks at leases before it touches anything: whoever
is second sees the first."""

from collections.abc import Iterable

from leeward.errors import GroupBusyError
from leeward.model import keys
from leeward.model.node import Node
from leeward.policy.document import NodePolicy
from leeward.policy.selection import policy_for
from leeward.ports import Ports
from leeward.upgrade.preflight import upgrade_budgets
from leeward.upgrade.record import UpgradeRecord


def wait_for_round(record: UpgradeRecord, ports: Ports) -> None:
    """Raises GroupBusyError, which the state machine tries again for an hour."""
    found = ports.rounds.read(record.cluster)
    if found is not None and found.open and record.group in found.groups:
        nodes = ", ".join(found.going)
        raise GroupBusyError(f"disruption round {found.number} ({found.method.value}) holds {record.group}: {nodes}")


def busy_elsewhere(record: UpgradeRecord, policy: NodePolicy, nodes: Iterable[Node], ports: Ports) -> tuple[str, ...]:
    """The zone of each node that the cluster's open round takes in another group of the policy, marked or not yet. Asks
    nobody where no budget names the reason Upgrade: no other limits an upgrade.
    """
    if not upgrade_budgets(policy):
        return ()
    found = ports.rounds.read(record.cluster)
    if found is None or not found.open:
        return ()
    going = {name for name, instance in found.going.items() if instance not in found.ends}
    chain = ports.clusters.policies(record.cluster).policies
    groups = ports.groups.describe(sorted({found.members[name] for name in going} - {record.group}))
    same = {name for name, group in groups.items() if policy_for(chain, name, group.tags) == policy}
    taken = [node for node in nodes if node.name in going and found.members[node.name] in same]
    return tuple(node.labels.get(keys.ZONE_LABEL, "") for node in taken)
