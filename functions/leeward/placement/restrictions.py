"""Restrictions on where a node lands: the group's subnets, a pod's node selector and affinity, the zone of its volume.

Decides whether a subnet is allowed. Only labels that follow from the subnet count (its id, its zone, the zone's id);
every other label belongs to the template and is assumed to match. Source: Cast AI, "Available subnets detection"."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from leeward.model import well_known
from leeward.model.pod import Pod
from leeward.model.subnet import Subnet
from leeward.model.zonal_shift import ZonalShifts

SUBNET_KEYS = (well_known.SUBNET_LABEL, well_known.CAST_SUBNET_LABEL)
ZONE_KEYS = well_known.ZONE_KEYS
_ZONE_SEPARATOR = "__"  # joins the zones in the label of a regional volume
_NO_LONGER_BOUND = frozenset({"Released", "Failed"})  # phases of a volume that still names its former claim


@dataclass(frozen=True, slots=True, kw_only=True)
class Expression:
    """Entry of `matchExpressions` whose key follows from the subnet."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def holds(self, subnet: Subnet) -> bool:
        """Return whether the subnet matches, by Kubernetes' node selector operators; Gt and Lt compare whole numbers
        and never hold for names.
        """
        value = subnet.id if self.key in SUBNET_KEYS else subnet.zone
        if self.key == well_known.ZONE_ID_LABEL:
            if not subnet.zone_id:  # a snapshot that was cut down: not known, so it restricts nothing
                return True
            value = subnet.zone_id
        match self.operator:
            case "In":
                return value in self.values
            case "NotIn":
                return value not in self.values
            case "Exists":
                return True
            case _:
                return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Restriction:
    """Alternative `terms`: in at least one of them, every expression has to hold. `source`: the object that restricts,
    for messages.
    """

    source: str
    terms: tuple[tuple[Expression, ...], ...]

    def allows(self, subnet: Subnet) -> bool:
        """Return whether a node may be in the subnet."""
        return any(all(expression.holds(subnet) for expression in term) for term in self.terms)


def only_subnets(source: str, ids: Iterable[str]) -> Restriction:
    """Return a restriction to these subnets, such as the group's."""
    expression = Expression(key=well_known.SUBNET_LABEL, operator="In", values=tuple(sorted(ids)))
    return Restriction(source=source, terms=((expression,),))


def no_pods_in(ids: Iterable[str]) -> tuple[Restriction, ...]:
    """Return a restriction for each subnet in which the VPC CNI puts no pod, by the subnet's tag."""
    return tuple(
        Restriction(
            source=f"kubernetes.io/role/cni=0 of {name}: the VPC CNI puts no pod there",
            terms=((Expression(key=well_known.SUBNET_LABEL, operator="NotIn", values=(name,)),),),
        )
        for name in sorted(ids)
    )


def only_zones(source: str, zones: Iterable[str]) -> Restriction:
    """Return a restriction to these zones, such as the requested ones."""
    expression = Expression(key=well_known.ZONE_LABEL, operator="In", values=tuple(sorted(zones)))
    return Restriction(source=source, terms=((expression,),))


def not_in_zones(shifts: ZonalShifts) -> tuple[Restriction, ...]:
    """Return the restrictions of zonal shifts: no node lands in a zone that is shifted."""
    return tuple(
        Restriction(
            source=f"the {shift.sentence}",
            terms=((Expression(key=well_known.ZONE_LABEL, operator="NotIn", values=(shift.zone,)),),),
        )
        for shift in shifts.shifts
        if shift.zone
    )


def of_pod(name: str, spec: Mapping[str, Any]) -> tuple[Restriction, ...]:
    """Return the restrictions of a pod's `nodeSelector` and its required node affinity, from its raw `spec`. `name`:
    namespace/name.
    """
    restrictions: list[Restriction] = []
    selector = {key: value for key, value in (spec.get("nodeSelector") or {}).items() if key in _KEYS}
    if selector:
        term = tuple(Expression(key=key, operator="In", values=(value,)) for key, value in sorted(selector.items()))
        restrictions.append(Restriction(source=f"the node selector of pod {name}", terms=(term,)))
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    restrictions += _of_terms(f"the node affinity of pod {name}", required.get("nodeSelectorTerms") or ())
    return tuple(restrictions)


def by_claim(volumes: Iterable[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """Return raw PersistentVolumes by the claim (namespace/name) that each is bound to. A volume that its claim has
    released is left out: it names a former claim, whose successor of the same name is bound to another volume.
    """
    bound = (volume for volume in volumes if (volume.get("status") or {}).get("phase") not in _NO_LONGER_BOUND)
    claims = (((volume.get("spec") or {}).get("claimRef") or {}, volume) for volume in bound)
    return {f"{claim.get('namespace', 'default')}/{claim['name']}": volume for claim, volume in claims if claim}


def of_claimed(pod: Pod, volumes: Mapping[str, Mapping[str, Any]]) -> tuple[Restriction, ...]:
    """Return the restrictions of the pod's bound volumes. `volumes`: the result of `by_claim`. A claim that is not
    bound yet restricts nothing: its volume is created in the zone of the node on which the pod lands.
    """
    claims = [f"{pod.namespace}/{name}" for name in pod.claims]
    return tuple(entry for claim in claims if claim in volumes for entry in of_volume(pod.key, volumes[claim]))


def of_volume(pod: str, volume: Mapping[str, Any]) -> tuple[Restriction, ...]:
    """Return the restriction of a raw PersistentVolume's node affinity, or else of its zone label. `pod`: for messages,
    namespace/name.
    """
    source = f"volume {volume['metadata']['name']} of pod {pod}"
    required = ((volume.get("spec") or {}).get("nodeAffinity") or {}).get("required") or {}
    restrictions = _of_terms(source, required.get("nodeSelectorTerms") or ())
    labels = volume["metadata"].get("labels") or {}
    zones = next((labels[key].split(_ZONE_SEPARATOR) for key in ZONE_KEYS if labels.get(key)), None)
    if restrictions or zones is None:
        return restrictions
    return (only_zones(source, zones),)


def _of_terms(source: str, raw: Sequence[Mapping[str, Any]]) -> tuple[Restriction, ...]:
    """Return the restriction of raw node selector terms, or nothing when a term allows every subnet. An empty term
    matches no node, as in Kubernetes.
    """
    terms = tuple(
        tuple(
            Expression(key=entry["key"], operator=entry["operator"], values=tuple(entry.get("values") or ()))
            for entry in term.get("matchExpressions") or ()
            if entry["key"] in _KEYS
        )
        for term in raw
        if term.get("matchExpressions") or term.get("matchFields")
    )
    return (Restriction(source=source, terms=terms),) if raw and all(terms) else ()


_KEYS = frozenset((*SUBNET_KEYS, *ZONE_KEYS, well_known.ZONE_ID_LABEL))
