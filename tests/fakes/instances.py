"""EC2 in memory."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime

from leeward.model.instance import Instance
from leeward.model.instance_status import Impairment, ScheduledEvent
from tests.fakes.calls import Calls


class FakeInstances(Calls):
    """Ended instances stay known, as EC2 keeps them for about an hour; `forget` drops one."""

    def __init__(self, instances: Iterable[Instance] = ()) -> None:
        super().__init__()
        self.known = {instance.id: instance for instance in instances}
        self.asked_ids: list[frozenset[str]] = []
        self.failing: dict[str, Impairment] = {}
        self.blocks: dict[str, datetime] = {}
        self.reserved: dict[str, str] = {}
        self.rebooted: list[str] = []
        self.scheduled: dict[str, tuple[ScheduledEvent, ...]] = {}
        self.on_reboot: Callable[[str], None] = lambda _: None
        self.recent_enough: list[bool] = []  # of each read of status checks

    def describe(self, ids: Iterable[str]) -> Mapping[str, Instance]:
        """An unknown id is absent."""
        wanted = frozenset(ids)
        self._call("describe")
        self.asked_ids.append(wanted)
        return {id_: self.known[id_] for id_ in wanted if id_ in self.known}

    def block_ends(self) -> Mapping[str, datetime]:
        """Ends that the test put into `blocks`."""
        self._call("block_ends")
        return dict(self.blocks)

    def in_reservations(self, reservations: Iterable[str]) -> Mapping[str, str]:
        """Instances that the test put into `reserved`, with their reservations."""
        wanted = frozenset(reservations)
        self._call("in_reservations")
        return {name: one for name, one in self.reserved.items() if one in wanted}

    def reboot(self, instance: str) -> None:
        """Noted in `rebooted`; `on_reboot` says what becomes of the node."""
        self._call("reboot")
        self.rebooted.append(instance)
        self.on_reboot(instance)

    def scheduled_events(self, *, recent: bool = False) -> Mapping[str, tuple[ScheduledEvent, ...]]:
        """What the test put into `scheduled`."""
        self._call("scheduled_events")
        return dict(self.scheduled)

    def schedule(self, *instances: str, code: str = "instance-retirement", over: bool = False) -> None:
        """EC2 lists an event of each from now on."""
        for name in instances:
            said = "[Completed] maintenance" if over else "maintenance"
            event = ScheduledEvent(id=f"event-{name}", instance=name, code=code, starts=None, description=said)
            self.scheduled[name] = (event,)

    def impaired(self, *, recent: bool = False) -> Mapping[str, Impairment]:
        """What the test put into `failing`, of instances that run."""
        self._call("impaired")
        self.recent_enough.append(recent)
        running = {name for name, instance in self.known.items() if instance.state == "running"}
        return {name: one for name, one in self.failing.items() if name in running}

    def put(self, instance: Instance) -> None:
        """EC2 knows it from now on."""
        self.known[instance.id] = instance

    def set_state(self, instance: str, state: str) -> None:
        """running, stopping, shutting-down, terminated ..."""
        if instance in self.known:
            self.known[instance] = replace(self.known[instance], state=state)

    def forget(self, instance: str) -> None:
        """An hour after its end EC2 knows it no more."""
        self.known.pop(instance, None)
