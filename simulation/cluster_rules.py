"""Rules that must hold between the clusters that one deployment serves: none is taken for another, and none waits for
another's API server.

Whether an object belongs to a cluster is read off the cluster itself: its nodes and pods by their uids, its instances
by the group that has launched them."""

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from leeward.model.times import as_instant
from local.cluster.objects import Obj, uid_of
from local.cluster.store import Change, ChangeType
from simulation.convergence import is_tainted, launched_for
from simulation.drained import node_behind
from simulation.facts import News, group_of, policy_of
from simulation.node_rules import GIVES_BACK
from simulation.rule import Rule
from simulation.view import WorldView

OBJECTS = {"nodes", "pods"}
TAINTED_WITHIN = 4.0  # seconds from a warning: the queue's window, the calls to AWS, and those to the node's own API
ASKED_WITHIN = 5.0  # seconds from the minute reconciler's start to its first question to an API server
JUST_JOINED = 60.0  # a node that came so late may have been unknown to the function
JUST_RETURNED = 30.0  # seconds after an execution's end: it may have returned the node to service
REWRITTEN = 60.0  # seconds: a function that began before its policy was rewritten uses the earlier one


class ClusterView(WorldView, Protocol):
    """View of one of several clusters, with what was asked of its API and about its groups."""

    @property
    def cluster_name(self) -> str:
        """Name of the cluster."""
        ...

    def owns(self, instance: str) -> bool:
        """Return whether a group of the cluster has launched the instance."""
        ...

    @property
    def addressed(self) -> Sequence[str]:
        """Uids of the nodes and pods that our writes to its API were about, also of those without effect."""
        ...

    @property
    def hooks_put(self) -> Sequence[tuple[str, str]]:
        """Hooks that we have put on its groups, each as (group, hook)."""
        ...

    @property
    def reconciled(self) -> float:
        """Last start of the minute reconciler, in seconds since 1970; 0 without one."""
        ...

    @property
    def asked_by_reconciler(self) -> float:
        """Last time that the minute reconciler has asked its API for the nodes."""
        ...

    def failed_since(self, at: float) -> bool:
        """Return whether its API has failed or refused a call since then."""
        ...


class ClusterRules:
    """Rules for the clusters of one world, one object for each run."""

    def __init__(self, views: Sequence[ClusterView]) -> None:
        self._views = views
        self._news = {view.cluster_name: News() for view in views}
        self._uids = {view.cluster_name: {*_uids(view)} for view in views}
        self._opened: dict[str, float] = {}
        self._warned: dict[str, float] = {}  # instance -> when
        self._reconciled: dict[str, float] = {}  # cluster -> start of the run that was judged
        for view in views:
            view.cluster.observe(self._watch(self._uids[view.cluster_name]))

    def check(self) -> Iterator[tuple[Rule, str]]:
        """Yield each violation, of every cluster, since the last call."""
        rules = (
            (Rule.ELSEWHERE, self._elsewhere),
            (Rule.SELECTED, self._unselected),
            (Rule.TAINT, self._bare),
            (Rule.MINUTE, self._unasked),
        )
        for view in self._views:
            for rule, check in rules:
                yield from ((rule, f"{view.cluster_name}: {text}") for text in check(view))

    def _watch(self, uids: set[str]) -> Callable[[Change], None]:
        def observe(change: Change) -> None:
            if change.old is None and change.resource in OBJECTS and change.type is not ChangeType.DELETED:
                uids.add(uid_of(change.obj))

        return observe

    def _elsewhere(self, view: ClusterView) -> Iterator[str]:
        news, own = self._news[view.cluster_name], self._uids[view.cluster_name]
        for uid in news.of("addressed", view.addressed):
            others = [name for name, uids in self._uids.items() if uid in uids]
            if uid not in own and others:
                yield f"its API was asked to change an object of {others[0]} ({uid})"
        for token, instance in news.of("launches", view.launches):
            name = launched_for(token)
            if name.startswith("i-") and not view.owns(name):
                yield f"{instance} was launched for {name}, which is another cluster's"

    def _unselected(self, view: ClusterView) -> Iterator[str]:
        for name, hook in self._news[view.cluster_name].of("hooks", view.hooks_put):
            if not _selects(view, name):
                yield f"{hook} was put on {name}, which no policy of the cluster selects"
        for instance, at in view.open_since.items():
            if self._opened.get(instance) == at:
                continue
            self._opened[instance] = at
            name = view.launched_by(instance)
            manual = instance in view.started_manually or name in view.upgrades
            surplus = any(cause.startswith("surplus") for cause in view.known_causes(instance))  # offsets our launch
            if name in view.groups and not (manual or surplus or _selects(view, name)):
                yield f"a termination of {instance} was opened, and no policy of the cluster selects {name}"

    def _bare(self, view: ClusterView) -> Iterator[str]:
        """Yield warned instances whose node is not tainted in time although its own API answers. Where more fails than
        the Kubernetes API, a drain may have to do it.
        """
        if not view.only_kubernetes_fails:
            return
        for instance, at in self._news[view.cluster_name].of("warned", view.warned):
            if policy_of(view, group_of(view, instance)) is not None:
                self._warned.setdefault(instance, at)
        for instance, at in [(one, at) for one, at in self._warned.items() if view.owns(one)]:
            if view.now - at > TAINTED_WITHIN:
                del self._warned[instance]
                if self._could_taint(instance, at, view):
                    yield f"{instance} was warned {view.now - at:.1f} s ago, and its node carries no taint"

    def _could_taint(self, instance: str, at: float, view: ClusterView) -> bool:
        node = node_behind(instance, view)
        if node is None or is_tainted(node) or not view.running(instance):
            return False
        rested = view.rested_since(instance)
        returns = GIVES_BACK in view.states_of(instance) or (rested is not None and at - rested < JUST_RETURNED)
        late = returns or _young(node, at) or view.now - view.rewritten < REWRITTEN
        return not (late or view.troubled(view.now - at + 1) or view.failed_since(at))

    def _unasked(self, view: ClusterView) -> Iterator[str]:
        """Yield API servers that the minute reconciler has not asked in time although they answer."""
        begun = view.reconciled
        if not view.only_kubernetes_fails or view.now - begun < ASKED_WITHIN:
            return
        if self._reconciled.get(view.cluster_name) == begun or not begun:
            return
        self._reconciled[view.cluster_name] = begun
        if view.asked_by_reconciler < begun and not view.troubled(view.now - begun + 1):
            yield f"the minute reconciler has not asked its API {view.now - begun:.1f} s after it began"


def _uids(view: ClusterView) -> Iterator[str]:
    for resource in OBJECTS:
        yield from map(uid_of, view.cluster.store.each(resource))


def _selects(view: ClusterView, group: str) -> bool:
    known = view.groups[group]
    return view.policies.policy_of(known) is not None


def _young(node: Obj, at: float) -> bool:
    return as_instant(node["metadata"]["creationTimestamp"]).timestamp() > at - JUST_JOINED
