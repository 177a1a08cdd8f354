"""Steps that are taken back while the product works on a node: operators lift its taint and its cordon, and AWS cancels
the maintenance for which it drains."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from leeward.model import well_known
from simulation.asked import Asked, Kind
from simulation.aws.compute import IN_SERVICE, SimInstance
from simulation.convergence import is_tainted
from simulation.foreign_taints import tainted_by_others
from simulation.node_instances import instance_behind

if TYPE_CHECKING:
    from simulation.site import Site
    from simulation.world import World

AHEAD, CANCELED_AFTER = (900.0, 7200.0), (10.0, 1200.0)  # seconds to the date, and to the cancellation
UNHEARD = 0.4  # share of the cancellations about which AWS Health's message is lost


class LiftedTaints:
    """Operators who run `kubectl taint node NODE KEY-`, `kubectl uncordon NODE`, or both."""

    every = 75.0

    def __init__(self, scene: World | Site, random: Random) -> None:
        self._scene, self._random = scene, random

    def play(self) -> None:
        """Lift taint, cordon or both of a node that carries our taint, if there is one."""
        nodes = [
            node
            for node in self._scene.cluster.store.sorted("nodes")
            if is_tainted(node) and not tainted_by_others(node)
        ]
        if not nodes:
            return
        node = self._random.choice(nodes)
        taint, cordon = self._random.choice(((True, True), (True, False), (False, True)))
        name, spec = node["metadata"]["name"], dict[str, object]()
        if taint:
            left = [one for one in node["spec"]["taints"] if one["key"] != well_known.DISRUPTED_TAINT]
            spec["taints"] = left or None
        if cordon:
            spec["unschedulable"] = None
        what = " and ".join(("the taint",) * taint + ("the cordon",) * cordon)
        self._scene.say(f"an operator lifts {what} of {name}")
        now = self._scene.timeline.now()
        self._scene.asked.append(Asked(at=now, instance=instance_behind(node), kind=Kind.LIFTED))
        self._scene.cluster.patch("nodes", name, {"spec": spec})


class CanceledMaintenance:
    """Maintenance that AWS announces and cancels before its date."""

    every = 400.0

    def __init__(self, scene: World | Site, random: Random) -> None:
        self._scene, self._random = scene, random

    def play(self) -> None:
        """Announce maintenance of an instance in service; it is cancelled some minutes later."""
        serving = [m for m in self._scene.fleet.instances.values() if m.lifecycle == IN_SERVICE and m.joined]
        if not serving:
            return
        member, ahead = self._random.choice(serving), self._random.uniform(*AHEAD)
        self._scene.say(f"maintenance of {member.id} in {ahead:.0f} s, which AWS will cancel")
        arn = self._scene.fleet.notices.maintenance(member, self._scene.timeline.now() + ahead)
        after = min(self._random.uniform(*CANCELED_AFTER), ahead)
        heard = self._random.random() >= UNHEARD
        self._scene.timeline.after(after, lambda: self._cancel(member, arn, heard=heard), "maintenance is cancelled")

    def _cancel(self, member: SimInstance, arn: str, *, heard: bool) -> None:
        if not member.gone:
            self._scene.say(f"AWS cancels the maintenance of {member.id}{'' if heard else ', without a message'}")
            self._scene.fleet.notices.cancel_maintenance(member, arn, heard=heard)
