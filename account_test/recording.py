"""Observations of one play: plain data, from which everything is judged, and which tests can write manually."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Event = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    """Pod of the play's workload."""

    node: str
    ready: bool
    deleting: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenNode:
    """Node of the group."""

    name: str
    ready: bool = True
    cordoned: bool = False
    tainted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One observation. `at`: seconds since 1970; `members`: lifecycle state by instance; `budget`: (healthy, wanted)
    pods.
    """

    at: float
    desired: int
    members: Mapping[str, str] = field(default_factory=dict)
    nodes: Mapping[str, SeenNode] = field(default_factory=dict)
    pods: Mapping[str, Pod] = field(default_factory=dict)
    budget: tuple[int, int] | None = None

    @property
    def serving(self) -> int:
        """Number of members in service."""
        return sum(state == "InService" for state in self.members.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Termination:
    """Record of the table, reduced. `times`: RFC 3339 by event."""

    instance: str
    status: str
    causes: tuple[str, ...] = ()
    launched: tuple[str, ...] = ()
    replacement: str = ""
    times: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Sizes of a group, and its suspended processes."""

    minimum: int
    desired: int
    maximum: int
    suspended: tuple[str, ...] = ()


@dataclass(kw_only=True)
class Recording:
    """Recording of one play. `victims`: the instances to be terminated, where the play names them; `versions`: of the
    launch template, of the members at the end; `executions`: status by name, of node-termination; `machine`: final
    status of the execution of an upgrade or a disruption run; `letters_before`: bodies in the dead-letter queue when it
    began; `ended`: True when the play ended in time.
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
