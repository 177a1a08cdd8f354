"""What was seen of one play: plain data, from which everything is judged, and which tests can write by hand."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Event = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    """One pod of the play's workload."""

    node: str
    ready: bool
    deleting: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenNode:
    """One Node of the group."""

    name: str
    ready: bool = True
    cordoned: bool = False
    marked: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One look. `at`: seconds since 1970; `members`: lifecycle state by instance; `budget`: (healthy, wanted) pods."""

    at: float
    desired: int
    members: Mapping[str, str] = field(default_factory=dict)
    nodes: Mapping[str, SeenNode] = field(default_factory=dict)
    pods: Mapping[str, Pod] = field(default_factory=dict)
    budget: tuple[int, int] | None = None

    @property
    def serving(self) -> int:
        """Members in service."""
        return sum(state == "InService" for state in self.members.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Termination:
    """One record of the table, cut down. `times`: RFC 3339 by what happened."""

    instance: str
    status: str
    causes: tuple[str, ...] = ()
    launched: tuple[str, ...] = ()
    replacement: str = ""
    times: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Of a group, and what is suspended in it."""

    minimum: int
    desired: int
    maximum: int
    suspended: tuple[str, ...] = ()


@dataclass(kw_only=True)
class Recording:
    """`victims`: the instances that are to go, where the play names them; `versions`: of the launch template, of the
    members at the end; `executions`: status by name, of node-termination; `machine`: how the execution of an upgrade or
    a round ended; `letters_before`:
    bodies in the dead-letter queue when it began; `ended`: whether the play came to its end in time.
    """

    play: str
    began: float
    group: str = ""
    before: Sizes | None = None
    after: Sizes | None = None
    members_before: tuple[str, ...] = ()
    victims: tuple[str, ...] = ()
    samples: list[Sample] = field(default_factory=list)
    terminations: list[Termination] = field(default_factory=list)
    executions: dict[str, str] = field(default_factory=dict)
    machine: str = ""
    machine_error: str = ""
    versions: tuple[str, ...] = ()
    events: list[Event] = field(default_factory=list)
    dead_letters: list[tuple[str, str]] = field(default_factory=list)
    nonsense: str | None = None
    letters_before: tuple[str, ...] = ()
    queue_depth: int = 0
    hook_state: str = ""
    ended: bool = False
    seconds: float = 0.0
