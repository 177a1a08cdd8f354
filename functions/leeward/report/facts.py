"""What was read of one execution, from wherever facts really are: all that a report may draw.

Nothing here decides anything; what could not be read, or is not kept for so long, is a sentence in `missing`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Self

from leeward.disruption.record import RoundRecord
from leeward.model import well_known
from leeward.model.execution import Execution, Step
from leeward.model.group import ScalingActivity
from leeward.model.instance import Instance, instance_id_of
from leeward.model.termination import TerminationRecord
from leeward.model.times import parse_instant
from leeward.upgrade.record import UpgradeRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenNode:
    """A Node that is still there. `ready`: since when it is, None while it is not; `cordoned_for`: by which upgrade."""

    name: str
    instance: str
    zone: str
    created: datetime
    ready: datetime | None = None
    cordoned_for: str = ""

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """From a Node of the API."""
        meta, spec = raw["metadata"], raw.get("spec") or {}
        conditions = (raw.get("status") or {}).get("conditions") or ()
        ready: Mapping[str, Any] = next((one for one in conditions if _is_ready(one)), {})
        return cls(
            name=meta["name"],
            instance=instance_id_of(spec.get("providerID") or ""),
            zone=(meta.get("labels") or {}).get(well_known.ZONE_LABEL, ""),
            created=parse_instant(meta["creationTimestamp"]),
            ready=parse_instant(ready["lastTransitionTime"]) if ready.get("lastTransitionTime") else None,
            cordoned_for=(meta.get("annotations") or {}).get(well_known.CORDONED_FOR, ""),
        )


def _is_ready(condition: Mapping[str, Any]) -> bool:
    return condition.get("type") == "Ready" and condition.get("status") == "True"


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenEvent:
    """A Kubernetes Event that is still kept. `about`: the name of the Node or, with its namespace, of anything else."""

    at: datetime
    about: str
    reason: str
    message: str

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """From an Event of the API; its first time, as repeats only say that it still is so."""
        about, meta = raw["involvedObject"], raw["metadata"]
        at = raw.get("firstTimestamp") or raw.get("eventTime") or meta["creationTimestamp"]
        namespace = about.get("namespace") if about.get("kind") != "Node" else ""
        return cls(
            at=parse_instant(at),
            about=f"{namespace}/{about.get('name', '')}" if namespace else str(about.get("name", "")),
            reason=raw.get("reason") or "",
            message=raw.get("message") or "",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """What one execution of an instance's own termination went through."""

    attempt: int
    steps: Sequence[Step]


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Of one execution. `touched`: the instances that it drew, in the order in which they were found; `terminations`,
    `stories`, `instances` and `nodes` by instance, `activities` by group; `told`: Events of Leeward, `joined`: when
    kubelets first said NodeReady, by node. `upgrade`, `round`: the record, where it still is this execution's.
    """

    execution: Execution
    steps: Sequence[Step]
    now: datetime
    cluster: str = ""
    group: str = ""
    number: int = 0
    touched: Sequence[str] = ()
    terminations: Mapping[str, TerminationRecord] = field(default_factory=dict)
    stories: Mapping[str, Sequence[Story]] = field(default_factory=dict)
    instances: Mapping[str, Instance] = field(default_factory=dict)
    nodes: Mapping[str, SeenNode] = field(default_factory=dict)
    activities: Mapping[str, Sequence[ScalingActivity]] = field(default_factory=dict)
    told: Sequence[SeenEvent] = ()
    joined: Mapping[str, datetime] = field(default_factory=dict)
    upgrade: UpgradeRecord | None = None
    round: RoundRecord | None = None
    missing: Sequence[str] = ()

    @property
    def end(self) -> datetime:
        """When it ended; now, while it runs."""
        return max(self.execution.stopped or self.now, self.execution.started)

    @property
    def ended(self) -> bool:
        """It does not run any more."""
        return self.execution.stopped is not None

    def name_of(self, instance: str) -> str:
        """Of its Node, where one is known; else its own."""
        record, node = self.terminations.get(instance), self.nodes.get(instance)
        return (record.subject.node if record else None) or (node.name if node else "") or instance
