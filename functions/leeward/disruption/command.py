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
    """One node to launch."""

    group: str
    types: tuple[str, ...]  # every type that may come up
    zones: tuple[str, ...]  # in which the pods fit
    capacity: CapacityType | None  # None: the group mixes both
    price: float | None = None  # dollars an hour of the most expensive, None where it is not known


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """Nodes that are disrupted together."""

    decision: CommandDecision
    nodes: tuple[str, ...]
    reason: str
    replacements: tuple[PlannedReplacement, ...] = ()
    savings: float | None = None  # dollars an hour, None where a price is not known
    cost: float = 0.0  # disruption cost
    score: float | None = None  # under `consolidationPolicy: Balanced`
    placements: Mapping[str, str] = field(default_factory=dict)  # pod -> node, new nodes by the scheduler's names
    # digest of what the choice of new nodes depends on (`targets.launch_inputs`), empty where none is launched or the
    # command is not claimed yet
    inputs: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodVerdict:
    """Finding of one method about one node."""

    candidate: bool  # the method considered the node
    reason: str
    stays: bool = True  # the reason keeps it; False: removed, removable by a later run, or not evaluated in time


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
