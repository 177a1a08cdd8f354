"""Single run of fn sync: hooks on groups, labels on nodes, facts in the table.

A failure is named and stops nothing else."""

from dataclasses import dataclass, field
from functools import partial

from leeward.errors import LeewardError
from leeward.isolation import Executor, in_threads, isolate_errors
from leeward.model.facts import FactKind
from leeward.model.group import Group
from leeward.model.node import Node
from leeward.policy.document import ClusterPolicies
from leeward.ports import Ports
from leeward.ports.compute import Instances
from leeward.ports.kubernetes import Clusters
from leeward.sync.facts import InUse, keep_facts, note_error
from leeward.sync.hooks import left_over_hook, missing_hook
from leeward.sync.labels import annotate_nodes, label_nodes

CLUSTERS = 8  # at a time
KUBERNETES_SECONDS = 40.0  # for one cluster, of the function's 120


@dataclass(slots=True)
class Synced:
    """Result of one run."""

    hooks: list[str] = field(default_factory=list)
    hooks_taken_off: list[str] = field(default_factory=list)
    labelled: list[str] = field(default_factory=list)
    facts: list[str] = field(default_factory=list)
    out_of_date: list[tuple[str, FactKind]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)  # they do not: the earlier facts are used, and show their age
    errors: list[str] = field(default_factory=list)  # they make the run fail: nodes would be lost undrained

    def add(self, other: "Synced") -> None:
        """Add the result of another cluster."""
        for name in self.__slots__:
            getattr(self, name).extend(getattr(other, name))

    def to_json(self) -> dict[str, list[str]]:
        """Return the result as a document for the log and for the caller."""
        return {
            "hooksPut": self.hooks,
            "hooksTakenOff": self.hooks_taken_off,
            "nodesLabelled": self.labelled,
            "factsKept": self.facts,
            "factsOutOfDate": [f"{cluster}/{kind.value}" for cluster, kind in self.out_of_date],
            "warnings": self.warnings,
            "errors": self.errors,
        }


def sync_once(ports: Ports, each: Executor = in_threads) -> Synced:
    """Sync every cluster, concurrently: hooks, which need no API server, come first in each."""
    synced = Synced()
    for part in each(
        lambda cluster: _sync_cluster(cluster, ports.of_cluster(cluster)), ports.clusters.names(), CLUSTERS
    ):
        synced.add(part)
    return synced


def _sync_cluster(cluster: str, ports: Ports) -> Synced:
    synced = Synced()
    with isolate_errors(lambda error: synced.errors.append(f"{cluster}: {error}")):
        policies = ports.clusters.policies(cluster)
        groups = tuple(ports.groups.of_clusters([cluster]))
        _put_hooks(groups, policies, ports, synced)
        bounded = ports.for_seconds(KUBERNETES_SECONDS)
        nodes = _nodes(cluster, bounded.clusters, synced)
        used = InUse(cluster=cluster, policies=policies, groups=groups, nodes=nodes)
        _label(used, bounded.clusters, bounded.instances, synced)
        kept = keep_facts(used, bounded)
        synced.facts += [f"{cluster}/{kind.value}" for kind in kept.kinds]
        synced.out_of_date += [(cluster, kind) for kind in kept.out_of_date]
        synced.warnings += kept.failures
    return synced


def _put_hooks(groups: tuple[Group, ...], policies: ClusterPolicies, ports: Ports, synced: Synced) -> None:
    """Put our terminate hook where it is missing, delete it where no execution would answer it. PutLifecycleHook twice
    gives one hook, DeleteLifecycleHook twice none.
    """
    for group in groups:
        with isolate_errors(partial(note_error, synced.errors, group.name)):
            hooks = ports.groups.hooks(group.name)
            hook = missing_hook(group, hooks, policies, ports.queue_arns, ports.hook_mark)
            if hook is not None:
                ports.groups.put_hook(hook, default_result=hook.default)
                synced.hooks.append(group.name)
            left = left_over_hook(group, hooks, policies, ports.hook_mark)
            if left is not None:
                ports.groups.delete_hook(group=group.name, hook=left.name)
                synced.hooks_taken_off.append(group.name)


def _nodes(cluster: str, clusters: Clusters, synced: Synced) -> tuple[Node, ...] | None:
    """Read the nodes, or return None if the API server does not answer: hooks and prices do not need it."""
    with isolate_errors(partial(note_error, synced.warnings, f"{cluster}: nodes")):
        return tuple(clusters.kubernetes(cluster).nodes())
    return None


def _label(used: InUse, clusters: Clusters, instances: Instances, synced: Synced) -> None:
    cluster, nodes, policies = used.cluster, used.nodes or (), used.policies
    selected = [
        group for group in used.groups if not policies.pauses.everything(group.name) and policies.policy_of(group)
    ]

    def note(node: str, error: LeewardError) -> None:
        note_error(synced.warnings, f"{cluster}: labels of {node}", error)

    with isolate_errors(partial(note_error, synced.warnings, f"{cluster}: labels")):
        synced.labelled += label_nodes(cluster, selected, nodes, clusters, instances, note)
    annotate_nodes(cluster, selected, nodes, policies, clusters, note)
