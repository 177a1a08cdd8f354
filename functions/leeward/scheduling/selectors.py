"""Label selectors and node requirements.

Parsed into a canonical form, so that selectors written in another order are equal and share one class of pods.

Node requirements of a pod or a volume by label or name: nodeSelector, node affinity, a volume's node affinity."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Self, assert_never

from leeward.errors import InvalidInputError
from leeward.model.pod_limits import PREFERRED, REQUIRED
from leeward.model.raw_fields import parse_int


class Operator(StrEnum):
    """Operator of a requirement. `Gt` and `Lt` are valid for nodes only."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"
    GT = "Gt"
    LT = "Lt"


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelRequirement:
    """One line of `matchExpressions`. NotIn also holds where the label is missing, as in apimachinery."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """Parse one entry of `matchExpressions`; values are sorted and unique. Raises InvalidInputError for an unknown
        operator.
        """
        try:
            operator = Operator(raw["operator"])
        except ValueError:
            expected = ", ".join(Operator)
            raise InvalidInputError(f"operator: found {raw['operator']!r}, expected one of {expected}") from None
        return cls(key=raw["key"], operator=operator, values=tuple(sorted(set(raw.get("values") or ()))))

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether labels meet the requirement. Gt and Lt compare whole numbers; other values do not match."""
        value = labels.get(self.key)
        match self.operator:
            case Operator.IN:
                return value in self.values
            case Operator.NOT_IN:
                return value not in self.values
            case Operator.EXISTS:
                return value is not None
            case Operator.DOES_NOT_EXIST:
                return value is None
            case Operator.GT | Operator.LT:
                return self._compares(value)
            case _:
                assert_never(self.operator)

    def _compares(self, value: str | None) -> bool:
        """Compare as apimachinery's labels.Requirement: one value, and both are what strconv.ParseInt takes."""
        have, bound = (parse_int(text) for text in (value or "", self.values[0] if len(self.values) == 1 else ""))
        if have is None or bound is None:
            return False
        return have > bound if self.operator is Operator.GT else have < bound


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelSelector:
    """LabelSelector; objects have to meet all requirements. `nothing`: the field was missing, which selects nothing."""

    requirements: tuple[LabelRequirement, ...] = ()
    nothing: bool = False

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether the selector selects an object with these labels; the empty selector selects every object."""
        return not self.nothing and all(requirement.matches(labels) for requirement in self.requirements)

    @property
    def empty(self) -> bool:
        """True if the selector selects every object."""
        return not self.nothing and not self.requirements

    @property
    def pair(self) -> tuple[str, str] | None:
        """Label (key, value) that every selected object has, by which selectors are indexed; None: there is none."""
        for requirement in self.requirements:
            if requirement.operator is Operator.IN and len(requirement.values) == 1:
                return requirement.key, requirement.values[0]
        return None


def selector(
    raw: Mapping[str, Any] | None,
    own: Mapping[str, str],
    *,
    same: Sequence[str] = (),
    different: Sequence[str] = (),
) -> LabelSelector:
    """Parse a LabelSelector of a pod's constraint; `raw` None selects nothing.

    `own`: labels of the pod. `same` (`matchLabelKeys`) and `different` (`mismatchLabelKeys`): keys whose values in
    `own` are added as requirements; keys that the pod lacks are ignored (KEP 3243, KEP 3633). Raises InvalidInputError
    for an unknown operator.
    """
    if raw is None:
        return LabelSelector(nothing=True)
    requirements = [_equals(key, value) for key, value in (raw.get("matchLabels") or {}).items()]
    requirements += [LabelRequirement.from_json(expression) for expression in raw.get("matchExpressions") or ()]
    requirements += [_equals(key, own[key]) for key in same if key in own]
    requirements += [
        LabelRequirement(key=key, operator=Operator.NOT_IN, values=(own[key],)) for key in different if key in own
    ]
    return LabelSelector(requirements=canonical(requirements))


def canonical(requirements: Iterable[LabelRequirement]) -> tuple[LabelRequirement, ...]:
    """Return the requirements without duplicates, in a fixed order."""
    return tuple(sorted(set(requirements), key=_order))


def _order(requirement: LabelRequirement) -> tuple[str, Operator, tuple[str, ...]]:
    return requirement.key, requirement.operator, requirement.values


def _equals(key: str, value: str) -> LabelRequirement:
    return LabelRequirement(key=key, operator=Operator.IN, values=(value,))


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeTerm:
    """One nodeSelectorTerm: all its lines hold. Without lines it matches no node (component-helpers' nodeaffinity)."""

    expressions: tuple[LabelRequirement, ...] = ()
    fields: tuple[LabelRequirement, ...] = ()

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """Parse a raw term. Raises InvalidInputError for an unknown operator."""
        return cls(
            expressions=canonical(LabelRequirement.from_json(one) for one in raw.get("matchExpressions") or ()),
            fields=canonical(LabelRequirement.from_json(one) for one in raw.get("matchFields") or ()),
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

    selector: tuple[LabelRequirement, ...] = ()
    terms: tuple[NodeTerm, ...] | None = None

    @classmethod
    def from_json(cls, spec: Mapping[str, Any]) -> Self:
        """Parse a pod's `spec`."""
        required = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(REQUIRED)
        labels = spec.get("nodeSelector") or {}
        return cls(
            selector=canonical(
                LabelRequirement.from_json({"key": k, "operator": "In", "values": [labels[k]]}) for k in labels
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


def _about(lines: Iterable[LabelRequirement], keys: Collection[str]) -> tuple[LabelRequirement, ...]:
    return tuple(line for line in lines if line.key in keys)


def label_keys(terms: Sequence[NodeTerm]) -> frozenset[str]:
    """Return the labels that the terms depend on."""
    return frozenset(one.key for term in terms for one in term.expressions)
