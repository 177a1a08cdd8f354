"""What the invariants look at and what they answer: the world as it stands, the rules, a violation. Decides nothing."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Protocol

from leeward.model.group import Group
from leeward.model.termination import TerminationRecord
from leeward.policy.document import ClusterPolicies
from local.cluster.model import Cluster
from simulation.kubernetes import Deletion, Removal

HookCall = tuple[str, str, str, bool]  # group, hook, instance, whether it was us


class Rule(StrEnum):
    """The first nine hold always, the others at the end."""

    EVICTION = "no eviction that a PodDisruptionBudget forbids"
    DELETION = "no pod deleted by us without force"
    FOREIGN_HOOK = "no foreign hook answered or heartbeaten by us"
    DECREMENT = "desired size lowered by us only to pay for a launch"
    ANSWER = "every hook of ours is answered by us"
    LAUNCH = "one launch for each token"
    EXECUTION = "at most one open execution for each instance"
    REMOVAL = "no Node of a running instance removed by us"
    CORDON = "no cordon of ours left when our mark comes off"
    MARK = "no mark without an open record"
    GONE = "no open record whose instance is gone"
    HOOK = "no hook of ours waits without an open record"
    MESSAGE = "no message is left"
    RECORD = "every record is closed or comes up for a retry"
    SIZE = "groups are at their desired size"
    DEBT = "every launch of ours is paid for"


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """`at` in seconds since 1970; `text` names what was found. `seed` repeats the run, None outside of one."""

    seed: int | None
    at: float
    rule: Rule
    text: str

    def __str__(self) -> str:
        """One line for the story of the run."""
        when = datetime.fromtimestamp(self.at, UTC).strftime("%d %H:%M:%S")
        return f"seed {self.seed} at {when}: {self.rule.value}: {self.text}"


class WorldView(Protocol):
    """The world as it stands after an event. Sequences only ever grow at their end."""

    @property
    def now(self) -> float:
        """Seconds since 1970."""
        ...

    @property
    def cluster(self) -> Cluster:
        """The cluster model."""
        ...

    @property
    def policies(self) -> ClusterPolicies:
        """What is written down for it."""
        ...

    @property
    def groups(self) -> Mapping[str, Group]:
        """By name, as they stand."""
        ...

    @property
    def records(self) -> Mapping[str, TerminationRecord]:
        """By instance, closed ones too as long as the table keeps them."""
        ...

    @property
    def waiting(self) -> Set[tuple[str, str, str]]:
        """(group, hook, instance) of every action that holds an instance."""
        ...

    @property
    def completed_hooks(self) -> Sequence[HookCall]:
        """Answers that had an effect; not by us: by its owner, or the default result after a time-out."""
        ...

    @property
    def heartbeats(self) -> Sequence[HookCall]:
        """Heartbeats that had an effect."""
        ...

    @property
    def open_executions(self) -> Set[str]:
        """Names; those of ours are INSTANCE-ATTEMPT, one started by hand has any other."""
        ...

    @property
    def queue_depth(self) -> int:
        """Visible or delayed messages."""
        ...

    @property
    def in_flight(self) -> int:
        """Messages that a function has received and not deleted."""
        ...

    @property
    def launches(self) -> Sequence[tuple[str, str]]:
        """(token, instance) of each instance launched for us; a repeat that launches nothing is not listed."""
        ...

    @property
    def decrements(self) -> Sequence[str]:
        """Instances that we terminated with decrement."""
        ...

    @property
    def deletions(self) -> Sequence[Deletion]:
        """Pods deleted by us past the Eviction API (`SimKubernetes.deletions`)."""
        ...

    @property
    def removals(self) -> Sequence[Removal]:
        """Nodes removed by us (`SimKubernetes.removals`)."""
        ...

    def ours(self, hook: str, group: str) -> bool:
        """Whether the hook is ours to answer, by who put it there: not by the product's own reckoning."""
        ...

    def running(self, instance: str) -> bool:
        """Whether EC2 knows the instance and has not begun to end it."""
        ...
