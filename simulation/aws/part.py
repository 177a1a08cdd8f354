"""The groups of one cluster out of a fleet whose groups belong to several: what its owners, AWS and its rules see."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from simulation.aws.compute import SimGroup, SimInstance, Waiting
from simulation.aws.fleet import SimFleet
from simulation.excerpts import Excerpt, Part


class PartOfFleet:
    """Fleet with the groups of one cluster alone. Everything else is the whole fleet's.

    `first`: it takes instances in, of which the fleet knows nothing.
    """

    def __init__(self, fleet: SimFleet, cluster: str, *, first: bool) -> None:
        self._fleet, self._first = fleet, first
        self.groups: Mapping[str, SimGroup] = {
            name: group for name, group in fleet.groups.items() if fleet.served[name] == cluster
        }
        self.instances: Mapping[str, SimInstance] = Part(lambda: fleet.instances, self.has)
        self.waiting: Mapping[tuple[str, str, str], Waiting] = Part(
            lambda: fleet.waiting, lambda action: action[0] in self.groups
        )
        self.timed_out: Sequence[tuple[str, str, str]] = Excerpt(
            fleet.timed_out, lambda action: action[0] in self.groups
        )

    def has(self, instance: str) -> bool:
        """Return whether one of its groups has launched the instance, however long ago."""
        group = self._fleet.homes.get(instance)
        return self._first if group is None else group in self.groups

    @property
    def protects(self) -> Callable[[SimInstance], bool]:
        """Rule by which new instances are protected from scale-in; setting it leaves other clusters' as it is."""
        return self._fleet.protects

    @protects.setter
    def protects(self, rule: Callable[[SimInstance], bool]) -> None:
        before = self._fleet.protects
        self._fleet.protects = lambda member: (rule if member.group in self.groups else before)(member)

    @property
    def named(self) -> Callable[[SimInstance], str]:
        """Rule that names a new Node; setting it leaves other clusters' as it is."""
        return self._fleet.named

    @named.setter
    def named(self, rule: Callable[[SimInstance], str]) -> None:
        before = self._fleet.named
        self._fleet.named = lambda member: (rule if member.group in self.groups else before)(member)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._fleet, name)
