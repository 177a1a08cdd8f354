"""Requirements of a pod's persistent volumes for a node: where they can be reached, and how many can be attached."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from leeward.model.well_known import ZONE_LABEL
from leeward.scheduling.selectors import LabelRequirement, NodeTerm, Operator, node_terms

Raw = Mapping[str, Any]
REGION_LABEL = "topology.kubernetes.io/region"
_BETA = {"failure-domain.beta.kubernetes.io/zone": ZONE_LABEL, "failure-domain.beta.kubernetes.io/region": REGION_LABEL}
TOPOLOGY_LABELS = (ZONE_LABEL, REGION_LABEL, *_BETA)
UNBOUND = "pod has unbound immediate PersistentVolumeClaims"
EBS_DRIVER = "ebs.csi.aws.com"


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeNeeds:
    """Volume requirements of one pod. One term of each entry of `reach` has to match the node (VolumeBinding); `zones`
    are labels with the values that volumes carry (VolumeZone); `attached` counts volumes by CSI driver
    (NodeVolumeLimits); `missing` says why no node is possible.
    """

    reach: tuple[tuple[NodeTerm, ...], ...] = ()
    zones: tuple[tuple[str, tuple[str, ...]], ...] = ()
    attached: tuple[tuple[str, int], ...] = ()
    missing: str = ""


NO_VOLUMES = VolumeNeeds()


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage:
    """Raw PersistentVolumeClaims by (namespace, name), PersistentVolumes and StorageClasses by name."""

    claims: Mapping[tuple[str, str], Raw]
    volumes: Mapping[str, Raw]
    classes: Mapping[str, Raw]

    @classmethod
    def from_json(cls, claims: Iterable[Raw] = (), volumes: Iterable[Raw] = (), classes: Iterable[Raw] = ()) -> Self:
        """Build the storage from the items of three lists."""
        return cls(
            claims={(c["metadata"].get("namespace", "default"), c["metadata"]["name"]): c for c in claims},
            volumes={volume["metadata"]["name"]: volume for volume in volumes},
            classes={one["metadata"]["name"]: one for one in classes},
        )

    def needs(self, pod: Raw) -> VolumeNeeds:
        """Return the needs of a raw pod. An unbound claim may come up wherever its class allows
        (WaitForFirstConsumer).
        """
        names = sorted(_claim_names(pod))
        if not names:
            return NO_VOLUMES
        namespace = pod["metadata"].get("namespace", "default")
        reach: set[tuple[NodeTerm, ...]] = set()
        zones: set[tuple[str, tuple[str, ...]]] = set()
        attached: Counter[str] = Counter()
        for name in names:
            claim = self.claims.get((namespace, name))
            if claim is None:
                return VolumeNeeds(missing=f'persistentvolumeclaim "{name}" not found')
            volume = self.volumes.get((claim.get("spec") or {}).get("volumeName") or "")
            if volume is None:
                storage = self._class_of(claim)
                if storage.get("volumeBindingMode") != "WaitForFirstConsumer":
                    return VolumeNeeds(missing=UNBOUND)
                reach |= _allowed(storage)
                attached[storage.get("provisioner", "")] += 1
                continue
            reach |= _reach(volume)
            zones |= _zones(volume)
            attached[_driver(volume)] += 1
        attached.pop("", None)
        return VolumeNeeds(
            reach=tuple(sorted(reach, key=repr)), zones=tuple(sorted(zones)), attached=tuple(sorted(attached.items()))
        )

    def _class_of(self, claim: Raw) -> Raw:
        return self.classes.get((claim.get("spec") or {}).get("storageClassName") or "", {})


def _claim_names(pod: Raw) -> set[str]:
    """Return the names of the claims, with those that ephemeral volumes bring (`POD-VOLUME`)."""
    found = set()
    for volume in (pod.get("spec") or {}).get("volumes") or ():
        if volume.get("persistentVolumeClaim"):
            found.add(volume["persistentVolumeClaim"]["claimName"])
        elif "ephemeral" in volume:
            found.add(f"{pod['metadata']['name']}-{volume.get('name', '')}")
    return found


def _reach(volume: Raw) -> set[tuple[NodeTerm, ...]]:
    required = ((volume.get("spec") or {}).get("nodeAffinity") or {}).get("required")
    return set() if required is None else {node_terms(required)}


def _zones(volume: Raw) -> set[tuple[str, tuple[str, ...]]]:
    """Return the zone labels. `a__b` names two zones of a regional disk; beta labels count as current ones."""
    labels = volume["metadata"].get("labels") or {}
    return {(_BETA.get(k, k), tuple(sorted(labels[k].split("__")))) for k in TOPOLOGY_LABELS if k in labels}


def _driver(volume: Raw) -> str:
    spec = volume.get("spec") or {}
    if "awsElasticBlockStore" in spec:
        return EBS_DRIVER  # in-tree volumes are attached by the CSI driver since 1.23
    return str((spec.get("csi") or {}).get("driver") or "")


def _allowed(storage: Raw) -> set[tuple[NodeTerm, ...]]:
    topologies = storage.get("allowedTopologies") or ()
    terms = []
    for topology in topologies:
        lines = topology.get("matchLabelExpressions") or ()
        asked = (
            LabelRequirement(key=one["key"], operator=Operator.IN, values=tuple(sorted(one["values"]))) for one in lines
        )
        terms.append(NodeTerm(expressions=tuple(asked)))
    return {tuple(terms)} if terms else set()
