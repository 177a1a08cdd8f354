"""Rule about the nodes that nothing urgent asks for: together no more with pods than maxUnavailable and the budgets
for upgrades allow, whatever cause takes them.

Disruption runs are judged by `disruption_rules.Spent`, evacuations and shifts by `zone_rules`."""

from collections.abc import Iterator, Sequence
from math import ceil

from leeward.errors import InvalidInputError
from leeward.model import well_known
from leeward.model.group import Group
from leeward.model.times import as_instant
from leeward.policy.document import Budget, DisruptionReason, NodePolicy
from leeward.upgrade.surge.sizes import parallelism
from local.cluster.objects import Obj, annotations_of, controller_of, name_of
from simulation.disruption_rules import of_open_disruptions
from simulation.facts import group_of
from simulation.node_instances import instance_behind
from simulation.unasked_nodes import Unasked
from simulation.view import WorldView

DECIDED = 900.0  # seconds: nodes chosen by the policy of before drain so long
UNSEEN = 15.0  # seconds before the taint: a pod that is bound meanwhile was not there when the drain was decided
ZONE = "topology.kubernetes.io/zone"


class Pace:
    """Pace of all causes that are not urgent, one object for each run."""

    def __init__(self, unasked: Unasked) -> None:
        self._unasked = unasked
        self._first: dict[str, int] = {}  # group -> its size at the beginning
        self._tainted: dict[str, float] = {}  # node -> when it got our taint last

    def begin(self, view: WorldView) -> None:
        """Record the sizes of the groups."""
        self._first = {name: group.desired for name, group in view.groups.items()}

    def check(self, view: WorldView) -> Iterator[str]:
        """Yield groups and policies with too many such nodes, when another node gets our taint."""
        if not self._unasked.came:
            return
        came, self._unasked.came = self._unasked.came, []
        self._tainted.update(dict.fromkeys(came, view.now))
        if view.now - view.rewritten >= DECIDED:
            yield from dict.fromkeys(self._too_many(came, view))  # two nodes tainted in one event are one violation

    def _too_many(self, came: Sequence[str], view: WorldView) -> Iterator[str]:
        for name in came:
            node = self._unasked.under.get(name)
            group = None if node is None else group_of(view, instance_behind(node))
            if node is None or group is None or group.nodegroup or not self._counts(node, group, view):
                continue
            policy = view.policies.policy_of(group)
            held = list(self._with_pods(group, view))
            if len(held) > (most := self._most(group, policy, view)):
                yield f"{group.name}: {_names(held)} at once, maxUnavailable is {most}"
            if policy is not None:
                yield from self._over_budget(policy, node, view)

    def _counts(self, node: Obj, group: Group, view: WorldView) -> bool:
        """Return whether the node counts here: not one of a disruption run, nor one without pods."""
        of_run = _is_of_run(instance_behind(node), group, view)
        return not of_run and not self._unasked.is_urgent(node, view) and self._holds_pods(node, view)

    def _with_pods(self, group: Group, view: WorldView) -> Iterator[Obj]:
        return (node for node in self._unasked.of_group(group, view) if self._holds_pods(node, view))

    def _holds_pods(self, node: Obj, view: WorldView) -> bool:
        """Return whether a pod has to leave the node that was there when its drain was decided."""
        until = self._tainted.get(name_of(node), view.now) - UNSEEN
        pods = filter(has_to_leave, view.cluster.store.pods_on(name_of(node)))
        return any(as_instant(pod["metadata"]["creationTimestamp"]).timestamp() <= until for pod in pods)

    def _most(self, group: Group, policy: NodePolicy | None, view: WorldView) -> int:
        """Return maxUnavailable at the owner's size, now or at the beginning: an upgrade keeps that of its start."""
        now = group.desired - max(view.books[group.name].least, 0) if group.name in view.books else group.desired
        sizes = {max(now, 1), max(self._first.get(group.name, 1), 1)}
        try:
            return max(parallelism(policy.update, size) for size in sizes) if policy is not None else 1
        except InvalidInputError:
            return 1

    def _over_budget(self, policy: NodePolicy, node: Obj, view: WorldView) -> Iterator[str]:
        groups = [one for one in view.groups.values() if view.policies.policy_of(one) is policy]
        for budget in policy.disruption.budgets:
            if DisruptionReason.UPGRADE.value not in budget.reasons or budget.window is not None:
                continue
            if budget.zone not in {None, _zone(node)}:
                continue
            mine = [
                one for group in groups for one in self._with_pods(group, view) if budget.zone in {None, _zone(one)}
            ]
            most = _limit(budget, groups)
            if len(mine) > most:
                yield f"policy {policy.name}: {_names(mine)} at once, a budget for upgrades allows {most}"


def _is_of_run(instance: str, group: Group, view: WorldView) -> bool:
    """Return whether a disruption run has tainted the node, by its own budgets. An upgrade that has just taken its
    lease waits for the run and adds no node; a node that it takes is judged, with those of the run beside it. A run
    stays one while its execution is stopped, until the next continues it.
    """
    of_run = instance in of_open_disruptions(view)
    if not view.rolls(group.name):
        return of_run or bool(view.disrupting)
    upgrade = view.upgrades.get(group.name)
    return of_run and (upgrade is None or instance not in upgrade.under_way)


def holds_pods(node: Obj, view: WorldView) -> bool:
    """Return whether a pod is on the node that has to leave."""
    return any(has_to_leave(pod) for pod in view.cluster.store.pods_on(name_of(node)))


def has_to_leave(pod: Obj) -> bool:
    """Return whether a drain evicts the pod: neither finished, nor of a DaemonSet, nor static."""
    owner = controller_of(pod)
    finished = (pod.get("status") or {}).get("phase") in {"Succeeded", "Failed"}
    daemon = owner is not None and owner["kind"] == "DaemonSet"
    return not (finished or daemon or well_known.MIRROR_POD in annotations_of(pod))


def _limit(budget: Budget, groups: Sequence[Group]) -> int:
    """Return the budget's number; of a share with every instance counted, those of a zone among all."""
    nodes = sum(len(group.instances) for group in groups)
    return ceil(nodes * budget.nodes / 100) if budget.percent else budget.nodes


def _zone(node: Obj) -> str | None:
    return (node["metadata"].get("labels") or {}).get(ZONE)


def _names(nodes: Sequence[Obj]) -> str:
    return ", ".join(sorted(instance_behind(node) for node in nodes))
