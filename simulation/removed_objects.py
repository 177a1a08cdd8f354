"""Pods and nodes that the simulated Kubernetes API removed, as the invariants read them."""

from dataclasses import dataclass
from datetime import datetime

from leeward.model.pod import Pod


@dataclass(frozen=True, slots=True, kw_only=True)
class Deletion:
    """Pod that was deleted without asking any budget; `instance` stands behind the node, empty without one. `own` and
    `given`: seconds of grace that the pod asks for and that it got.
    """

    at: datetime
    pod: str
    instance: str
    own: float = 0
    given: float = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Eviction:
    """Pod that was evicted through the Eviction API, as it was known; `instance` stands behind the node."""

    at: datetime
    pod: Pod
    instance: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """Node object that was removed."""

    at: datetime
    node: str
    instance: str
