"""Load balancers of the simulated cluster: groups whose instances are targets, and the controller that heeds the label
which excludes a node.

No event is scheduled: the state of a target at a moment follows from when its node was labelled. Some controllers are
slow, and one that is gone deregisters nothing."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from leeward.model import well_known
from leeward.model.instance import Instance
from leeward.model.load_balancing import Health, LoadBalancerTarget, TargetKind
from local.cluster.store import Change, ChangeType
from simulation.node_instances import instance_behind
from simulation.timeline import Timeline

BALANCED = 0.3  # of the groups
DELAYS = (0.0, 15.0, 60.0, 300.0)  # seconds of deregistration delay, for requests in flight
NOTICED = (1.0, 20.0)  # seconds until the controller has seen the label
GONE = 0.1  # of the controllers
NODE_PORT = 30080


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetGroup:
    """Instance targets of one Auto Scaling group. `notices`: seconds until the controller sees the label, None where no
    controller is there.
    """

    notices: float | None
    delay: float


class SimLoadBalancers:
    """Target groups and excluded nodes. `groups`: by Auto Scaling group; `excluded`: instance -> since when its node
    has the label. `launched_by`: the group that has launched an instance; detached from it, it stays a target.
    """

    def __init__(self, timeline: Timeline, launched_by: Callable[[str], str]) -> None:
        self._timeline, self._launched_by = timeline, launched_by
        self.groups: dict[str, TargetGroup] = {}
        self.excluded: dict[str, float] = {}

    def watch(self, change: Change) -> None:
        """Observe the cluster's nodes: record since when each instance has the label."""
        if change.resource != "nodes":
            return
        instance = instance_behind(change.obj)
        labelled = well_known.EXCLUDE_LABEL in (change.obj["metadata"].get("labels") or {})
        if labelled and change.type is not ChangeType.DELETED:
            self.excluded.setdefault(instance, self._timeline.now())
        else:
            self.excluded.pop(instance, None)

    def state(self, group: str, instance: str, at: float) -> str | None:
        """Return the state of the instance's target at that moment; None where it is no target."""
        found = self.groups.get(group)
        if found is None:
            return None
        since = self.excluded.get(instance)
        if since is None or found.notices is None or at < since + found.notices:
            return "healthy"
        return Health.DRAINING.value if at < since + found.notices + found.delay else None

    def targets(self, _cluster: str, instance: Instance) -> Sequence[LoadBalancerTarget]:
        """Return the targets of the instance, at most one."""
        group = self._launched_by(instance.id)
        state = self.state(group, instance.id, self._timeline.now())
        if state is None:
            return ()
        return (
            LoadBalancerTarget(
                group=f"k8s-{group}", kind=TargetKind.INSTANCE, id=instance.id, port=NODE_PORT, state=state
            ),
        )


def balanced(names: Sequence[str], random: Random) -> Mapping[str, TargetGroup]:
    """Return target groups for some of the groups, each with its own delay and its own controller."""
    found: dict[str, TargetGroup] = {}
    for name in names:
        chosen, delay, notices = random.random() < BALANCED, random.choice(DELAYS), random.uniform(*NOTICED)
        gone = random.random() < GONE
        if chosen:
            found[name] = TargetGroup(notices=None if gone else notices, delay=delay)
    return found
