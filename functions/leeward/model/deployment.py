"""Deployments cut down to what decides whether a lone pod of one can have a second before it goes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """`replicas`: what its spec asks for; `available`: pods ready for as long as it wants; `settled`: no rollout is
    under way; `recreate`: its old and new pods never run side by side.
    """

    namespace: str
    name: str
    resource_version: str
    replicas: int
    available: int
    settled: bool
    recreate: bool

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """From a Deployment of the API."""
        meta, spec, status = raw["metadata"], raw.get("spec") or {}, raw.get("status") or {}
        replicas = spec.get("replicas")
        wanted = 1 if replicas is None else int(replicas)
        observed = int(status.get("observedGeneration") or 0) >= int(meta.get("generation") or 0)
        return cls(
            namespace=meta.get("namespace", "default"),
            name=meta["name"],
            resource_version=meta.get("resourceVersion", ""),
            replicas=wanted,
            available=int(status.get("availableReplicas") or 0),
            settled=observed and int(status.get("updatedReplicas") or 0) == int(status.get("replicas") or 0),
            recreate=(spec.get("strategy") or {}).get("type") == "Recreate",
        )

    @property
    def key(self) -> str:
        """`namespace/name`, as people write it."""
        return f"{self.namespace}/{self.name}"
