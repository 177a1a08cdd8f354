"""`leeward uninstall --cluster NAME`: remove everything that Leeward has put on a cluster, before its stack is deleted.

Decides what is Leeward's. One patch removes everything from a node, so that no half of it stays. The order is nodes,
then hooks: a finalizer that is left behind keeps a Node forever, a hook only until its time-out."""

import argparse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from leeward.cli.confirmation import add_yes, check_can_ask, confirm
from leeward.cli.context import context_of
from leeward.cli.output import emit
from leeward.cli.tables import Table
from leeward.errors import AccessDeniedError, InvalidPolicyError, TerminalError
from leeward.model import well_known
from leeward.model.group import Group, LifecycleHook
from leeward.model.instance import cluster_of
from leeward.model.node import Node, stripped
from leeward.model.termination import Status
from leeward.ports import Ports
from leeward.ports.kubernetes import Clusters

DESCRIPTION = """Removes everything that Leeward has put on the cluster: taints, cordons, labels, annotations and
finalizers of nodes, lifecycle hooks of groups. Pause the cluster a minute before (leeward pause --all), or all of it
would come back. Nodes and groups with work under way are left and named. It can be run again at any time. With
--snapshot it only prints the plan."""
COLUMNS = ("OBJECT", "REMOVED")
NOT_PAUSED = "it is not paused: everything would come back within minutes (leeward pause --all --cluster {})"


@dataclass(slots=True, kw_only=True)
class Removal:
    """Result of a removal. `nodes`: what is removed from each, by name; `hooks`: (group, hook); `left`: (what, why),
    which makes it incomplete; `done` False where the removal is only reported.
    """

    done: bool
    nodes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    hooks: list[tuple[str, str]] = field(default_factory=list)
    left: list[tuple[str, str]] = field(default_factory=list)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the dry run, and the consent."""
    add_yes(parser)
    parser.add_argument("--dry-run", action="store_true", help="only print what would be removed")


def run(arguments: argparse.Namespace) -> int:
    """Remove and report; return 1 where an object had to be left."""
    dry_run = arguments.dry_run or arguments.snapshot is not None
    arguments.view.check(COLUMNS)
    if not dry_run and arguments.cluster is not None:
        check_can_ask(arguments, "uninstall", "removes Leeward from nodes and groups (--dry-run shows what)")
    context = context_of(arguments, "uninstall")
    if not dry_run and not arguments.yes:
        confirm(arguments, effects_of(remove(context.ports, context.cluster, dry_run=True)))
    removal = remove(context.ports, context.cluster, dry_run=dry_run)
    emit(to_json(removal), arguments.view, lambda: _report(removal))
    return 1 if removal.left else 0


def effects_of(removal: Removal) -> list[str]:
    """Return what a removal will take off, a line each, and what it leaves."""
    nodes = [f"remove from node {name}: {', '.join(what)}" for name, what in removal.nodes.items()]
    hooks = [f"remove from group {group}: lifecycle hook {hook}" for group, hook in removal.hooks]
    left = [f"leave {what}: {why}" for what, why in removal.left]
    return [*nodes, *hooks, *left] or ["nothing of Leeward is there"]


def to_json(removal: Removal) -> dict[str, Any]:
    """Return the document that `docs/schema/uninstall.json` describes."""
    return {
        "done": removal.done,
        "nodes": [{"node": name, "removed": list(what)} for name, what in removal.nodes.items()],
        "hooks": [{"group": group, "hook": hook} for group, hook in removal.hooks],
        "left": [{"what": what, "why": why} for what, why in removal.left],
    }


def _report(removal: Removal) -> list[Table | str]:
    title = "removed" if removal.done else "would be removed"
    table = Table(COLUMNS, title=title, empty="nothing of Leeward is there")
    for name, what in removal.nodes.items():
        for one in what:
            table.add(f"node/{name}", one)
    for group, hook in removal.hooks:
        table.add(f"autoscalinggroup/{group}", f"lifecycle hook {hook}")
    if not table.rows:
        table.title = ""
    return [table, *(f"left: {what}: {why}" for what, why in removal.left)]


def remove(ports: Ports, cluster: str, *, dry_run: bool) -> Removal:
    """Find what is Leeward's and remove it unless it is a dry run. A repeated call finds what was left. Ports of no
    deployment (a folder) show what any deployment has put there; without `cluster` all of a folder's groups count.
    """
    kubernetes = ports.clusters.kubernetes(cluster)
    nodes = {node.name: node for node in kubernetes.nodes()}
    found = ports.groups.of_clusters([cluster])
    groups = [group for group in found if not cluster or cluster_of(group.tags, [cluster])]
    hooks = {group.name: ports.groups.hooks(group.name) for group in groups}
    removal = Removal(
        done=not dry_run, nodes=_on_nodes(nodes.values(), ports.deployment), hooks=list(_on_groups(groups, hooks))
    )
    if ports.deployment:
        _keep(removal, nodes, groups, ports, cluster)
    if removal.done:
        for name in removal.nodes:
            kubernetes.strip(nodes[name], ports.deployment)
        for group, hook in removal.hooks:
            ports.groups.delete_hook(group=group, hook=hook)
    return removal


def _keep(removal: Removal, nodes: Mapping[str, Node], groups: Iterable[Group], ports: Ports, cluster: str) -> None:
    """Move to `left` what another deployment has put there and what is still at work; everything while the cluster is
    not paused.
    """
    removal.left += [
        (name, f"deployment {node.disrupted_by or '?'} is terminating it")
        for name, node in nodes.items()
        if node.is_foreign(ports.deployment)
    ]
    if not _paused(ports.clusters, cluster) and (removal.nodes or removal.hooks):
        removal.done = False
        removal.left.append((f"cluster {cluster}", NOT_PAUSED.format(cluster)))
    _leave(removal, nodes, dict(_at_work(ports, cluster, groups)))


def things_of(node: Node, deployment: str) -> tuple[str, ...]:
    """Return Leeward's settings on the node, each with kind and name. `deployment` empty: those of every deployment."""
    bare = stripped(node, deployment or node.disrupted_by or "")
    found = [f"finalizer {name}" for name in node.finalizers if name not in bare.finalizers]
    found += [f"taint {taint.key}" for taint in node.taints if taint not in bare.taints]
    found += ["cordon"] if node.unschedulable and not bare.unschedulable else []
    found += [f"label {key}" for key in sorted(node.labels.keys() - bare.labels.keys())]
    found += [f"annotation {key}" for key in sorted(node.annotations.keys() - bare.annotations.keys())]
    return tuple(found)


def _on_nodes(nodes: Iterable[Node], deployment: str) -> dict[str, tuple[str, ...]]:
    found = {node.name: things_of(node, deployment) for node in sorted(nodes, key=lambda node: node.name)}
    return {name: things for name, things in found.items() if things}


def _on_groups(groups: Iterable[Group], hooks: Mapping[str, Sequence[LifecycleHook]]) -> Iterator[tuple[str, str]]:
    """Yield the hooks that fn sync created; hooks of others that notify Leeward are theirs to delete."""
    for group in sorted(groups, key=lambda group: group.name):
        for hook in hooks.get(group.name, ()):
            if hook.name == well_known.TERMINATE_HOOK and hook.metadata == well_known.HOOK_MARK:
                yield group.name, hook.name


def _paused(clusters: Clusters, cluster: str) -> bool:
    """Return whether the cluster is paused with --all. One without settings (any more) is: Leeward does not act on
    it.
    """
    try:
        return bool(clusters.policies(cluster).pauses.everything())
    except InvalidPolicyError:
        return True


def _leave(removal: Removal, nodes: Mapping[str, Node], at_work: Mapping[str, str]) -> None:
    """Move to `left` the objects that Leeward still works on: nodes by instance id, groups by name."""
    for name in [name for name in removal.nodes if nodes[name].instance_id in at_work]:
        del removal.nodes[name]
        removal.left.append((f"node {name}", at_work[nodes[name].instance_id]))
    for group, hook in [pair for pair in removal.hooks if pair[0] in at_work]:
        removal.hooks.remove((group, hook))
        removal.left.append((f"group {group}", at_work[group]))


def _at_work(ports: Ports, cluster: str, groups: Iterable[Group]) -> Iterator[tuple[str, str]]:
    """Yield (instance or group, reason). Without a table the stack is gone, and with it every execution."""
    from leeward.upgrade.run import is_held  # late: the other verbs start without it

    try:
        for instance, record in ports.claims.read_all(ports.claims.open_instances()).items():
            if record.status is Status.OPEN and record.subject.cluster == cluster:
                yield instance, "a termination of it is under way: run this again when it has ended"
                if record.subject.group:
                    yield record.subject.group, f"{instance} of it is being terminated: run this again afterwards"
        for group in groups:
            upgrade = ports.upgrades.read(group.name)
            if upgrade is not None and is_held(upgrade, ports.upgrade_executions, ports.managed_upgrade_executions):
                yield group.name, f"upgrade {upgrade.execution} works on it: abort it, or wait until it has ended"
    except AccessDeniedError:
        raise
    except TerminalError:
        return
