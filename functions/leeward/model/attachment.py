"""Kubernetes VolumeAttachments cut down to what decisions need."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

from leeward.model.times import parse_instant


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeAttachment:
    """Volume attached to a node. `volume`: its PersistentVolume, empty for one written inline; `deletion`: when
    detaching was requested; `error`: the driver's message when it last failed to detach.
    """

    name: str
    node: str
    volume: str
    attached: bool
    deletion: datetime | None = None
    error: str = ""

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """Parse a VolumeAttachment of the API or of `kubectl get -o json`."""
        meta, spec, status = raw["metadata"], raw.get("spec") or {}, raw.get("status") or {}
        deletion = meta.get("deletionTimestamp")
        return cls(
            name=meta["name"],
            node=spec.get("nodeName", ""),
            volume=(spec.get("source") or {}).get("persistentVolumeName") or "",
            attached=bool(status.get("attached")),
            deletion=parse_instant(deletion) if deletion else None,
            error=(status.get("detachError") or {}).get("message") or "",
        )


def claims_of(volumes: Iterable[Mapping[str, Any]], claims: Iterable[Mapping[str, Any]] = ()) -> dict[str, str]:
    """Map each PersistentVolume to `namespace/name` of the claim that it is bound to, from raw PersistentVolumes and,
    for those that are not among them, raw PersistentVolumeClaims.
    """
    found: dict[str, str] = {}
    for claim in claims:
        meta, volume = claim["metadata"], (claim.get("spec") or {}).get("volumeName")
        if volume:
            found[volume] = f"{meta.get('namespace', 'default')}/{meta['name']}"
    for raw in volumes:
        reference = (raw.get("spec") or {}).get("claimRef") or {}
        if reference.get("name"):
            found[raw["metadata"]["name"]] = f"{reference.get('namespace', 'default')}/{reference['name']}"
    return found
