"""Kubernetes VolumeAttachments cut down to what decisions need."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

from leeward.model.raw_fields import instant, mapping, metadata_of, text


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
        """Parse a VolumeAttachment of the API or of `kubectl get -o json`. Raises InvalidInputError for one without a
        name.
        """
        meta, spec, status = metadata_of(raw, "volumeattachment"), mapping(raw.get("spec")), mapping(raw.get("status"))
        return cls(
            name=meta["name"],
            node=text(spec.get("nodeName")),
            volume=text(mapping(spec.get("source")).get("persistentVolumeName")),
            attached=status.get("attached") is True,
            deletion=instant(meta.get("deletionTimestamp")),
            error=text(mapping(status.get("detachError")).get("message")),
        )


def claims_of(volumes: Iterable[Mapping[str, Any]], claims: Iterable[Mapping[str, Any]] = ()) -> dict[str, str]:
    """Map each PersistentVolume to `namespace/name` of the claim that it is bound to, from raw PersistentVolumes and,
    for those that are not among them, raw PersistentVolumeClaims.
    """
    found: dict[str, str] = {}
    for claim in claims:
        meta, volume = metadata_of(claim, "persistentvolumeclaim"), text(mapping(claim.get("spec")).get("volumeName"))
        if volume:
            found[volume] = f"{text(meta.get('namespace'), 'default')}/{meta['name']}"
    for raw in volumes:
        reference = mapping(mapping(raw.get("spec")).get("claimRef"))
        if name := text(reference.get("name")):
            volume = metadata_of(raw, "persistentvolume")["name"]
            found[volume] = f"{text(reference.get('namespace'), 'default')}/{name}"
    return found
