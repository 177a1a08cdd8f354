"""Interruptions of instances by AWS: warnings, recommendations, maintenance, failed health checks, storms
and outages."""

from collections.abc import Callable
from datetime import timedelta
from random import Random

from simulation.aws.compute import SimInstance
from simulation.scene import Scene, subject

STORM = 5.0  # seconds within which all of a pool are warned
SILENCE = 20.0  # seconds within which the kubelets of a zone fall silent
NOTICED = (60.0, 180.0)  # seconds until a group ends those that do not answer
ANNOUNCED_AGAIN = (5.0, 900.0)  # seconds after the first time; the node may be draining by then
HOURS_AHEAD = 40
WARNED_AFTER = (60.0, 900.0)  # seconds from a rebalance recommendation to the warning


class Interruptions:
    """Interruptions by kind. Each takes a `pick`, which chooses the instance and the manner."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene

    def spot_warning(self, pick: int) -> None:
        """Warn two minutes before EC2 takes the instance."""
        if member := subject(self._scene, pick, spot=True):
            self._scene.fleet.notices.spot_warning(member)

    def spot_storm(self, pick: int) -> None:
        """Take a whole pool back, as EC2 does: every spot instance of one type in one zone."""
        member = subject(self._scene, pick, spot=True)
        if member is None:
            return
        pool = [m for m in self._alive() if (m.spot, m.type, m.zone) == (True, member.type, member.zone)]
        self._scene.say(f"a spot storm over {member.type} in {member.zone}: {len(pool)} instances")
        random = Random(pick)
        for one in pool:
            self._later(random.uniform(0, STORM), one, self._scene.fleet.notices.spot_warning, "spot storm")

    def rebalance(self, pick: int) -> None:
        """Report an elevated risk."""
        if member := subject(self._scene, pick, spot=True):
            self._scene.fleet.notices.rebalance_recommendation(member)

    def rebalance_then_warning(self, pick: int) -> None:
        """Report an elevated risk that comes true some minutes later."""
        if member := subject(self._scene, pick, spot=True):
            self._scene.fleet.notices.rebalance_recommendation(member)
            self._later(
                Random(pick).uniform(*WARNED_AFTER), member, self._scene.fleet.notices.spot_warning, "risk comes true"
            )

    def maintenance(self, pick: int) -> None:
        """Announce maintenance in one to forty hours; AWS terminates the instance then if it still exists."""
        if member := subject(self._scene, pick):
            self._announce(member, timedelta(hours=1 + pick % self._hours_ahead))

    def maintenance_moved(self, pick: int) -> None:
        """Announce the same event again with another date, which holds: earlier or later than the first."""
        if member := subject(self._scene, pick):
            random = Random(pick)
            first, second = (timedelta(hours=random.randint(2, self._hours_ahead)) for _ in range(2))
            arn = self._announce(member, first, ends=False)
            pause = random.uniform(*ANNOUNCED_AGAIN)
            if self._scene.days_ahead is not None:
                pause = random.uniform(0.1, 0.95) * first.total_seconds()
                second = max(second, first) - timedelta(seconds=pause)
            self._later(pause, member, lambda one: self._announce(one, second, arn=arn), "maintenance announced again")

    @property
    def _hours_ahead(self) -> int:
        """Hours ahead: forty, or two weeks in a world that lasts longer."""
        return HOURS_AHEAD if self._scene.days_ahead is None else round(24 * self._scene.days_ahead)

    def unhealthy(self, pick: int) -> None:
        """Fail the group's health check: it terminates the instance, which still runs."""
        if member := subject(self._scene, pick):
            self._scene.say(f"{member.id} is unhealthy: its group ends it")
            self._scene.fleet.unhealthy(member)

    def zone_outage(self, pick: int) -> None:
        """Make every kubelet of a zone fall silent; the groups terminate those instances. Whether the zone has capacity
        for others is a fault of its own.
        """
        member = subject(self._scene, pick)
        if member is None:
            return
        hit = [m for m in self._alive() if m.zone == member.zone and not m.leaving]
        self._scene.say(f"zone {member.zone} goes dark: {len(hit)} instances")
        random = Random(pick)
        for one in hit:
            self._later(random.uniform(0, SILENCE), one, self._silent, "kubelet silent")
            self._later(random.uniform(*NOTICED), one, self._scene.fleet.unhealthy, "group's health check")

    def _announce(self, member: SimInstance, ahead: timedelta, *, arn: str = "", ends: bool = True) -> str:
        """Announce maintenance and return the event's ARN; `ends`: whether this date holds."""
        self._scene.say(f"maintenance of {member.id} in {ahead}{', announced again' if arn else ''}")
        starts = self._scene.timeline.now() + ahead.total_seconds()
        if ends:
            self._later(ahead.total_seconds(), member, self._retire, "retirement")
        return self._scene.fleet.notices.maintenance(member, starts, arn)

    def _retire(self, member: SimInstance) -> None:
        self._scene.fleet.end_instance(member, direct=True)

    def _silent(self, member: SimInstance) -> None:
        if self._scene.cluster.store.find("nodes", member.node) is not None:
            self._scene.cluster.set_node_ready(member.node, "Unknown")

    def _alive(self) -> list[SimInstance]:
        return [m for m in self._scene.fleet.instances.values() if not m.gone]

    def _later(self, seconds: float, member: SimInstance, what: Callable[[SimInstance], object], name: str) -> None:
        """Schedule the call, unless the instance is gone by then."""

        def unless_gone() -> None:
            if not member.gone:
                what(member)

        self._scene.timeline.after(seconds, unless_gone, name)
