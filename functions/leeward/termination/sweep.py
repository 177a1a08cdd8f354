"""The minute sweeper: finishes what no Catch can finish, and looks where no event is sent.

Top-level time-outs, an operator's stop, data limits and runtime errors go uncaught, events are best effort, and a
function can die between two calls. So, once a minute: Nodes whose instances are gone lose our finalizer, before all
else; executions that should run but do not are started again, hooks of ours that nobody holds are claimed or answered,
marks without a record come off, new nodes get what they have to carry, and nodes that are unhealthy or were deleted are
claimed. Reading first and acting only on what is still true makes any number of sweeps the same as one."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta

from leeward.errors import LeewardError
from leeward.finalizer.keeping import keep_finalizers, let_go_of_the_gone
from leeward.model import keys
from leeward.model.node import Node, disruption_taint
from leeward.model.termination import Status, TerminationRecord, execution_name
from leeward.patience import patiently
from leeward.ports import Ports
from leeward.sync.labels import label_nodes
from leeward.termination.found import Found, apart
from leeward.termination.hooks import settle_hooks
from leeward.termination.pacing import budget_left, paced
from leeward.termination.sight import Sight
from leeward.termination.situation import WARMED
from leeward.termination.starting import start

SECOND_SIGHT = timedelta(minutes=10)

__all__ = ["Found", "sweep_once"]


def sweep_once(ports: Ports) -> Found:
    """One sweep over all clusters. A part that fails is named in `errors` and does not stop the others.

    Hooks come before everything that is done for one record after the other, which may take a storm's sweep to its
    time-out: a hook that has timed out is lost, what else is left over is done a minute later.
    """
    found = Found()
    nodes = {cluster: _nodes(cluster, ports, found) for cluster in ports.clusters.names()}
    records, running = _open_records(ports), _running(ports, found)
    sights = []
    for cluster in ports.clusters.names():
        with apart(cluster, found):
            sights.append(_look(cluster, nodes[cluster], records, ports))
    for sight in sights:
        settle_hooks(sight, running, ports, found)
    for record in records.values():
        with apart(record.instance, found):
            _revive(record, running, ports, found)
    for sight in sights:
        _sweep_cluster(sight, ports, found)
    return found


def _nodes(cluster: str, ports: Ports, found: Found) -> Mapping[str, Node] | None:
    """By instance, None while the API server is away. The first thing that is done with them is to let go of those that
    a dead instance has left behind, also in a cluster that is paused: nobody else can.
    """
    try:
        nodes = {node.instance_id: node for node in ports.clusters.kubernetes(cluster).nodes()}
    except LeewardError as error:
        found.errors.append(f"{cluster}: {type(error).__name__}: {error}")
        return None
    with apart(f"{cluster}: finalizers", found):
        found.let_go += let_go_of_the_gone(cluster, nodes, ports)
    return nodes


def _open_records(ports: Ports) -> Mapping[str, TerminationRecord]:
    """By instance. Each minute begins with another one, so that a sweep that dies early leaves no record behind for
    good. Where they cannot be read the sweep ends: what is under way would be taken for what nobody does.
    """
    names = patiently(ports.claims.open_instances, ports.clock)
    first = ports.clock.now().minute % len(names) if names else 0
    records = patiently(lambda: ports.claims.read_all(names), ports.clock) if names else {}
    ordered = [records[name] for name in (*names[first:], *names[:first]) if name in records]
    return {record.instance: record for record in ordered if record.status is Status.OPEN}


def _running(ports: Ports, found: Found) -> frozenset[str]:
    """Names of the open executions; none where they cannot be listed, and each is asked for then."""
    with apart("executions", found):
        return patiently(ports.executions.all_running, ports.clock)
    return frozenset()


def _revive(record: TerminationRecord, running: frozenset[str], ports: Ports, found: Found) -> None:
    """Start the execution of an open record again, unless it runs, rests after a failure, or waits for a budget."""
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
) -> Sight:
    return Sight(
        cluster=cluster,
        policies=patiently(lambda: ports.clusters.policies(cluster), ports.clock),
        groups=tuple(patiently(lambda: ports.groups.of_clusters([cluster]), ports.clock)),
        nodes=nodes,
        records=records,
    )


def _sweep_cluster(sight: Sight, ports: Ports, found: Found) -> None:
    """What is not a matter of minutes."""
    cluster, groups = sight.cluster, sight.selected
    with apart(f"{cluster}: upgrades", found):
        from leeward.upgrade.sweep import sweep_upgrades  # late: drains share this handler and start cold without it

        found.restored += sweep_upgrades(groups, ports)
    in_round: frozenset[str] | None = None
    with apart(f"{cluster}: rounds", found):
        from leeward.disruption.sweep import sweep_round  # late, as above

        in_round, begun = sweep_round(cluster, ports)
        found.restarted += [begun] if begun else []
    if sight.nodes is not None:
        _sweep_nodes(sight, sight.nodes, in_round, ports, found)


def _sweep_nodes(
    sight: Sight, nodes: Mapping[str, Node], in_round: frozenset[str] | None, ports: Ports, found: Found
) -> None:
    """What is done to nodes needs an API server that answers: without one nothing is ended. `in_round`: instances of
    the open disruption round, whose nodes carry our mark before they are claimed; None: that could not be read.
    """
    cluster = sight.cluster
    if not sight.policies.settings.paused:
        with apart(f"{cluster}: labels", found):
            found.labelled += label_nodes(cluster, sight.selected, nodes.values(), ports)
    keep_finalizers(sight, ports, found)
    with apart(f"{cluster}: kept nodes", found):
        if any(keys.KEPT_FOR in node.annotations for node in nodes.values()):
            from leeward.disruption.keeping import sweep_kept_for_rounds  # late, as above
            from leeward.upgrade.keeping import sweep_kept

            found.restored += sweep_kept(cluster, nodes.values(), ports)
            found.restored += sweep_kept_for_rounds(cluster, nodes.values(), ports)
    with apart(f"{cluster}: repair", found):
        from leeward.repair.scan import replace_unhealthy  # late, as above

        replace_unhealthy(sight, nodes, ports, found)
    if in_round is not None:
        marked = [node for name, node in nodes.items() if node.taken_out and name not in in_round]
        ours = [node for node in marked if not (node.is_foreign(ports.deployment) or _pooled(node, sight, ports))]
        _unmark_stale(ours, sight.records, ports, found, cluster)
    foreign = sorted((node for node in nodes.values() if node.is_foreign(ports.deployment)), key=lambda node: node.name)
    found.foreign += [f"{node.name}: {node.disrupted_by or 'no owner'}" for node in foreign]


def _pooled(node: Node, sight: Sight, ports: Ports) -> bool:
    """Whether a node that runs on in its warm pool keeps its taint: a group does not list such instances."""
    if sight.group_of(node.instance_id) is not None:
        return False
    found = ports.groups.lifecycle_of(node.instance_id)
    return found is not None and found[1].startswith(WARMED)


def _unmark_stale(
    marked: Iterable[Node], records: Mapping[str, TerminationRecord], ports: Ports, found: Found, cluster: str
) -> None:
    """Take the taint of this deployment off nodes without an open record, at second sight: fn interruption taints
    before it claims. Idempotent: a repeat finds no taint.
    """
    for node in _unclaimed(marked, records, ports):
        now = ports.clock.now()
        if ports.claims.once(f"stale-mark#{node.uid}", SECOND_SIGHT, now):
            continue
        ports.clusters.kubernetes(cluster).unmark(node, disruption_taint(ports.deployment))
        found.unmarked.append(node.name)


def _unclaimed(marked: Iterable[Node], records: Mapping[str, TerminationRecord], ports: Ports) -> Iterator[Node]:
    candidates = [node for node in marked if node.instance_id not in records]
    names = [node.instance_id for node in candidates]
    instances, claims = (ports.instances.describe(names), ports.claims.read_all(names)) if names else ({}, {})
    for node in candidates:
        instance, record = instances.get(node.instance_id), claims.get(node.instance_id)
        alive = instance is not None and instance.state == "running"
        if alive and (record is None or record.status is Status.CLOSED):
            yield node
