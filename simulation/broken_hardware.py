"""Broken hardware of one cluster of a world: conditions of the node monitoring agent, some of which pass, and reboots
that EC2 schedules for the hosts. AWS Health's message about a reboot may be lost, and a reboot may be canceled."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from simulation.aws.compute import IN_SERVICE, SimInstance
from simulation.hosts import fail, heal

if TYPE_CHECKING:
    from simulation.scene import Scene

FAILS_EVERY, REBOOTS_EVERY = 700.0, 1500.0  # seconds
PASSES, PASSES_AFTER = 0.4, (30.0, 1200.0)  # share of conditions that are over by themselves, and when
AHEAD, LATE = (120.0, 3000.0), 240.0  # seconds from the announcement to the date, and from the date to the reboot
LOST, CANCELED = 0.4, 0.15  # of the messages, of the reboots
KINDS = ("AcceleratedHardwareReady", "AcceleratedHardwareReady", "KernelReady")


class BrokenHardware:
    """Hardware of the instances that serve."""

    def __init__(self, scene: Scene, random: Random) -> None:
        self._scene, self._random = scene, random

    def fail(self) -> None:
        """Write an unhealthy condition of a node whose kubelet stays Ready."""
        member = self._one()
        if member is None or not self._registered(member):
            return
        kind = self._random.choice(KINDS)
        fail(self._scene.cluster, member.node, kind)
        self._scene.say(f"{kind} of {member.id} becomes False")
        if self._random.random() < PASSES:
            pause = self._random.uniform(*PASSES_AFTER)
            self._scene.timeline.after(pause, lambda: self._heal(member, kind), "a condition passes")

    def schedule(self) -> None:
        """Let EC2 schedule a reboot."""
        member = self._one()
        if member is None or member.id in self._scene.fleet.notices.scheduled:
            return
        ahead, lost = self._random.uniform(*AHEAD), self._random.random() < LOST
        canceled = self._random.random() < CANCELED
        after = ahead * self._random.random() if canceled else ahead + self._random.uniform(0, LATE)
        self._scene.say(f"EC2 reboots {member.id} in {ahead:.0f} s{', its message is lost' if lost else ''}")
        self._scene.fleet.notices.reboot(member, self._scene.timeline.now() + ahead, lost=lost)
        self._scene.timeline.after(after, lambda: self._end(member, canceled=canceled), "a scheduled reboot")

    def _end(self, member: SimInstance, *, canceled: bool) -> None:
        if not member.gone:
            self._scene.fleet.notices.reboot_over(member, canceled=canceled)
            if not canceled:
                self._scene.fleet.reboots.reboot(member, back=self._random.uniform(30, 240))

    def _heal(self, member: SimInstance, kind: str) -> None:
        if not member.gone and self._registered(member):
            heal(self._scene.cluster, member.node, kind)
            self._scene.say(f"{kind} of {member.id} is over")

    def _one(self) -> SimInstance | None:
        serving = [m for m in self._scene.fleet.instances.values() if m.lifecycle == IN_SERVICE and m.joined]
        return self._random.choice(serving) if serving else None

    def _registered(self, member: SimInstance) -> bool:
        return self._scene.cluster.store.find("nodes", member.node) is not None
