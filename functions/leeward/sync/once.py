"""One run of fn sync: hooks on groups, labels on nodes, facts in the table.

What fails is named and stops nothing else."""

from dataclasses import dataclass, field

from leeward.errors import LeewardError
from leeward.model.group import Group
from leeward.model.node import Node
from leeward.policy.document import ClusterPolicies
from leeward.policy.selection import policy_for
from leeward.ports import Ports
from leeward.sync.facts import InUse, keep_facts
from leeward.sync.hooks import left_over_hook, missing_hook
from leeward.sync.labels import label_nodes


@dataclass(slots=True)
class Synced:
    """What one run did. `errors` make the run fail: nodes would be lost undrained. `warnings` do not: what was written
    down before is used, and says its age.
    """

    hooks: list[str] = field(default_factory=list)
    hooks_taken_off: list[str] = field(default_factory=list)
    labelled: list[str] = field(default_factory=list)
    facts: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, list[str]]:
        """For the log and for whoever called."""
        return {
            "hooksPut": self.hooks,
            "hooksTakenOff": self.hooks_taken_off,
            "nodesLabelled": self.labelled,
            "factsKept": self.facts,
            "warnings": self.warnings,
            "errors": self.errors,
        }


def sync_once(ports: Ports) -> Synced:
    """Every cluster, each apart from the others."""
    synced = Synced()
    for cluster in ports.clusters.names():
        try:
            policies = ports.clusters.policies(cluster)
            groups = tuple(ports.groups.of_clusters([cluster]))
        except LeewardError as error:
            synced.errors.append(f"{cluster}: {error}")
            continue
        _put_hooks(groups, policies, ports, synced)
        nodes = _nodes(cluster, ports, synced)
        _label(cluster, groups, nodes or (), policies, ports, synced)
        kept, failures = keep_facts(InUse(cluster=cluster, policies=policies, groups=groups, nodes=nodes), ports)
        synced.facts += [f"{cluster}/{kind.value}" for kind in kept]
        synced.warnings += failures
    return synced


def _put_hooks(groups: tuple[Group, ...], policies: ClusterPolicies, ports: Ports, synced: Synced) -> None:
    """Put our terminate hook where it is missing, take it off where nobody would answer it. PutLifecycleHook twice is
    one hook, and so is DeleteLifecycleHook none.
    """
    for group in groups:
        try:
            hooks = ports.groups.hooks(group.name)
            hook = missing_hook(group, hooks, policies, ports.queue_arns)
            if hook is not None:
                ports.groups.put_hook(hook, default_result=hook.default)
                synced.hooks.append(group.name)
            left = left_over_hook(group, hooks, policies)
            if left is not None:
                ports.groups.delete_hook(group=group.name, hook=left.name)
                synced.hooks_taken_off.append(group.name)
        except LeewardError as error:
            synced.errors.append(f"{group.name}: {error}")


def _nodes(cluster: str, ports: Ports, synced: Synced) -> tuple[Node, ...] | None:
    """None when the API server does not answer: hooks and prices do not need it."""
    try:
        return tuple(ports.clusters.kubernetes(cluster).nodes())
    except LeewardError as error:
        synced.warnings.append(f"{cluster}: nodes: {error}")
        return None


def _label(
    cluster: str,
    groups: tuple[Group, ...],
    nodes: tuple[Node, ...],
    policies: ClusterPolicies,
    ports: Ports,
    synced: Synced,
) -> None:
    if policies.settings.paused:
        return
    selected = [group for group in groups if policy_for(policies.policies, group.name, group.tags) is not None]
    try:
        synced.labelled += label_nodes(cluster, selected, nodes, ports)
    except LeewardError as error:
        synced.warnings.append(f"{cluster}: labels: {error}")
