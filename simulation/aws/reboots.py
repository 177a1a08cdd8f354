"""Reboots of instances: how long one takes, whether it helps, and those that never come back."""

from dataclasses import dataclass
from random import Random

from simulation.aws.compute import SimInstance
from simulation.aws.listeners import Listeners
from simulation.journal import Journal
from simulation.timeline import Timeline

GOES_DOWN = 5.0  # seconds from the request until the kubelet is gone
TAKES = (40.0, 240.0)  # from then until it reports another boot id
NEVER, HELPS = 0.15, 0.7  # chances that it never comes back, and else that its condition is gone then


@dataclass(frozen=True, slots=True, kw_only=True)
class Requested:
    """Reboot that we have requested. `at` in seconds since 1970."""

    instance: str
    at: float


class Reboots:
    """Reboots of a fleet. `requested`: those through the product's port."""

    def __init__(self, timeline: Timeline, random: Random, to: Listeners) -> None:
        self._timeline, self._random, self._to = timeline, random, to
        self.requested = Journal[Requested]()

    def request(self, member: SimInstance | None) -> None:
        """Run RebootInstances for the product."""
        if member is None or member.gone:
            return
        self.requested.append(Requested(instance=member.id, at=self._timeline.now()))
        never = self._random.random() < NEVER
        self.reboot(member, back=None if never else self._random.uniform(*TAKES), helps=self._random.random() < HELPS)

    def reboot(self, member: SimInstance, *, back: float | None, helps: bool = True) -> None:
        """Reboot an instance, which is up again `back` seconds after it went down; None: never."""
        self._to.said(f"{member.id} is rebooted")
        self._timeline.after(GOES_DOWN, lambda: self._goes_down(member), "an instance goes down")
        if back is not None:
            self._timeline.after(GOES_DOWN + back, lambda: self._comes_back(member, helps=helps), "an instance is up")

    def _goes_down(self, member: SimInstance) -> None:
        if not member.gone:
            self._to.down(member)

    def _comes_back(self, member: SimInstance, *, helps: bool) -> None:
        if not member.gone:
            self._to.up(member, helps)
