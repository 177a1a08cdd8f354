"""One blocker of a node, in a form for people and programs, and the owner of a pod: the workload that people know."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from leeward.model.pod import Pod, deployment_named_by
from leeward.model.times import format_instant


class BlockerKind(StrEnum):
    """Closed set of conditions that can block a node.

    The opt-outs (`do-not-disrupt`, `safe-to-evict`, `disruption-window`, and all that begin with `node-` or `policy-`)
    and `beyond-limits` block only voluntary disruption; a pod that `tolerates-taint` blocks drains of kubectl and EKS,
    and emptiness, not Leeward's own drains; a `foreign-taint` keeps pods away from the node.
    """

    PDB_NONE_NOW = "pdb-none-now"
    PDB_NEVER = "pdb-never"
    PDB_SYNC_FAILED = "pdb-sync-failed"
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
    DISRUPTION_WINDOW = "disruption-window"
    BEYOND_LIMITS = "beyond-limits"
    NODE_DO_NOT_DISRUPT = "node-do-not-disrupt"
    NODE_DO_NOT_CONSOLIDATE = "node-do-not-consolidate"
    NODE_SCALE_DOWN_DISABLED = "node-scale-down-disabled"
    POLICY_DO_NOT_DISRUPT = "policy-do-not-disrupt"
    FOREIGN_TAINT = "foreign-taint"


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocker:
    """One blocker. `pod`: namespace/name, None where no pod is concerned. `owner`: Kind/name of the object that can
    change it. `object`: the blocking object, by kind and name. `until`: the latest moment at which it stops blocking by
    itself, or at which nothing waits for it any longer; None: no end is known. `fix`: one sentence with its command.
    `since`: from which moment on a pod's own fields, or a taint, hold it; None: unknown, or another object holds it.
    """

    node: str
    pod: str | None
    owner: str
    kind: BlockerKind
    object: str
    until: datetime | None
    fix: str
    since: datetime | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form, which `docs/schema/blockers.json` describes."""
        return {
            "node": self.node,
            "pod": self.pod,
            "owner": self.owner,
            "kind": self.kind.value,
            "object": self.object,
            "until": format_instant(self.until) if self.until else None,
            "fix": self.fix,
            **({"since": format_instant(self.since)} if self.since and self.kind is BlockerKind.FOREIGN_TAINT else {}),
        }


def owner_of(pod: Pod) -> str:
    """Return `Deployment/web`, `StatefulSet/db`, `Pod/lonely` without a controller, `Node/n` for a static one."""
    if pod.mirror:
        return f"Node/{pod.node}"
    if pod.owner is None:
        return f"Pod/{pod.name}"
    deployment = deployment_named_by(pod)
    return f"Deployment/{deployment}" if deployment else f"{pod.owner.kind}/{pod.owner.name}"


def resource_of(pod: Pod) -> str:
    """Return the owner as kubectl takes it: `deployment web`."""
    kind, _, name = owner_of(pod).partition("/")
    return f"{kind.lower()} {name}"
