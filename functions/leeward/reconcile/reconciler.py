"""Minute reconciler: finishes work that no Catch can finish, and reads state for which no event is sent.

Top-level time-outs, an operator's stop, data limits and runtime errors go uncaught, events are best effort, and a
function can die between two calls. So, once a minute: Nodes whose instances are gone lose our finalizer, before all
else; executions that should run but do not are started again; hooks of ours without an open record are claimed or
answered; taints without a record are removed; new nodes get their labels and finalizers; nodes that are unhealthy or
were deleted are claimed. Each pass reads first and acts only on current state, so any number of passes equals one."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial

from leeward.errors import LeewardError
from leeward.isolation import Executor, attempt, in_threads
from leeward.model import well_known
from leeward.model.group import WARMED
from leeward.model.node import Node, disruption_taint
from leeward.model.termination import Status, TerminationRecord, execution_name
from leeward.ports import Ports
from leeward.ports.autoscaling import Groups
from leeward.ports.clock import Clock
from leeward.ports.executions import Executions
from leeward.ports.records import Claims
from leeward.reconcile.cluster_view import ClusterView
from leeward.reconcile.finalizers import keep_finalizers, let_go_of_the_gone
from leeward.reconcile.hooks import settle_hooks, settle_launches
from leeward.reconcile.maintenance_budget import budget_left, paced
from leeward.reconcile.records import read_records
from leeward.reconcile.result import ReconcileResult, apart
from leeward.retry import patiently
from leeward.sync.labels import label_nodes
from leeward.termination.execution import start
from leeward.termination.maximum_size import put_back

SECOND_SIGHT = timedelta(minutes=10)
CLUSTERS = 32  # at a time
NODES_SECONDS = 10.0  # for the nodes of a cluster and the finalizers of those that are gone
KUBERNETES_SECONDS = 25.0  # for everything else in a cluster in one pass, of the function's 55

__all__ = ["ReconcileResult", "reconcile_once"]


def reconcile_once(ports: Ports, each: Executor = in_threads) -> ReconcileResult:
    """Run one pass over all clusters, concurrently. A part that fails is named in `errors` and does not stop the
    others.

    Work that needs no API server does not wait for one: hooks are heartbeaten and executions started again while the
    nodes are read. Hooks come before everything that is done for one record after the other, which may take the pass to
    its time-out in a storm: a hook that has timed out is lost; other remaining work is done a minute later.
    """
    found = ReconcileResult()
    served = ports.clusters.names()
    records = attempt(lambda: _open_records(ports.clock, ports.claims, found))
    if isinstance(records, LeewardError):
        each(lambda cluster: _nodes(cluster, ports.for_seconds(NODES_SECONDS), found), served, CLUSTERS)
        raise records
    running = _running(ports.clock, ports.executions, found)
    strays = [record for record in records.values() if record.subject.cluster not in served]
    with apart("clusters that are not served any more", found):
        _revive_all(strays, running, ports, found)
    reconcilers = tuple(
        _ClusterReconciler(cluster=one, records=records, running=running, ports=ports) for one in served
    )
    each(lambda one: one.run(each), reconcilers, CLUSTERS)
    for one in reconcilers:
        found.add(one.found)
    return found


@dataclass(slots=True, kw_only=True)
class _ClusterReconciler:
    """Part of a pass for one cluster. `records`: the open ones of all clusters."""

    cluster: str
    records: Mapping[str, TerminationRecord]
    running: frozenset[str]
    ports: Ports
    found: ReconcileResult = field(default_factory=ReconcileResult)

    def run(self, each: Executor) -> None:
        """Do the work that needs AWS alone while the nodes are read, then the rest. Raises nothing."""
        with apart(self.cluster, self.found):
            seen: dict[str, Mapping[str, Node]] = {}
            view = self._sight()
            each(lambda part: part(), (partial(self._without_nodes, view), partial(self._read_nodes, seen)), 2)
            if view is not None:
                self._with_nodes(replace(view, nodes=seen.get(self.cluster)))

    def _sight(self) -> ClusterView | None:
        with apart(self.cluster, self.found):
            return _look(self.cluster, None, self.records, self.ports)
        return None

    def _without_nodes(self, view: ClusterView | None) -> None:
        """Settle hooks, then start executions again. Records are handled even if policies or groups are unreadable."""
        if view is not None:
            with apart(f"{self.cluster}: hooks", self.found):
                settle_hooks(view, self.running, self.ports, self.found)
        now = self.ports.clock.now()
        urgent = [record for record in self._own() if not paced(record, now)]
        _revive_all(urgent, self.running, self.ports, self.found)

    def _read_nodes(self, seen: dict[str, Mapping[str, Node]]) -> None:
        nodes = _nodes(self.cluster, self.ports.for_seconds(NODES_SECONDS), self.found)
        if nodes is not None:
            seen[self.cluster] = nodes

    def _with_nodes(self, view: ClusterView) -> None:
        ports, found = self.ports.for_seconds(KUBERNETES_SECONDS), self.found
        settle_launches(view, ports, found)
        now = ports.clock.now()
        _revive_all([record for record in self._own() if paced(record, now)], self.running, ports, found)
        _reconcile_cluster(view, ports, found)

    def _own(self) -> list[TerminationRecord]:
        return [record for record in self.records.values() if record.subject.cluster == self.cluster]


def _revive_all(
    records: Iterable[TerminationRecord], running: frozenset[str], ports: Ports, found: ReconcileResult
) -> None:
    for record in records:
        with apart(record.instance, found):
            _revive(record, running, ports, found)


def _nodes(cluster: str, ports: Ports, found: ReconcileResult) -> Mapping[str, Node] | None:
    """Read the nodes, by instance; None if the API server does not answer. Nodes that a dead instance has left behind
    lose our finalizer first, also in a cluster that is paused: no other controller can remove it.
    """
    nodes: Mapping[str, Node] | None = None
    with apart(cluster, found):
        nodes = {node.instance_id: node for node in ports.clusters.kubernetes(cluster).nodes()}
    if nodes is not None:
        with apart(f"{cluster}: finalizers", found):
            found.let_go += let_go_of_the_gone(cluster, nodes, ports, found.note)
    return nodes


def _open_records(clock: Clock, claims: Claims, found: ReconcileResult) -> Mapping[str, TerminationRecord]:
    """Read the open records, by instance. Each minute begins with another one, so that a pass that dies early never
    skips the same record for good. If they cannot be read the pass ends: terminations under way would be taken for
    unhandled ones.
    """
    names = patiently(claims.open_instances, clock)
    first = clock.now().minute % len(names) if names else 0
    records = read_records(names, clock, claims, found).read
    ordered = [records[name] for name in (*names[first:], *names[:first]) if name in records]
    return {record.instance: record for record in ordered if record.status is Status.OPEN}


def _running(clock: Clock, executions: Executions, found: ReconcileResult) -> frozenset[str]:
    """Return the names of the open executions; none if they cannot be listed, and each is then looked up on its own."""
    with apart("executions", found):
        return patiently(executions.all_running, clock)
    return frozenset()


def _revive(record: TerminationRecord, running: frozenset[str], ports: Ports, found: ReconcileResult) -> None:
    """Start the execution of an open record again, unless it runs, pauses after a failure, or waits for a budget."""
    now = ports.clock.now()
    if execution_name(record.instance, record.attempt) in running or record.times.get("retry", now) > now:
        return
    if ports.executions.running(record.instance, record.attempt):  # begun after the list was made
        return
    if paced(record, now) and not budget_left(record, ports, found, now):
        found.paced.append(record.instance)
        return
    start(record, ports)
    found.restarted.append(record.instance)


def _look(
    cluster: str, nodes: Mapping[str, Node] | None, records: Mapping[str, TerminationRecord], ports: Ports
) -> ClusterView:
    return ClusterView(
        cluster=cluster,
        policies=patiently(lambda: ports.clusters.policies(cluster), ports.clock),
        groups=tuple(patiently(lambda: ports.groups.of_clusters([cluster]), ports.clock)),
        nodes=nodes,
        records=records,
    )


def _reconcile_cluster(view: ClusterView, ports: Ports, found: ReconcileResult) -> None:
    """Do the work of a cluster that is not urgent within minutes."""
    cluster = view.cluster
    with apart(f"{cluster}: upgrades", found):
        from leeward.upgrade.reconciler import (
            reconcile_upgrades,  # late: drains share this handler and start cold without it
        )

        found.restored += reconcile_upgrades(view.groups, ports, found.note)
    with apart(f"{cluster}: maximum sizes", found):
        _put_back_maxima(view, ports, found)
    in_disruption: frozenset[str] | None = None
    with apart(f"{cluster}: runs", found):
        from leeward.disruption.reconciler import reconcile_disruption  # late, as above

        in_disruption, begun = reconcile_disruption(cluster, ports)
        found.restarted += [begun] if begun else []
    if view.nodes is not None:
        _reconcile_nodes(view, view.nodes, in_disruption, ports, found)


def _put_back_maxima(view: ClusterView, ports: Ports, found: ReconcileResult) -> None:
    """Put back MaxSize of groups that replacements have raised, also of those that no policy selects any more. One read
    serves a hundred groups.
    """
    for item in ports.maxima.read_all(group.name for group in view.groups).values():
        if not item.active:
            continue
        from leeward.upgrade.lease import held  # late, as above

        with apart(item.group, found):
            if put_back(
                item,
                view.cluster,
                ports,
                lambda one: one.ended is None and held(one, ports.upgrade_executions, ports.managed_upgrade_executions),
            ):
                found.restored.append(item.group)


def _reconcile_nodes(
    view: ClusterView,
    nodes: Mapping[str, Node],
    in_disruption: frozenset[str] | None,
    ports: Ports,
    found: ReconcileResult,
) -> None:
    """Reconcile the nodes. This needs an API server that answers: without one nothing is ended. `in_disruption`:
    instances of the open disruption run, whose nodes carry our taint before they are claimed; None: the run could not
    be read.
    """
    cluster = view.cluster
    if not view.policies.settings.paused:
        with apart(f"{cluster}: labels", found):
            found.labelled += label_nodes(cluster, view.selected, nodes.values(), ports, found.note)
    with apart(f"{cluster}: finalizers", found):
        keep_finalizers(view, ports, found)
    with apart(f"{cluster}: kept nodes", found):
        if any(well_known.KEPT_FOR in node.annotations for node in nodes.values()):
            from leeward.disruption.scale_down_protection import unprotect_after_disruptions  # late, as above
            from leeward.upgrade.scale_down_protection import unprotect_after_upgrades

            found.restored += unprotect_after_upgrades(cluster, nodes.values(), ports)
            found.restored += unprotect_after_disruptions(cluster, nodes.values(), ports)
    with apart(f"{cluster}: repair", found):
        from leeward.reconcile.repair import replace_unhealthy  # late, as above

        replace_unhealthy(view, nodes, ports, found)
    if in_disruption is not None:
        with apart(f"{cluster}: stale taints", found):
            marked = [node for name, node in nodes.items() if node.taken_out and name not in in_disruption]
            ours = [node for node in marked if not node.is_foreign(ports.deployment)]
            _unmark_stale(ours, view, ports, found)
    foreign = sorted((node for node in nodes.values() if node.is_foreign(ports.deployment)), key=lambda node: node.name)
    found.foreign += [f"{node.name}: {node.disrupted_by or 'no owner'}" for node in foreign]


def _pooled(node: Node, view: ClusterView, groups: Groups) -> bool:
    """Return whether a node that runs on in its warm pool keeps its taint: a group does not list such instances."""
    if view.group_of(node.instance_id) is not None:
        return False
    member = groups.lifecycle_of(node.instance_id)
    return member is not None and member[1].startswith(WARMED)


def _unmark_stale(marked: Iterable[Node], view: ClusterView, ports: Ports, found: ReconcileResult) -> None:
    """Remove the taint of this deployment from nodes without an open record, at the second observation: fn interruption
    may be about to claim them. Idempotent: a repeat finds no taint.
    """
    for node in _unclaimed(marked, view.records, ports, found):
        with apart(node.name, found):
            if _pooled(node, view, ports.groups):
                continue
            if ports.claims.once(f"stale-mark#{node.uid}", SECOND_SIGHT, ports.clock.now()):
                continue
            ports.clusters.kubernetes(view.cluster).unmark(node, disruption_taint(ports.deployment))
            found.unmarked.append(node.name)


def _unclaimed(
    marked: Iterable[Node], records: Mapping[str, TerminationRecord], ports: Ports, found: ReconcileResult
) -> Iterator[Node]:
    candidates = [node for node in marked if node.instance_id not in records]
    names = [node.instance_id for node in candidates]
    instances = ports.instances.describe(names) if names else {}
    claims = read_records(names, ports.clock, ports.claims, found)
    for node in candidates:
        instance, record = instances.get(node.instance_id), claims.read.get(node.instance_id)
        if node.instance_id in claims.unreadable:
            continue
        alive = instance is not None and instance.state == "running"
        if alive and (record is None or record.status is Status.CLOSED):
            yield node
