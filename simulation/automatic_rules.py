"""Rule that an upgrade which a policy starts begins in its window, after its wait, and once for each image.

Reads the executions that are open and the request of the upgrade's record, and looks itself since when a group launches
an image and whether the window of the feature is open."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from simulation.policy_features import OPEN_EVERY, OPEN_FOR
from simulation.view import WorldView

LATE = 300.0  # seconds that fn disruption-planner may take from its observation to the start
LOOK = 10.0  # seconds by which the rule may see a parameter later than the planner
LOOKS_EVERY = 5.0  # seconds: after each event would be a twentieth of a run's time


class AutomaticUpgrades:
    """Starts of upgrades by policy, each checked once, when its record is first seen with it."""

    def __init__(self) -> None:
        self._looked = float("-inf")
        self._since: dict[tuple[str, str], float] = {}  # group, image that it launches -> since when
        self._tried: dict[tuple[str, str], datetime] = {}  # group, image -> beginning of the upgrade

    def check(self, view: WorldView) -> Iterator[str]:
        """Yield upgrades that a policy started outside of its window, before its wait is over, or a second time."""
        if view.now - self._looked >= LOOKS_EVERY:
            self._looked = view.now
            for group, image in view.launched_images.items():
                self._since.setdefault((group, image), view.now)
        for name, record in view.upgrades.items():
            image = record.request.automatic
            if not image or self._tried.get((name, image)) == record.began:
                continue
            if (name, image) in self._tried:
                yield f"{name}: the upgrade to {image} is started by its policy again"
            self._tried[name, image] = record.began
            yield from self._start(name, image, view)

    def _start(self, name: str, image: str, view: WorldView) -> Iterator[str]:
        group = view.groups[name]
        policy = view.policies.policy_of(group)
        if policy is None or policy.update.auto is None:
            yield f"{name}: its policy starts no upgrades"
            return
        if policy.update.windows and not (is_open(view.now) or is_open(view.now - LATE)):
            yield f"{name}: the upgrade to {image} starts outside of its window"
        known = view.now - self._since.get((name, image), view.now)
        if group.nodegroup is None and known + LOOK < policy.update.auto / timedelta(seconds=1):
            yield f"{name}: the upgrade to {image} starts after {known:.0f} s, its policy asks for {policy.update.auto}"


def is_open(at: float) -> bool:
    """Return whether a window of the feature is open at the moment, in seconds since 1970."""
    return datetime.fromtimestamp(at, UTC).minute % OPEN_EVERY < OPEN_FOR
