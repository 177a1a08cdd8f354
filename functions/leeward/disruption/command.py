"""Decisions of voluntary disruption: commands, and a sentence for every node and method."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from leeward.model.instance import CapacityType


class MethodName(StrEnum):
    """Closed set of `leeward plan --method`. The last is not a voluntary one: `leeward.reconcile` decides it."""

    EXPIRATION = "expiration"
    DRIFT = "drift"
    EMPTINESS = "emptiness"
    CONSOLIDATION = "consolidation"
    UNHEALTHY = "unhealthy"


class CommandDecision(StrEnum):
    """Choice between deleting nodes alone and launching replacements first; only repair may reboot instead."""

    DELETE = "delete"
    REPLACE = "replace"
    REBOOT = "reboot"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedReplacement:
    """One node to launch: its group, every type that may come up, the zones in which the pods fit, and its capacity
    type (None: the group mixes both). `price`: dollars an hour of the most expensive, None where it is not known.
    """

    group: str
    types: tuple[str, ...]
    zones: tuple[str, ...]
    capacity: CapacityType | None
    price: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """Nodes that are disrupted together. `savings` in dollars an hour, None where a price is not known; `cost`:
    disruption cost; `score`: under `consolidationPolicy: Balanced`, else None. `placements`: pod (`namespace/name`) to
    node, new nodes by the scheduler's names. `inputs`: digest of what the choice of new nodes depends on
    (`targets.launch_inputs`), empty where none is launched or the command is not claimed yet.
    """

    decision: CommandDecision
    nodes: tuple[str, ...]
    reason: str
    replacements: tuple[PlannedReplacement, ...] = ()
    savings: float | None = None
    cost: float = 0.0
    score: float | None = None
    placements: Mapping[str, str] = field(default_factory=dict)
    inputs: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodVerdict:
    """Finding of one method about one node. `candidate`: the method considered the node; `stays`: the reason keeps
    the node, False where it is removed, could be removed by a later run, or was not evaluated in time.
    """

    candidate: bool
    reason: str
    stays: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodOutcome:
    """Result of one method; `verdicts` by node, one for every node of the cluster. `before_empty`: its command saves
    more than it would once empty nodes have been removed.
    """

    commands: tuple[Command, ...]
    verdicts: Mapping[str, MethodVerdict]
    before_empty: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DisruptionPlan:
    """One run: the method that acts, None when none does, and the verdict of every method on every node.

    `verdicts`: by node, then by method in their order. `timed_out`: the methods whose search the time has ended.
    """

    method: MethodName | None
    commands: tuple[Command, ...]
    verdicts: Mapping[str, Mapping[MethodName, MethodVerdict]]
    warnings: tuple[str, ...] = ()
    timed_out: tuple[MethodName, ...] = ()
