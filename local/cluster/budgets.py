"""PodDisruptionBudget status, as kube-controller-manager's disruption controller computes it.

The status is updated before any client can read it, so there is no window in which an eviction sees stale numbers; the
real server closes that window with `status.disruptedPods`, which therefore stays empty here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from .objects import Obj, controller_of, copied, is_deleting, is_ready, labels_of, name_of, namespace_of, path_name
from .objects import set_condition as _set_condition
from .selectors import label_selector_matches
from .store import Change, ChangeType, Key, key_of
from .world import World

_SCALED = ("deployments", "replicasets", "statefulsets", "replicationcontrollers")
_SCALE_KINDS = {
    "ReplicaSet": "replicasets",
    "StatefulSet": "statefulsets",
    "ReplicationController": "replicationcontrollers",
}


class NoScale(Exception):
    """Error: a pod's controller has no scale, so percentages and maxUnavailable cannot be computed."""


class Budgets:
    """PodDisruptionBudgets: the budgets that select a pod, and the status of each."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._members: dict[Key, dict[Key, None]] = {}
        self._by_labels: dict[tuple[str, tuple[tuple[str, str], ...]], tuple[Key, ...]] = {}
        self._by_label: dict[tuple[str, tuple[str, str] | None], list[Obj]] = {}
        self._dirty: dict[Key, None] = {}

    def observe(self, change: Change) -> None:
        if change.resource == "pods":
            self._pod_changed(change)
        elif change.resource == "poddisruptionbudgets":
            self._budget_changed(change)
        elif change.resource in _SCALED and _scale_changed(change):
            self._dirty.update(dict.fromkeys(key for pod in self._below(change.obj) for key in self._keys_for(pod)))

    def matching(self, pod: Obj) -> list[Obj]:
        """Return the budgets whose selector matches the pod, by name."""
        found = (self._world.store.at("poddisruptionbudgets", key) for key in self._keys_for(pod))
        return [budget for budget in found if budget is not None]

    def run(self) -> bool:
        """Write the status of every budget that may have changed; return True when one was written."""
        written = False
        while self._dirty:
            key = next(iter(self._dirty))
            del self._dirty[key]
            written = self._write_status(key) or written
            self._dirty.pop(key, None)
        return written

    def _below(self, scale: Obj) -> Iterator[Obj]:
        """Yield the pods of a controller, and those of a Deployment's ReplicaSets."""
        store, uid = self._world.store, scale["metadata"]["uid"]
        for owner in (scale, *store.owned_by(uid, "replicasets")):
            yield from store.owned_by(owner["metadata"]["uid"], "pods")

    def _write_status(self, key: Key) -> bool:
        budget = self._world.store.at("poddisruptionbudgets", key)
        if budget is None:
            return False
        return self._world.write_status("poddisruptionbudgets", key, self._status(budget))

    def _keys_for(self, pod: Obj) -> tuple[Key, ...]:
        namespace, labels = namespace_of(pod) or "", labels_of(pod)
        cache_key = (namespace, tuple(sorted(labels.items())))
        found = self._by_labels.get(cache_key)
        if found is None:
            found = tuple(
                sorted(
                    key_of(budget)
                    for budget in self._candidates(namespace, labels)
                    if label_selector_matches(budget["spec"].get("selector"), labels)
                )
            )
            self._by_labels[cache_key] = found
        return found

    def _candidates(self, namespace: str, labels: Mapping[str, str]) -> Iterator[Obj]:
        """Yield the namespace's budgets whose selector begins with one of the labels, or with an expression."""
        if not self._by_label:
            for budget in self._world.store.each("poddisruptionbudgets"):
                self._by_label.setdefault(_first_label(budget), []).append(budget)
        for label in (None, *labels.items()):
            yield from self._by_label.get((namespace, label), ())

    def _pod_changed(self, change: Change) -> None:
        key, old, pod = change.key, change.old, change.obj
        if change.type is ChangeType.MODIFIED and old is not None and _counts_the_same(old, pod):
            return
        keys = self._keys_for(pod)
        if old is not None and labels_of(old) != labels_of(pod):
            for left in self._keys_for(old):
                self._members[left].pop(key, None)
                self._dirty[left] = None
        for budget in keys:
            if change.type is ChangeType.DELETED:
                self._members[budget].pop(key, None)
            else:
                self._members[budget][key] = None
            self._dirty[budget] = None
        if old is not None and is_healthy(old) and (change.type is ChangeType.DELETED or not is_healthy(pod)):
            self._note_loss(pod, keys)

    def _budget_changed(self, change: Change) -> None:
        key, old = change.key, change.old
        if change.type is ChangeType.DELETED:
            self._members.pop(key, None)
            self._dirty.pop(key, None)
            self._forget_selectors()
            return
        if old is not None and old["spec"] == change.obj["spec"]:
            return
        self._forget_selectors()
        selector = change.obj["spec"].get("selector")
        self._members[key] = {
            key_of(pod): None
            for pod in self._world.store.each("pods")
            if namespace_of(pod) == key[0] and label_selector_matches(selector, labels_of(pod))
        }
        self._dirty[key] = None

    def _forget_selectors(self) -> None:
        self._by_labels.clear()
        self._by_label.clear()

    def _note_loss(self, pod: Obj, keys: tuple[Key, ...]) -> None:
        """Record a violation if the loss of a healthy pod, for a reason that budgets cover, breaks a budget."""
        cause = self._world.cause
        if cause is None:
            return
        for key in keys:
            budget = self._world.store.at("poddisruptionbudgets", key)
            if budget is None:
                continue
            try:
                _, desired = self._expectation(budget, self._pods(key))
            except NoScale:
                continue
            healthy = sum(map(is_healthy, self._pods(key)))
            if healthy < desired <= healthy + 1:
                self._world.history.add_violation(
                    pdb=path_name(budget), pod=path_name(pod), cause=cause, healthy=healthy, desired=desired
                )

    def _pods(self, key: Key) -> list[Obj]:
        found = (self._world.store.at("pods", member) for member in self._members.get(key, ()))
        return [pod for pod in found if pod is not None]

    def _status(self, budget: Obj) -> Obj:
        """Return the status as it should be now; the stored budget stays unchanged."""
        pods = self._pods(key_of(budget))
        generation = budget["metadata"].get("generation", 1)
        status: Obj = copied(budget.get("status") or {})
        try:
            expected, desired = self._expectation(budget, pods)
        except NoScale as failure:
            # fail-safe of the real controller: the other numbers stay as they were
            for counter in ("currentHealthy", "desiredHealthy", "expectedPods"):
                status.setdefault(counter, 0)
            status.update(disruptionsAllowed=0, observedGeneration=generation)
            self._condition(status, allowed=False, reason="SyncFailed", message=str(failure), generation=generation)
            return status
        healthy = sum(map(is_healthy, pods))
        allowed = max(0, healthy - desired) if expected > 0 else 0
        status.update(
            currentHealthy=healthy,
            desiredHealthy=desired,
            disruptionsAllowed=allowed,
            expectedPods=expected,
            observedGeneration=generation,
        )
        reason = "SufficientPods" if allowed > 0 else "InsufficientPods"
        self._condition(status, allowed=allowed > 0, reason=reason, message="", generation=generation)
        return status

    def _condition(self, status: Obj, *, allowed: bool, reason: str, message: str, generation: int) -> None:
        _set_condition(
            status,
            {
                "type": "DisruptionAllowed",
                "status": "True" if allowed else "False",
                "reason": reason,
                "message": message,
                "observedGeneration": generation,
                "lastTransitionTime": self._world.timestamp(),
            },
        )

    def _expectation(self, budget: Obj, pods: list[Obj]) -> tuple[int, int]:
        """Return (expectedPods, desiredHealthy); a percentage and maxUnavailable count the owners' replicas, not the
        pods.
        """
        spec = budget["spec"]
        if spec.get("maxUnavailable") is not None:
            expected = self._expected_scale(pods)
            return expected, max(0, expected - scaled(spec["maxUnavailable"], expected))
        minimum = spec.get("minAvailable")
        if isinstance(minimum, str):
            expected = self._expected_scale(pods)
            return expected, scaled(minimum, expected)
        return len(pods), int(minimum or 0)

    def _expected_scale(self, pods: list[Obj]) -> int:
        """Return the sum of the replicas of the pods' controllers; pods without a controller do not count."""
        scales: dict[str, int] = {}
        for pod in pods:
            reference = controller_of(pod)
            if reference is None or reference["uid"] in scales:
                continue
            uid, replicas = self._scale_of(pod, reference)
            scales[uid] = replicas
            if uid != reference["uid"]:
                scales.setdefault(reference["uid"], 0)
        return sum(scales.values())

    def _scale_of(self, pod: Obj, reference: Obj) -> tuple[str, int]:
        resource = _SCALE_KINDS.get(reference["kind"])
        owner = self._world.store.find(resource, reference["name"], namespace_of(pod)) if resource else None
        if owner is None or owner["metadata"]["uid"] != reference["uid"]:
            raise NoScale(f'found no controllers for pod "{name_of(pod)}"')
        above = controller_of(owner)
        if above is not None and above["kind"] == "Deployment":
            deployment = self._world.store.find("deployments", above["name"], namespace_of(pod))
            if deployment is None:
                raise NoScale(f'found no controllers for pod "{name_of(pod)}"')
            owner = deployment
        return owner["metadata"]["uid"], int(owner["spec"].get("replicas", 1))


def is_healthy(pod: Obj) -> bool:
    """Return whether the disruption controller counts the pod as healthy."""
    return is_ready(pod) and not is_deleting(pod)


def _counts_the_same(old: Obj, pod: Obj) -> bool:
    """Return whether the write leaves every budget's numbers unchanged: same labels, same owner, as healthy as
    before.
    """
    return labels_of(old) == labels_of(pod) and is_healthy(old) == is_healthy(pod) and _owners(old) == _owners(pod)


def _scale_changed(change: Change) -> bool:
    """Return whether the write changes an expectation; a write of only the status, by far the most frequent one, does
    not.
    """
    if change.type is not ChangeType.MODIFIED or change.old is None:
        return True
    old, new = change.old, change.obj
    replicas_moved = old["spec"].get("replicas") != new["spec"].get("replicas")
    return replicas_moved or _owners(old) != _owners(new)


def _first_label(budget: Obj) -> tuple[str, tuple[str, str] | None]:
    """Return the namespace and the first label that the selector names; None where it names none."""
    labels = (budget["spec"].get("selector") or {}).get("matchLabels") or {}
    return namespace_of(budget) or "", next(iter(labels.items()), None)


def _owners(obj: Obj) -> list[Obj]:
    return obj["metadata"].get("ownerReferences") or []


def scaled(value: int | str, total: int) -> int:
    """Return an int or a percentage of `total`; the disruption controller rounds percentages up for both kinds."""
    if isinstance(value, str):
        return -(-total * int(value.removesuffix("%")) // 100)
    return int(value)
