"""Operators who start failed upgrades again once all troubles are over: each has to end well then.

The starts name no target, so that they continue what has failed."""

from leeward.upgrade.preflight.findings import Code
from simulation.definitions import NODE_GROUP_UPGRADE
from simulation.endings import Ending
from simulation.ordered import Ordered
from simulation.scene import Scene

LOOKS_EVERY = 900.0  # seconds
AFTER = 2700.0  # seconds after the last trouble: pauses are resumed and stopped executions are started by then
FAILED = {"NodeCreationFailure", "PodEvictionFailure", "UpgradeFailure"}
WELL = {"Upgraded", "RolledBack", "Aborted"}


class SecondStarts:
    """Second starts of one scene."""

    over = False

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._read = 0
        self._last: dict[str, Ending] = {}

    def begin(self) -> None:
        """Look from time to time whether the troubles are over."""
        self._scene.timeline.after(LOOKS_EVERY, self._look, "operators look")

    def _look(self) -> None:
        self._catch_up()
        if self.over:
            self._scene.timeline.after(AFTER, self._start, "failed upgrades are started again")
        else:
            self.begin()

    def _catch_up(self) -> None:
        ends = self._scene.system.upgrade_ends
        for ending in ends[self._read :]:
            if ending.group in self._scene.fleet.groups and ending.state in FAILED | WELL:
                self._last[ending.group] = ending
        self._read = len(ends)

    def _start(self) -> None:
        self._catch_up()
        for group, ending in sorted(self._last.items()):
            if ending.state in FAILED and not self._scene.fleet.groups[group].deleted:
                asked = {"group": group, "override": [code.value for code in Code]}
                self._scene.say(f"an operator starts the upgrade of {group} again")
                order = Ordered(at=self._scene.timeline.now(), group=group, asked=asked)
                self._scene.system.upgrades.ordered.append(order)
                self._scene.system.machines[NODE_GROUP_UPGRADE].start(f"again-{group}", asked)
