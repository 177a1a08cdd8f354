"""One thing that blocks a node, as people and programs read it."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from leeward.model.times import format_instant


class Kind(StrEnum):
    """The closed set of what can block a node.

    The opt-outs (`do-not-disrupt`, `safe-to-evict`, and all that begin with `node-` or `policy-`) hold up voluntary
    disruption alone; a pod that `tolerates-taint` holds up drains of kubectl and EKS, and emptiness, not Leeward's own.
    """

    PDB_NONE_NOW = "pdb-none-now"
    PDB_NEVER = "pdb-never"
    PDB_SEVERAL = "pdb-several"
    PDB_FAILING_POD = "pdb-failing-pod"
    WEBHOOK = "webhook"
    ADMISSION_POLICY = "admission-policy"
    EVICTION_FAILS = "eviction-fails"
    UNMANAGED_POD = "unmanaged-pod"
    LOCAL_DATA = "local-data"
    TOLERATES_TAINT = "tolerates-taint"
    STUCK_POD = "stuck-pod"
    POD_FINALIZER = "pod-finalizer"
    VOLUME_ATTACHED = "volume-attached"
    LIFECYCLE_HOOK = "lifecycle-hook"
    DO_NOT_DISRUPT = "do-not-disrupt"
    SAFE_TO_EVICT = "safe-to-evict"
    NODE_DO_NOT_DISRUPT = "node-do-not-disrupt"
    NODE_DO_NOT_CONSOLIDATE = "node-do-not-consolidate"
    NODE_SCALE_DOWN_DISABLED = "node-scale-down-disabled"
    POLICY_DO_NOT_DISRUPT = "policy-do-not-disrupt"


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocker:
    """`pod`: namespace/name, None where no pod is concerned. `owner`: Kind/name of who can change it. `object`: what
    blocks, by kind and name. `until`: the latest moment at which it ends to block by itself, or at which nobody waits
    for it any longer; None: no end is known. `fix`: the way out, one sentence with its command.
    """

    node: str
    pod: str | None
    owner: str
    kind: Kind
    object: str
    until: datetime | None
    fix: str

    def to_json(self) -> dict[str, Any]:
        """docs/command-line.md; `docs/schema/blockers.json` describes it."""
        return {
            "node": self.node,
            "pod": self.pod,
            "owner": self.owner,
            "kind": self.kind.value,
            "object": self.object,
            "until": format_instant(self.until) if self.until else None,
            "fix": self.fix,
        }
