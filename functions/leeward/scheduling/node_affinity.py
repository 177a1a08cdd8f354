"""Node requirements of a pod or a volume by label or name: nodeSelector, node affinity, a volume's node affinity."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from leeward.model.pod_limits import PREFERRED, REQUIRED
from leeward.scheduling.selectors import Requirement, canonical


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeTerm:
    """One nodeSelectorTerm: all its lines hold. Without lines it matches no node (component-helpers' nodeaffinity)."""

    expressions: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """Parse a raw term. Raises InvalidInputError for an unknown operator."""
        return cls(
            expressions=canonical(Requirement.from_json(one) for one in raw.get("matchExpressions") or ()),
            fields=canonical(Requirement.from_json(one) for one in raw.get("matchFields") or ()),
        )

    def matches(self, name: str, labels: Mapping[str, str]) -> bool:
        """Return whether the node matches. `matchFields` supports one field, metadata.name."""
        if not self.expressions and not self.fields:
            return False
        named = {"metadata.name": name}
        return all(one.matches(labels) for one in self.expressions) and all(one.matches(named) for one in self.fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeChoice:
    """Node selector and required node affinity of a pod; `terms` None: none required; one of them has to match."""

    selector: tuple[Requirement, ...] = ()
    terms: tuple[NodeTerm, ...] | None = None

    @classmethod
    def from_json(cls, spec: Mapping[str, Any]) -> Self:
        """Parse a pod's `spec`."""
        required = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(REQUIRED)
        labels = spec.get("nodeSelector") or {}
        return cls(
            selector=canonical(
                Requirement.from_json({"key": k, "operator": "In", "values": [labels[k]]}) for k in labels
            ),
            terms=None if required is None else node_terms(required),
        )

    def matches(self, name: str, labels: Mapping[str, str]) -> bool:
        """Return whether the selector and at least one term match, as in kube-scheduler's NodeAffinity."""
        return all(one.matches(labels) for one in self.selector) and (
            self.terms is None or any(term.matches(name, labels) for term in self.terms)
        )

    def about(self, keys: Collection[str]) -> Self:
        """Return the choice without its lines about other labels: it accepts each node that labels of other keys could
        make the choice accept.
        """
        kept = [replace(term, expressions=_about(term.expressions, keys)) for term in self.terms or ()]
        free = any(
            one.expressions and not term.expressions and not term.fields
            for one, term in zip(self.terms or (), kept, strict=True)
        )  # a term that has lost all its lines matches any node
        terms = None if self.terms is None or free else tuple(kept)
        return replace(self, selector=_about(self.selector, keys), terms=terms)

    @property
    def keys(self) -> frozenset[str]:
        """Labels that the choice depends on."""
        return frozenset(one.key for one in self.selector) | label_keys(self.terms or ())

    @property
    def by_name(self) -> bool:
        """True if the node's name matters."""
        return any(term.fields for term in self.terms or ())


ANY_NODE = NodeChoice()


@dataclass(frozen=True, slots=True, kw_only=True)
class PreferredNodes:
    """One preferred node affinity term with its weight."""

    weight: int
    term: NodeTerm


def node_terms(raw: Mapping[str, Any]) -> tuple[NodeTerm, ...]:
    """Return the terms of a NodeSelector. Raises InvalidInputError."""
    return tuple(NodeTerm.from_json(term) for term in raw.get("nodeSelectorTerms") or ())


def preferred_nodes(spec: Mapping[str, Any]) -> tuple[PreferredNodes, ...]:
    """Return the preferred node affinity of a pod's `spec`, the heaviest first."""
    raw = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(PREFERRED) or ()
    found = [PreferredNodes(weight=int(one["weight"]), term=NodeTerm.from_json(one["preference"])) for one in raw]
    return tuple(sorted(found, key=lambda one: -one.weight))


def _about(lines: Iterable[Requirement], keys: Collection[str]) -> tuple[Requirement, ...]:
    return tuple(line for line in lines if line.key in keys)


def label_keys(terms: Sequence[NodeTerm]) -> frozenset[str]:
    """Return the labels that the terms depend on."""
    return frozenset(one.key for term in terms for one in term.expressions)
