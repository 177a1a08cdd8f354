"""Minute reconciler: finishes work that no Catch can finish, and reads state for which no event is sent.

Top-level time-outs, an operator's stop, data limits and runtime errors go uncaught, events are best effort, and a
function can die between two calls. So, once a minute, the passes below run over each cluster. Each reads first and acts
only on current state, so any number of passes equals one. A pass that fails is named in `errors` and stops no other."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from leeward.cluster.facets import NOT_LOADED, Facet, Known, load
from leeward.cluster.state import ClusterState
from leeward.errors import LeewardError
from leeward.isolation import Executor, attempt, in_threads
from leeward.model import well_known
from leeward.model.node import Node
from leeward.model.termination import TerminationRecord
from leeward.model.zonal_shift import ZonalShifts
from leeward.ports import Ports
from leeward.reconcile.executions import can_wait, open_executions, open_records, restart
from leeward.reconcile.finalizers import keep_finalizers, release_nodes_without_instances
from leeward.reconcile.hooks import answer_switched_off_launches, note_attention, settle_hooks, settle_launches
from leeward.reconcile.leftovers import (
    keep_pauses,
    put_back_maximum_sizes,
    remove_stale_taints,
    report_duplicates,
    report_foreign_taints,
)
from leeward.reconcile.repair import note_first_seen, replace_unhealthy
from leeward.reconcile.result import ReconcileResult
from leeward.reconcile.scheduled_events import claim_scheduled_events, drain_capacity_blocks
from leeward.reconcile.zones import announce_shifts, poll_shifts, work_on_zones
from leeward.retry import retry
from leeward.sync.labels import annotate_nodes, label_nodes

CLUSTERS = 32  # at a time
NODES_SECONDS = 10.0  # for the nodes of a cluster and the finalizers of those that are gone
KUBERNETES_SECONDS = 25.0  # for everything else in a cluster in one pass, of the function's 55

Pass = Callable[[ClusterState, Ports, ReconcileResult], None]


def _restore_after_upgrades(state: ClusterState, ports: Ports, result: ReconcileResult) -> None:
    from leeward.upgrade.reconciler import reconcile_upgrades  # late: INIT imports it after the handler

    result.restored += reconcile_upgrades(state.groups.values(), ports, result.note)


def _label(state: ClusterState, ports: Ports, result: ReconcileResult) -> None:
    groups = [group for group in state.selected if not state.policies.pauses.everything(group.name)]
    if groups:
        result.labelled += label_nodes(state.cluster, groups, state.nodes, ports.clusters, ports.instances, result.note)
        annotate_nodes(state.cluster, groups, state.nodes, state.policies, ports.clusters, result.note)


def _give_back_after_upgrades(state: ClusterState, ports: Ports, result: ReconcileResult) -> None:
    if any({well_known.CORDONED_FOR, well_known.EXCLUDED_FOR} & node.annotations.keys() for node in state.nodes):
        from leeward.upgrade.reconciler import give_back_after_upgrades  # late, as above

        result.restored += give_back_after_upgrades(state.nodes, ports)


def _unprotect_from_scale_down(state: ClusterState, ports: Ports, result: ReconcileResult) -> None:
    if any(well_known.KEPT_FOR in node.annotations for node in state.nodes):
        from leeward.disruption.replacements import unprotect_after_disruptions  # late, as above
        from leeward.upgrade.reconciler import unprotect_after_upgrades

        result.restored += unprotect_after_upgrades(state.cluster, state.nodes, ports)
        result.restored += unprotect_after_disruptions(state.cluster, state.nodes, ports)


# While the nodes are read: a hook that times out is lost, so no heartbeat waits for an API server.
WHILE_NODES_ARE_READ: Mapping[str, Pass] = {
    "hooks": settle_hooks,
    "launches, handling off": answer_switched_off_launches,
    "attention": note_attention,
}
# Also where the API server does not answer.
WITHOUT_NODES: Mapping[str, Pass] = {
    "capacity blocks": drain_capacity_blocks,
    "scheduled events": claim_scheduled_events,
    "upgrades": _restore_after_upgrades,
    "maximum sizes": put_back_maximum_sizes,
    "pauses": keep_pauses,
}
# Only with an API server that answers: without one no node is ended.
OVER_NODES: Mapping[str, Pass] = {
    "labels": _label,
    "finalizers": keep_finalizers,
    "scale-down protection": _unprotect_from_scale_down,
    "first sights": note_first_seen,
    "cordons of upgrades": _give_back_after_upgrades,
    "repair": replace_unhealthy,
    "zones": work_on_zones,
    "stale taints": remove_stale_taints,
    "taints of other deployments": report_foreign_taints,
    "duplicate nodes": report_duplicates,
    "zonal shifts": announce_shifts,
}


def reconcile_once(ports: Ports, each: Executor = in_threads) -> ReconcileResult:
    """Run every pass over all clusters, concurrently. Raises what the table raises if the open records cannot be read:
    Nodes whose instances are gone lose our finalizer even then, because no other controller can remove it.
    """
    result = ReconcileResult()
    clusters = ports.clusters.names()
    records = attempt(lambda: open_records(ports.clock, ports.claims, result))
    if isinstance(records, LeewardError):
        each(lambda cluster: _read_nodes(cluster, ports.of_cluster(cluster), result), clusters, CLUSTERS)
        raise records
    executions = open_executions(ports.clock, ports.executions, result)
    with result.isolate("clusters that are not served any more"):
        restart([r for r in records.values() if r.subject.cluster not in clusters], executions, ports, result)
    reconcilers = tuple(
        _ClusterReconciler(cluster=name, records=records, executions=executions, ports=ports.of_cluster(name))
        for name in clusters
    )
    each(lambda reconciler: reconciler.run(each), reconcilers, CLUSTERS)
    for reconciler in reconcilers:
        result.add(reconciler.result)
    return result


@dataclass(slots=True, kw_only=True)
class _ClusterReconciler:
    """Passes over one cluster. `records`: the open ones of all clusters."""

    cluster: str
    records: Mapping[str, TerminationRecord]
    executions: Facet[frozenset[str]]
    ports: Ports
    result: ReconcileResult = field(default_factory=ReconcileResult)
    nodes: Facet[tuple[Node, ...]] = NOT_LOADED
    shifts: Facet[ZonalShifts] = NOT_LOADED

    def run(self, each: Executor) -> None:
        """Run the passes that need AWS alone while the nodes are read, then the others. Raises nothing.

        Hooks come before all that is done for one record after the other, which may take the function to its time-out
        in a storm: other remaining work is done a minute later.
        """
        with self.result.isolate(self.cluster):
            state = load(self._load_state, partial(self.result.note, self.cluster))
            parts: tuple[Callable[[], None], ...] = (partial(self._while_nodes_are_read, state), self._set_nodes)
            each(lambda part: part(), (*parts, self._set_shifts), 3)
            if isinstance(state, Known):
                known = replace(state.value, node_list=self.nodes, shifts=self.shifts)
                self._with_nodes(known, self.ports.for_seconds(KUBERNETES_SECONDS))

    def _load_state(self) -> ClusterState:
        """Load policies and groups; the nodes follow. Raises the ports' errors."""
        ports = self.ports
        policies = retry(lambda: ports.clusters.policies(self.cluster), ports.clock)
        groups = retry(lambda: ports.groups.of_clusters([self.cluster]), ports.clock)
        return ClusterState(
            cluster=self.cluster,
            policies=policies,
            groups={group.name: group for group in groups},
            claims=Known(frozenset(self.records)),
            records=Known(self.records),
            executions=self.executions,
        )

    def _while_nodes_are_read(self, state: Facet[ClusterState]) -> None:
        """Settle hooks, then start executions again, which is done even if policies or groups are unreadable."""
        if isinstance(state, Known):
            self._run(WHILE_NODES_ARE_READ, state.value, self.ports)
        self._restart(self.ports, deferrable=False)

    def _set_nodes(self) -> None:
        self.nodes = _read_nodes(self.cluster, self.ports, self.result)

    def _set_shifts(self) -> None:
        what = f"{self.cluster}: zonal shifts"
        self.shifts = load(lambda: poll_shifts(self.cluster, self.ports, self.result), partial(self.result.note, what))

    def _with_nodes(self, state: ClusterState, ports: Ports) -> None:
        self._run({"launches": settle_launches}, state, ports)
        self._restart(ports, deferrable=True)
        self._run(WITHOUT_NODES, state, ports)
        disrupted = load(lambda: self._resume_disruption(ports), partial(self.result.note, f"{self.cluster}: runs"))
        if isinstance(state.node_list, Known):
            self._run(OVER_NODES, replace(state, disrupted=disrupted), ports)

    def _resume_disruption(self, ports: Ports) -> frozenset[str]:
        """Start the execution of an open disruption run again if it died; return the instances of the run."""
        from leeward.disruption.completion import reconcile_disruption  # late, as above

        instances, execution = reconcile_disruption(self.cluster, ports)
        self.result.restarted += [execution] if execution else []
        return instances

    def _restart(self, ports: Ports, *, deferrable: bool) -> None:
        """Start executions again: those that can wait for a budget, or all others."""
        now = ports.clock.now()
        mine = [record for record in self.records.values() if record.subject.cluster == self.cluster]
        restart([record for record in mine if can_wait(record, now) is deferrable], self.executions, ports, self.result)

    def _run(self, passes: Mapping[str, Pass], state: ClusterState, ports: Ports) -> None:
        for name, reconcile in passes.items():
            with self.result.isolate(f"{self.cluster}: {name}"):
                reconcile(state, ports, self.result)


def _read_nodes(cluster: str, ports: Ports, result: ReconcileResult) -> Facet[tuple[Node, ...]]:
    """Read the nodes. Nodes that a dead instance has left behind lose our finalizer first, also in a cluster that is
    paused: no other controller can remove it.
    """
    ports = ports.for_seconds(NODES_SECONDS)
    nodes = load(lambda: tuple(ports.clusters.kubernetes(cluster).nodes()), partial(result.note, cluster))
    if isinstance(nodes, Known):
        with result.isolate(f"{cluster}: finalizers"):
            release_nodes_without_instances(cluster, nodes.value, ports, result)
    return nodes
