"""Operators who upgrade node groups: they start upgrades, pause and resume them, abort them and roll them back.

Half of them know the command line, which names its executions; the others start them manually under any name."""

from typing import Any

from leeward.upgrade.preflight.findings import Code
from leeward.workflow.executions import execution_name
from simulation.aws.compute import SimGroup
from simulation.definitions import NODE_GROUP_UPGRADE, UPGRADES
from simulation.ordered import Ordered
from simulation.scene import Scene
from simulation.upgrade_targets import asked_target, own_template

WHO = "an operator"
RESUMED_AFTER = 1800.0  # seconds: every pause is resumed in the end
ACTIONS = ("pause", "resume", "abort", "rollback")


class Upgraders:
    """Actions on upgrades. Each takes a `pick`, which chooses the group and what is done to it."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene

    def start(self, pick: int) -> None:
        """Start an upgrade to a new image, to the newest version, or without a target, which continues what an earlier
        one has left. Once in a while it is a group that no policy selects.
        """
        group = self._group(pick)
        asked: dict[str, Any] = {"group": group.name, **asked_target(self._scene, group, pick)}
        if pick >> 7 & 3:
            asked["override"] = [code.value for code in Code]
        if self._scene.flags and pick >> 9 & 1:
            asked["force"] = True
            self._scene.forced_upgrades.append((group.name, self._scene.timeline.now()))
        self._begin(group, asked, pick)

    def control(self, pick: int) -> None:
        """Pause, resume, abort or roll back. A pause is always resumed in the end."""
        known = sorted(self._scene.system.upgrades.records.keys() & self._scene.fleet.groups.keys())
        group = self._scene.fleet.groups[known[pick % len(known)]] if known and pick % 11 else self._group(pick)
        action = ACTIONS[pick >> 6 & 3]
        self._begin(group, {"group": group.name, "action": action}, pick)
        if action == "pause":
            self.resume_later(group, pick)

    def stop(self, pick: int) -> None:
        """Stop one of the open executions; it is started again some minutes later."""
        machines = [self._scene.system.machines[name] for name in UPGRADES]
        groups = self._scene.fleet.groups
        open_ = [
            (name, machine)
            for machine in machines
            for name, one in sorted(machine.executions.items())
            if str(one.input.get("group")) in groups
        ]
        if open_:
            name, machine = open_[pick % len(open_)]
            group = str(machine.executions[name].input.get("group"))
            self._scene.say(f"{WHO} stops {name}")
            machine.stop(name)
            self.resume_later(groups[group], pick)

    def resume_later(self, group: SimGroup, pick: int) -> None:
        """Resume a paused or stopped upgrade later, also when arrivals are over."""
        asked = {"group": group.name, "action": "resume"}
        self._scene.timeline.after(RESUMED_AFTER, lambda: self._begin(group, asked, pick + 1), "an upgrade is resumed")

    def _begin(self, group: SimGroup, asked: dict[str, Any], pick: int) -> None:
        record = self._scene.system.upgrades.records.get(group.name)
        attempt = record.attempt + 1 if record is not None else 1
        name = execution_name(group.name, attempt) if pick >> 3 & 1 else f"manual-{pick}-{asked.get('action', '')}"
        self._scene.say(f"{WHO} starts {name}: {asked}")
        latest, now = len(own_template(self._scene, group).images), self._scene.timeline.now()
        order = Ordered(at=now, group=group.name, asked=asked, latest=latest)
        self._scene.system.upgrades.ordered.append(order)
        self._scene.system.machines[NODE_GROUP_UPGRADE].start(name, asked)

    def _group(self, pick: int) -> SimGroup:
        groups = [group for group in self._scene.fleet.groups.values() if group.plan.selected or pick % 29 == 0]
        return groups[(pick >> 8) % len(groups)]
