"""Events that hit both clusters of a world at the same moment: EC2 takes back a pool of which both have instances, or
retires hosts of both by one AWS Health event."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from random import Random

from simulation.asked import Asked, Kind
from simulation.aws import events
from simulation.aws.compute import IN_SERVICE, SimInstance
from simulation.scene import Scene

POOLS_EVERY, HOSTS_EVERY = 240.0, 1100.0  # seconds
AHEAD = (120.0, 3600.0)  # seconds until the hosts are retired
RARER = 20.0  # times as long a pause in a world that lasts weeks


class Both:
    """Player of such events, by dice of its own. `hosts`: an AWS Health event may be about both clusters, which are in
    one account. `over` ends it.
    """

    def __init__(
        self, scenes: Sequence[Scene], random: Random, emit: Callable[[events.Event], None], *, hosts: bool = True
    ) -> None:
        self._scenes, self._random, self._emit, self._hosts = scenes, random, emit, hosts
        self._timeline = scenes[0].timeline
        self.over = False

    def begin(self) -> None:
        """Begin to play."""
        rarer = 1 if self._scenes[0].days_ahead is None else RARER
        self._timeline.every(POOLS_EVERY * rarer, self._take_pool, "both clusters")
        if self._hosts:
            self._timeline.every(HOSTS_EVERY * rarer, self._retire_hosts, "both clusters")

    def _take_pool(self) -> None:
        for member in () if self.over else self._chosen(spot=True):
            self._scenes[0].fleet.notices.spot_warning(member)

    def _retire_hosts(self) -> None:
        members = [] if self.over else self._chosen(spot=False)
        if not members:
            return
        scene, now = self._scenes[0], self._timeline.now()
        starts = now + self._random.uniform(*AHEAD)
        begins = datetime.fromtimestamp(starts, UTC)
        event = events.maintenance(scene.fleet.emit_id(), members[0].id, self._timeline.instant(), begins)
        detail = event["detail"]
        detail["affectedEntities"] = [{"entityValue": member.id, "status": "PENDING"} for member in members]
        for member in members:
            scene.say(f"maintenance of {member.id} in {starts - now:.0f} s, in one event for both clusters")
            known = Asked(at=now, instance=member.id, kind=Kind.MAINTENANCE, key=detail["eventArn"], takes=starts)
            scene.asked.append(known)
            scene.fleet.notices.list_maintenance(member, starts, detail["eventArn"])
            self._timeline.at(starts, partial(self._retire, member), "retirement")
        self._emit(event)

    def _retire(self, member: SimInstance) -> None:
        if not member.gone:
            self._scenes[0].fleet.end_instance(member, direct=True)

    def _chosen(self, *, spot: bool) -> list[SimInstance]:
        """Choose an instance in service in each cluster that has one."""
        serving = [
            [m for m in scene.fleet.instances.values() if m.lifecycle == IN_SERVICE and m.joined and m.spot >= spot]
            for scene in self._scenes
        ]
        return [self._random.choice(members) for members in serving if members]
