"""Pods that have a node, counted by namespace, labels and node, so that a query by selector iterates over no pods.

Pods of one template carry the same labels, so a cluster has far fewer groups than pods.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from local.cluster.objects import Obj, is_deleting, labels_of, namespace_of, node_of
from local.cluster.selectors import label_selector_matches

_Key = tuple[str, tuple[tuple[str, str], ...]]  # namespace, labels


@dataclass(frozen=True, slots=True, kw_only=True)
class PodQuery:
    """Query of pods: a `metav1.LabelSelector`, and namespaces (None: all)."""

    selector: Obj | None
    namespaces: frozenset[str] | None

    def matches(self, namespace: str, labels: dict[str, str]) -> bool:
        """Return whether a pod of that namespace and those labels is selected."""
        if self.namespaces is not None and namespace not in self.namespaces:
            return False
        return label_selector_matches(self.selector, labels)


@dataclass(slots=True, kw_only=True)
class _Group:
    """Pods of one namespace with the same labels: the count on each node, deleting ones counted separately."""

    namespace: str
    labels: dict[str, str]
    staying: Counter[str] = field(default_factory=Counter)
    leaving: Counter[str] = field(default_factory=Counter)


class Placed:
    """Index of placed pods. Its owner calls `add` for each state that a bound pod enters and `remove` for each that it
    leaves.
    """

    def __init__(self) -> None:
        self._groups: dict[_Key, _Group] = {}
        self._by_label: dict[tuple[str, str], dict[_Key, None]] = {}

    def add(self, pod: Obj) -> None:
        """Add one pod."""
        namespace, labels = namespace_of(pod) or "", labels_of(pod)
        key = (namespace, tuple(sorted(labels.items())))
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = _Group(namespace=namespace, labels=labels)
            for label in key[1]:
                self._by_label.setdefault(label, {})[key] = None
        (group.leaving if is_deleting(pod) else group.staying)[str(node_of(pod))] += 1

    def remove(self, pod: Obj) -> None:
        """Remove the entry added for this state of the pod."""
        key = (namespace_of(pod) or "", tuple(sorted(labels_of(pod).items())))
        group = self._groups[key]
        counts = group.leaving if is_deleting(pod) else group.staying
        node = str(node_of(pod))
        counts[node] -= 1
        if not counts[node]:
            del counts[node]
        if not group.staying and not group.leaving:
            self._forget(key)

    def _forget(self, key: _Key) -> None:
        del self._groups[key]
        for label in key[1]:
            keys = self._by_label[label]
            del keys[key]
            if not keys:
                del self._by_label[label]

    def on_nodes(self, queries: Sequence[PodQuery], *, leaving: bool) -> Counter[str]:
        """Return how many pods that match every query are on each node; `leaving`: include those that are being
        deleted.
        """
        found: Counter[str] = Counter()
        for group in self._candidates(queries[0].selector):
            if all(query.matches(group.namespace, group.labels) for query in queries):
                found.update(group.staying)
                if leaving:
                    found.update(group.leaving)
        return found

    def _candidates(self, selector: Obj | None) -> Iterator[_Group]:
        pairs = ((selector or {}).get("matchLabels") or {}).items()
        lists = [self._by_label.get(pair, {}) for pair in pairs]
        keys = min(lists, key=len) if lists else self._groups
        return (self._groups[key] for key in keys)
