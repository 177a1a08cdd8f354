"""Record of a run, with which another execution can finish the run when its execution dies.

The record is the claim as well: one for each cluster, so that two runs cannot spend one budget twice. Everything else
is read from the cluster and the groups at each step. Writes are conditional on `version`, and come before the calls
that they announce."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from hashlib import sha256

from leeward.disruption.command import Command, CommandDecision, MethodName, PlannedReplacement
from leeward.model.capacity import SurgeInstance, SurgeOwner
from leeward.model.planning_memory import FailedCommand, RememberedNode, WantedLaunch
from leeward.model.termination import CauseKind

LONGEST_COOLDOWN = timedelta(days=7)  # a cooldown that is longer is dropped, and a failed command as old forgotten
MOST_FAILED = 50  # failed commands that are remembered
GONE, STAYED = "gone", "stayed"
CAUSES: Mapping[MethodName, CauseKind] = {
    MethodName.EXPIRATION: CauseKind.EXPIRED,
    MethodName.DRIFT: CauseKind.DRIFTED,
    MethodName.EMPTINESS: CauseKind.EMPTY,
    MethodName.CONSOLIDATION: CauseKind.UNDERUTILIZED,
}


class DisruptionOutcome(StrEnum):
    """Outcome of a run."""

    DONE = "done"
    GIVEN_UP = "given-up"  # nothing was disrupted: the state changed, or a replacement did not come


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchedNode:
    """New instance of a run: the replacement of a command, in the place in which it was launched."""

    command: int
    replacement: int
    group: str = ""
    zone: str = ""
    subnet: str = ""
    offset_by: str | None = None  # where it replaces no old node, the instance whose termination offsets it
    undone: bool = False  # its own end has shrunk the group, so that it needs no offset

    @property
    def key(self) -> str:
        """Key of the replacement in the record's orders."""
        return replacement_key(self.command, self.replacement)


@dataclass(frozen=True, slots=True, kw_only=True)
class DisruptionRecord:
    """One run of one cluster."""

    cluster: str
    number: int
    method: MethodName
    began: datetime
    commands: tuple[Command, ...]
    nodes: Mapping[str, str]  # name -> instance of every node that it claims
    members: Mapping[str, str]  # name of such a node -> its group
    groups: tuple[str, ...]  # those of the nodes and those in which it launches
    version: int = 0
    execution: str = ""  # holds the run
    attempt: int = 0  # number of that execution
    dropped: Mapping[str, str] = field(default_factory=dict)  # number of a command -> why it is not carried out now
    suspended: tuple[str, ...] = ()  # groups whose AZRebalance we have suspended
    # number of a command and of its replacement, `C.R` -> `zone/subnet` still to be tried, the current one first
    orders: Mapping[str, str] = field(default_factory=dict)
    launched: Mapping[str, LaunchedNode] = field(default_factory=dict)  # by new instance
    refusals: Mapping[str, str] = field(default_factory=dict)  # group -> why LaunchInstances does not serve it
    awaited: Mapping[str, str] = field(default_factory=dict)  # `C.R` -> the group whose desired size brings it instead
    sizes: Mapping[str, int] = field(default_factory=dict)  # group -> that desired size
    before: Mapping[str, str] = field(default_factory=dict)  # group -> its instances before that, comma between
    requested: bool = False  # the nodes' terminations have been requested and own them now
    # instance -> `gone`, or `stayed` where it was returned to service or its group replaced it
    ends: Mapping[str, str] = field(default_factory=dict)
    cooldowns: Mapping[str, datetime] = field(default_factory=dict)  # group -> when its last run ended, of any run
    retry: datetime | None = None  # not taken up again before
    ended: datetime | None = None
    outcome: DisruptionOutcome | None = None
    why: str = ""
    wanted: Mapping[str, WantedLaunch] = field(default_factory=dict)  # by group, of this run and earlier ones
    failed: Mapping[str, FailedCommand] = field(default_factory=dict)  # by its inputs, of this run and earlier ones
    seen: Mapping[str, RememberedNode] = field(default_factory=dict)  # by `GROUP/TYPE`, of this run and earlier ones
    requested_by: str = ""  # who has started it, empty for the planner

    @property
    def open(self) -> bool:
        """True if the run has not ended: an execution has to finish it."""
        return self.ended is None

    @property
    def active_commands(self) -> Mapping[int, Command]:
        """Commands that are carried out, by number."""
        return {number: one for number, one in enumerate(self.commands) if str(number) not in self.dropped}

    @property
    def to_terminate(self) -> Mapping[str, str]:
        """Name -> instance of the nodes of the active commands."""
        return {name: self.nodes[name] for one in self.active_commands.values() for name in one.nodes}

    @property
    def under_way(self) -> tuple[str, ...]:
        """Instances of these commands whose end is not known yet."""
        return tuple(instance for instance in self.to_terminate.values() if instance not in self.ends)

    @property
    def staying(self) -> Mapping[str, str]:
        """Nodes that were claimed and stay."""
        terminated = self.to_terminate
        return {name: instance for name, instance in self.nodes.items() if name not in terminated}

    @property
    def cause(self) -> CauseKind:
        """Cause with which its nodes are terminated."""
        return CAUSES[self.method]

    @property
    def summary(self) -> str:
        """Summary of the commands: `drift: replace node-a; delete node-b`."""
        commands = "; ".join(f"{one.decision.value} {', '.join(one.nodes)}" for one in self.active_commands.values())
        return f"{self.method.value}: {commands}"

    @property
    def gone(self) -> frozenset[str]:
        """Names of the nodes of these commands that are gone."""
        return frozenset(name for name, instance in self.to_terminate.items() if self.ends.get(instance) == GONE)

    @property
    def saved(self) -> tuple[tuple[Command, float], ...]:
        """Commands of which every node is gone, with their savings in dollars an hour; one without a price is none."""
        gone = self.gone
        return tuple(
            (command, command.savings)
            for command in self.active_commands.values()
            if command.savings is not None and gone.issuperset(command.nodes)
        )

    def new_of(self, number: int) -> tuple[str, ...]:
        """Return the instances launched for a command."""
        return tuple(new for new, node in self.launched.items() if node.command == number)

    def to_launch(self) -> tuple[str, ...]:
        """Return the keys `C.R` of replacements for which nothing was launched yet, and no group grows."""
        wanted = (
            replacement_key(number, place)
            for number, one in self.active_commands.items()
            if one.decision is CommandDecision.REPLACE
            for place in range(len(one.replacements))
        )
        there = {*(node.key for node in self.launched.values()), *self.awaited}
        return tuple(key for key in wanted if key not in there)

    def outstanding(self) -> Mapping[str, str]:
        """Return the part of `awaited` that has not come up yet."""
        there = {node.key for node in self.launched.values()}
        return {key: group for key, group in self.awaited.items() if key not in there}

    def planned(self, key: str) -> PlannedReplacement:
        """Return the replacement that was planned under the key `C.R`."""
        number, place = replacement_of(key)
        return self.commands[number].replacements[place]

    def surplus(self) -> tuple[str, ...]:
        """Return the new instances that replace no old node: those of dropped commands, and of commands whose nodes all
        stayed. Those whose offset is decided are not named again.
        """
        kept: set[str] = set()
        for number, one in self.active_commands.items():
            ends = [self.ends.get(self.nodes[name], "") for name in one.nodes]
            if not self.requested or GONE in ends or "" in ends:
                kept.update(self.new_of(number))
        decided = {new for new, node in self.launched.items() if node.undone or node.offset_by is not None}
        return tuple(new for new in self.launched if new not in kept and new not in decided)

    def drop(self, why: Mapping[int, str]) -> "DisruptionRecord":
        """Return the record without these commands."""
        return replace(self, dropped={**self.dropped, **{str(number): text[:300] for number, text in why.items()}})

    def remember_failed(self, why: Mapping[int, str], now: datetime) -> "DisruptionRecord":
        """Return the record with the inputs of commands, by number, whose new nodes came up and did not serve: the same
        command is not proposed again until its inputs change. The oldest go first, and those older than a week.
        """
        recent = {inputs: one for inputs, one in self.failed.items() if now - one.at < LONGEST_COOLDOWN}
        for number, text in why.items():
            inputs = self.commands[number].inputs
            if inputs and self.new_of(number):
                recent[inputs] = FailedCommand(run=self.number, at=now, why=text[:300])
        return replace(self, failed=dict(list(recent.items())[-MOST_FAILED:]))

    def closed(self, outcome: DisruptionOutcome, why: str, now: datetime) -> "DisruptionRecord":
        """Return the record as ended; the cooldown of its groups begins now."""
        cooldowns = {group: at for group, at in self.cooldowns.items() if now - at < LONGEST_COOLDOWN}
        cooldowns |= dict.fromkeys(self.groups, now)
        return replace(self, ended=now, outcome=outcome, why=why[:500], cooldowns=cooldowns, retry=None)


def replacement_key(command: int, replacement: int) -> str:
    """Return `C.R`, the key of a command's replacement in maps of the record."""
    return f"{command}.{replacement}"


def replacement_of(key: str) -> tuple[int, int]:
    """Return (number of the command, number of its replacement), which `replacement_key` wrote."""
    command, _, replacement = key.partition(".")
    return int(command), int(replacement)


def command_of(key: str) -> int:
    """Return the number of the command whose replacement has this key."""
    return replacement_of(key)[0]


def cause_id(record: DisruptionRecord, instance: str) -> str:
    """Return the id of the cause with which a node of the run is terminated."""
    return f"disruption#{record.cluster}#{record.number}#{instance}"


def surge_of(record: DisruptionRecord, instance: str) -> SurgeInstance:
    """Return the ledger's entry that makes the termination shrink the group: each removal of a run is one termination
    with decrement.
    """
    return SurgeInstance(owner=SurgeOwner.DISRUPTION, instance=instance, request=str(record.number))


def launch_token(record: DisruptionRecord, key: str, subnet: str) -> str:
    """Return the client token of one launch in one subnet (at most 64 characters): a repeated request is idempotent."""
    launch = f"{record.cluster}/{record.number}/{record.began:%Y%m%dT%H%M%S}/{key}/{subnet}"
    return f"leeward-disruption-{sha256(launch.encode()).hexdigest()[:32]}"


def groups_named(groups: Iterable[str], commands: Iterable[Command]) -> tuple[str, ...]:
    """Return the groups of the nodes and those of the replacements, by name."""
    new = {one.group for command in commands for one in command.replacements}
    return tuple(sorted({*groups, *new}))
