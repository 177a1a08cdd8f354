"""Deployments cut down to the fields that decide whether a lone pod of one can have a second before it leaves."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from leeward.model.pod import Pod

TEMPLATE_HASH = "pod-template-hash"  # the Deployment controller labels its ReplicaSets' pods with it


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """Deployment object. `replicas`: the number in its spec; `available`: pods ready for as long as it requires;
    `settled`: no rollout is under way; `recreate`: its old and new pods never run side by side.
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
        """Parse a Deployment of the API."""
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
        """Name as people write it: `namespace/name`."""
        return f"{self.namespace}/{self.name}"


def deployment_named_by(pod: Pod) -> str | None:
    """Return the name of the pod's Deployment as its ReplicaSet shows it, without a read of either: DEPLOYMENT-HASH, if
    the pod carries the hash. None for a pod of anything else.
    """
    if pod.owner is None or pod.owner.kind != "ReplicaSet":
        return None
    name, suffix = pod.owner.name, f"-{pod.labels.get(TEMPLATE_HASH, '')}"
    return name.removesuffix(suffix) if len(suffix) > 1 and name.endswith(suffix) and name != suffix else None
