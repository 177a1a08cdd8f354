"""Requirements of a pod about other pods: (anti-)affinity terms and topology spread constraints."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from leeward.errors import InvalidInputError
from leeward.model.pod_limits import POD_AFFINITY, PREFERRED, PREFERRED_TERMS, REQUIRED
from leeward.scheduling.selectors import LabelSelector, Operator, selector

Namespaces = Mapping[str, Mapping[str, str]]  # name -> labels
NAME_LABEL = "kubernetes.io/metadata.name"  # the API server puts it on every namespace


@dataclass(frozen=True, slots=True, kw_only=True)
class PodGroup:
    """Pods that a rule applies to; `namespaces` None: those of every namespace. `unread`: its namespaceSelector asks
    for labels of namespaces, and none was read: near such pods there is no place then, and anti-affinity means all.
    """

    namespaces: frozenset[str] | None
    selector: LabelSelector
    unread: bool = False

    def holds(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Return whether a pod of that namespace with these labels is one of them."""
        return (self.namespaces is None or namespace in self.namespaces) and self.selector.matches(labels)


@dataclass(frozen=True, slots=True, kw_only=True)
class PodTerm:
    """One (anti-)affinity term: near, or away from, a group of pods, within a topology domain."""

    group: PodGroup
    key: str
    weight: int = 0  # of a preferred one


@dataclass(frozen=True, slots=True, kw_only=True)
class SpreadConstraint:
    """One topologySpreadConstraint. `required`: DoNotSchedule; else ScheduleAnyway, a preference."""

    key: str
    skew: int
    group: PodGroup
    min_domains: int = 1
    required: bool = True
    honours_affinity: bool = True
    honours_taints: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """Pod whose rules are read, and the namespaces that its namespaceSelectors can select."""

    namespace: str
    labels: Mapping[str, str]
    namespaces: Namespaces


def required_terms(spec: Mapping[str, Any], kind: str, asker: Asker) -> tuple[PodTerm, ...]:
    """Return the required terms of `podAffinity` or `podAntiAffinity`. Raises InvalidInputError."""
    raw = ((spec.get("affinity") or {}).get(kind) or {}).get(REQUIRED) or ()
    terms = (_term(term, asker) for term in raw)
    return tuple(_kept_apart(term) if kind == POD_AFFINITY[0] else term for term in terms)


def _kept_apart(term: PodTerm) -> PodTerm:
    """Return the term of an anti-affinity; of namespaces that are not known it means every one."""
    return replace(term, group=replace(term.group, namespaces=None)) if term.group.unread else term


def preferred_terms(spec: Mapping[str, Any], kind: str, asker: Asker) -> tuple[PodTerm, ...]:
    """Return the preferred terms that plans follow, the heaviest first. Raises InvalidInputError."""
    raw = ((spec.get("affinity") or {}).get(kind) or {}).get(PREFERRED) or ()
    found = [_term(one["podAffinityTerm"], asker, int(one["weight"])) for one in raw]
    return tuple(sorted(found, key=lambda term: -term.weight)[:PREFERRED_TERMS])


def _term(raw: Mapping[str, Any], asker: Asker, weight: int = 0) -> PodTerm:
    same, different = raw.get("matchLabelKeys") or (), raw.get("mismatchLabelKeys") or ()
    chosen = selector(raw.get("labelSelector"), asker.labels, same=same, different=different)
    namespaces, unread = _namespaces(raw, asker)
    group = PodGroup(namespaces=namespaces, selector=chosen, unread=unread)
    return PodTerm(group=group, key=raw["topologyKey"], weight=weight)


def _namespaces(raw: Mapping[str, Any], asker: Asker) -> tuple[frozenset[str] | None, bool]:
    """Return the namespaces of InterPodAffinity: the listed ones and those that `namespaceSelector` selects; without
    either, the pod's own. Also whether some are not known: a selector by the name's label alone needs no other.
    """
    listed, chosen = raw.get("namespaces") or (), raw.get("namespaceSelector")
    if chosen is None:
        return frozenset(listed or (asker.namespace,)), False
    wanted = selector(chosen, {})
    if wanted.empty:
        return None, False
    if all(one.key == NAME_LABEL and one.operator is Operator.IN for one in wanted.requirements):
        named = (frozenset(one.values) for one in wanted.requirements)
        return frozenset(listed) | frozenset.intersection(*named), False
    found = {name for name, labels in asker.namespaces.items() if wanted.matches({NAME_LABEL: name, **labels})}
    return frozenset(listed) | found, not asker.namespaces


def spread_constraints(spec: Mapping[str, Any], asker: Asker) -> tuple[SpreadConstraint, ...]:
    """Return the constraints of a pod's `spec`. Raises InvalidInputError.

    An empty selector counts no pod, as in PodTopologySpread's countPodsMatchSelector.
    """
    return tuple(_constraint(raw, asker) for raw in spec.get("topologySpreadConstraints") or ())


def _constraint(raw: Mapping[str, Any], asker: Asker) -> SpreadConstraint:
    chosen = selector(raw.get("labelSelector"), asker.labels, same=raw.get("matchLabelKeys") or ())
    if chosen.empty:
        chosen = LabelSelector(nothing=True)
    return SpreadConstraint(
        key=raw["topologyKey"],
        skew=int(raw.get("maxSkew", 1)),
        group=PodGroup(namespaces=frozenset({asker.namespace}), selector=chosen),
        min_domains=int(raw.get("minDomains") or 1),
        required=_first_of(raw, "whenUnsatisfiable", "DoNotSchedule", "ScheduleAnyway"),
        honours_affinity=_first_of(raw, "nodeAffinityPolicy", "Honor", "Ignore"),
        honours_taints=not _first_of(raw, "nodeTaintsPolicy", "Ignore", "Honor"),
    )


def _first_of(raw: Mapping[str, Any], field: str, default: str, other: str) -> bool:
    """Return whether the field has its default value, not the other one. Raises InvalidInputError for a third."""
    value = raw.get(field) or default
    if value not in {default, other}:
        raise InvalidInputError(f"{field}: found {value!r}, expected {default} or {other}")
    return bool(value == default)
