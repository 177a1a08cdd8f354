"""Rules that must hold for disruption runs: never more nodes than budgets allow, and at the end nothing left of them.

The rules read the raw objects of the cluster; of the product they take the run's record and policies' selectors."""

from collections.abc import Callable, Iterator
from math import ceil

from leeward.disruption.record import DisruptionRecord
from leeward.model import well_known
from leeward.policy.document import Budget, NodePolicy
from local.cluster.objects import Obj, name_of
from local.cluster.store import Change, ChangeType
from simulation.facts import always, maximum_kept
from simulation.node_instances import instance_behind
from simulation.rule import Rule
from simulation.view import WorldView

REBALANCE = "AZRebalance"
SETTLED = 120.0  # seconds: a node unavailable for less may have been unknown when the run was judged
STUCK = 3 * 3600.0  # longer than replacements and drains take together


class Spent:
    """Rule that the nodes whose termination a run requests are, with all others in service that are unavailable, no
    more than budgets allow.
    """

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}
        self._since: dict[str, float] = {}  # node -> since when it is unavailable
        self._now = 0.0

    def watch(self, change: Change) -> None:
        """Observe a write; runs inside it, so it only reads."""
        if change.resource != "nodes":
            return
        name = name_of(change.obj)
        if change.type is ChangeType.DELETED or not _unavailable(change.obj):
            self._since.pop(name, None)
        else:
            self._since.setdefault(name, self._now)

    def check(self, view: WorldView) -> Iterator[str]:
        """Check each run once, when it requests terminations."""
        self._now = view.now
        for cluster, record in view.disruptions.items():
            if record.requested and self._seen.get(cluster) != record.number:
                self._seen[cluster] = record.number
                yield from self._over(record, view)

    def _over(self, record: DisruptionRecord, view: WorldView) -> Iterator[str]:
        unavailable = {name for name, since in self._since.items() if view.now - since > SETTLED}
        for policy in view.policies.policies:
            zones, leaving = _zones_of(policy, view), _zones_of(policy, view, "Terminating")  # since it was judged
            for budget in filter(always, policy.disruption.budgets):
                names = {name for name, zone in zones.items() if budget.zone in {None, zone}}
                going, busy = set(record.to_terminate) & names, unavailable & names
                left = sum(budget.zone in {None, zone} for name, zone in leaving.items() if name not in unavailable)
                if going and len(going | busy) > _limit(budget, len(names) + left):
                    reported = f"{', '.join(sorted(going))} go, {len(busy - going)} are unavailable already"
                    where = f" in {budget.zone}" if budget.zone else ""
                    yield f"run {record.number}: {reported}, policy {policy.name} has {len(names)} nodes{where}"


def _zones_of(policy: NodePolicy, view: WorldView, lifecycle: str = "InService") -> dict[str, str]:
    """Return the zone of each node in this state of its group's lifecycle that the policy selects."""
    mine = [group for group in view.groups.values() if view.policies.policy_of(group) is policy]
    members = {one.id: one.zone for group in mine for one in group.instances if one.lifecycle.startswith(lifecycle)}
    nodes = ((name_of(node), instance_behind(node)) for node in view.cluster.store.each("nodes"))
    return {name: members[instance] for name, instance in nodes if instance in members}


def _limit(budget: Budget, nodes: int) -> int:
    return ceil(nodes * budget.nodes / 100) if budget.percent else budget.nodes


def _unavailable(node: Obj) -> bool:
    conditions = (node.get("status") or {}).get("conditions") or ()
    ready = any(one.get("type") == "Ready" and one.get("status") == "True" for one in conditions)
    return not ready or is_tainted(node) or "deletionTimestamp" in node["metadata"]


def is_tainted(node: Obj) -> bool:
    """Return whether the node carries our taint; cordoned alone it is available."""
    return any(taint.get("key") == well_known.DISRUPTED_TAINT for taint in node["spec"].get("taints") or ())


def of_open_disruptions(view: WorldView) -> set[str]:
    """Return the instances that a run has claimed and whose node may carry our taint."""
    return {instance for record in view.disruptions.values() if record.open for instance in record.nodes.values()}


def owed_by_disruption(group: str, view: WorldView) -> int:
    """Count the launches of an open run, for which nodes are still to terminate, and those that a raised desired size
    has to bring.
    """
    records = [record for record in view.disruptions.values() if record.open]
    groups = [node.group for record in records for node in record.launched.values()]
    growing = [name for record in records for name in record.outstanding().values()]
    return groups.count(group) + growing.count(group)


def _disruptions(view: WorldView) -> Iterator[str]:
    for record in view.disruptions.values():
        age = view.now - record.began.timestamp()
        rests = record.retry is not None and record.retry.timestamp() > view.now - 120
        if record.open and record.execution not in view.disrupting and not rests:
            yield f"run {record.number} is open and nothing runs: {record.why}"
        elif record.open and age > STUCK:
            yield f"run {record.number} has not come to its end in {age:.0f} s"


def _restored(view: WorldView) -> Iterator[str]:
    held = {name for record in view.disruptions.values() if record.open for name in record.groups}
    for name, group in sorted(view.groups.items()):
        upgrade = view.upgrades.get(name)
        upgraded = upgrade is not None and (upgrade.execution in view.upgrading or upgrade.resumable)
        if name in held or upgraded:
            continue
        if REBALANCE in group.suspended:
            yield f"{name}: {REBALANCE} is suspended and no disruption run is open"
        if maximum_kept(view, group):
            yield f"{name}: maximum {group.maximum}, it was {view.maxima[name]}"


def _kept(view: WorldView) -> Iterator[str]:
    disruptions = {f"{well_known.OF_DISRUPTION}{record.number}" for record in view.disruptions.values() if record.open}
    for node in view.cluster.store.sorted("nodes"):
        kept_for = str((node["metadata"].get("annotations") or {}).get(well_known.KEPT_FOR) or "")
        if kept_for.startswith(well_known.OF_DISRUPTION) and kept_for not in disruptions:
            yield f"{name_of(node)} is kept from Cluster Autoscaler for {kept_for}, which has ended"


DISRUPTIONS_EVENTUAL: tuple[tuple[Rule, Callable[[WorldView], Iterator[str]]], ...] = (
    (Rule.DISRUPTION, _disruptions),
    (Rule.RESTORED, _restored),
    (Rule.LIFTED, _kept),
)
