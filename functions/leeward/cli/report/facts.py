"""Facts of one execution, read from their sources: everything that a report may draw.

Decides nothing; a fact that could not be read, or that is no longer kept, is a sentence in `missing`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Self

from leeward.disruption.record import DisruptionRecord
from leeward.model import well_known
from leeward.model.execution import Execution, Step
from leeward.model.group import ScalingActivity
from leeward.model.instance import Instance, instance_id_of
from leeward.model.termination import TerminationRecord
from leeward.model.times import parse_instant
from leeward.upgrade.record import UpgradeRecord

EARLIER = timedelta(minutes=10)  # a cause before that is not part of what the chart shows
LEAD = timedelta(seconds=2)  # before the first moment, so that the state before it is visible


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenNode:
    """Node that still exists. `ready`: since when, None while it is not; `cordoned_for`: the upgrade that did it."""

    name: str
    instance: str
    zone: str
    created: datetime
    ready: datetime | None = None
    cordoned_for: str = ""

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """Read a Node of the API."""
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
    """Kubernetes Event that is still kept. `about`: name of the Node or, with its namespace, of any other object."""

    at: datetime
    about: str
    reason: str
    message: str

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """Read an Event of the API, with its first time: repeats only report that the state persists."""
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
    """Steps of one execution of an instance's own termination."""

    attempt: int
    steps: Sequence[Step]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportFacts:
    """Facts of one execution. `touched`: the affected instances, in the order in which they were found; `terminations`,
    `stories`, `instances` and `nodes` by instance, `activities` by group; `events`: those of Leeward, `joined`: when
    kubelets reported NodeReady, by node: each name may have had several nodes, as addresses are given out again.
    `upgrade`, `disruption`: the record, where it is still this execution's.
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
    events: Sequence[SeenEvent] = ()
    joined: Mapping[str, Sequence[datetime]] = field(default_factory=dict)
    upgrade: UpgradeRecord | None = None
    disruption: DisruptionRecord | None = None
    missing: Sequence[str] = ()

    @property
    def end(self) -> datetime:
        """Time when it ended; now, while it runs."""
        return max(self.execution.stopped or self.now, self.execution.started)

    def start(self, begin: datetime) -> datetime:
        """Return the start of the chart, a little before `begin`, its first moment."""
        return begin - max(LEAD, (self.end - begin) / 50)

    @property
    def ended(self) -> bool:
        """True if it no longer runs."""
        return self.execution.stopped is not None

    def name_of(self, instance: str) -> str:
        """Return the name of the instance's Node if one is known, else the instance id."""
        record, node = self.terminations.get(instance), self.nodes.get(instance)
        return (record.subject.node if record else None) or (node.name if node else "") or instance
