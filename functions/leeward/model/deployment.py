"""Deployments cut down to the fields that decide whether a lone pod of one can have a second before it leaves."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from leeward.model.pod import Pod
from leeward.model.raw_fields import mapping, metadata_of, number, text

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
        """Parse a Deployment of the API. Raises InvalidInputError for one without a name."""
        meta, spec, status = metadata_of(raw, "deployment"), mapping(raw.get("spec")), mapping(raw.get("status"))
        observed = number(status.get("observedGeneration")) >= number(meta.get("generation"))
        return cls(
            namespace=text(meta.get("namespace"), "default"),
            name=meta["name"],
            resource_version=text(meta.get("resourceVersion")),
            replicas=number(spec.get("replicas"), 1),
            available=number(status.get("availableReplicas")),
            settled=observed and number(status.get("updatedReplicas")) == number(status.get("replicas")),
            recreate=mapping(spec.get("strategy")).get("type") == "Recreate",
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
