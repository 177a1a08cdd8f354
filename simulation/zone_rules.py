"""Rules that must hold while a zonal shift is in effect: nothing of ours is launched into the zone, no node there is
removed voluntarily, and AZRebalance is not resumed.

A rule counts from the moment at which Leeward has written the shift into the table: calls to ARC and the table may fail
in a world. Another rule says when that has to be, in worlds where they do not fail."""

from collections.abc import Iterator

from leeward.disruption.record import cause_id
from leeward.upgrade.record import launch_token
from simulation.convergence import launched_for
from simulation.facts import News
from simulation.view import WorldView

REBALANCE = "AZRebalance"
ZONE_LABEL = "topology.kubernetes.io/zone"
POLLED = 60.0  # seconds between two polls of the minute reconciler
POLL_TAKES = 15.0  # from the begin of its run to the table: it reads nodes first in a world without threads
STARTS = 60.0  # from a decision to its effect, of a step that no call has kept longer
REPEATS = 60.0  # an order of an upgrade or a run whose answer was lost is repeated: what was launched must be known
OF_ONE_REQUEST = 2  # causes: the reason, and the launch that the termination offsets
MOST_PLANS = 500  # that are remembered
VOLUNTARY = ("upgrade#", "disruption#", "unhealthy#")  # begins of a cause's id


class ZoneRules:
    """Rules about shifted zones, one object for each run."""

    def __init__(self) -> None:
        self._news = News()
        self._known: dict[int, float] = {}  # number of the shift -> when the table had it
        self._unknown: set[int] = set()  # shifts whose lateness is reported
        self._planned: dict[str, float] = {}  # instance, or token of an order -> when its launch was last planned
        self._requested: dict[str, float] = {}  # cause of a disruption run -> when the run began to request
        self._causes: dict[str, int] = {}  # instance -> causes of earlier periods of its record
        self._opened: set[str] | None = None  # open records; not read before the first shift

    def learned(self, view: WorldView) -> Iterator[str]:
        """Yield shifts that are not in the table a minute after they began, where nothing but Kubernetes fails."""
        for number, shift in enumerate(view.shifted):
            if number in self._known or number in self._unknown or shift.ended is not None:
                continue
            if shift.zone in view.known_shifts:
                self._known[number] = view.now
            elif view.only_kubernetes_fails and view.now - shift.began > POLLED + POLL_TAKES:
                self._unknown.add(number)
                yield f"{shift.zone}, shifted {view.now - shift.began:.0f} s ago"

    def launches(self, view: WorldView) -> Iterator[str]:
        """Yield launches of ours into a zone whose shift was known when they were decided. A launch of an older plan,
        or order of an upgrade, may be repeated, because its answer may have been lost.
        """
        for instance, _ in self._news.of("plans", view.plans):
            self._plan(instance, view.now)
        for record in view.upgrades.values():
            for number in record.orders:
                token = launch_token(record, number)
                self._plan(token, self._planned.get(token, view.now))
        for token, new in self._news.of("launches", view.launches):
            replaced = launched_for(token).split("/")[0]
            zone, decided = _zone_of(new, view), self._planned.get(replaced, view.now - REPEATS)
            if self._is_shifted(zone, decided, view):
                yield f"{new} was launched in {zone} for {replaced}"

    def _plan(self, launch: str, at: float) -> None:
        self._planned[launch] = at
        if len(self._planned) > MOST_PLANS:
            del self._planned[next(iter(self._planned))]

    def balances(self, view: WorldView) -> Iterator[str]:
        """Yield groups whose AZRebalance was resumed by us during a shift."""
        for group, process, suspended in self._news.of("switched", view.switched):
            resumed = group in view.groups and process == REBALANCE and not suspended
            if resumed and self._is_shifted("", view.now, view):
                yield group

    def removals(self, view: WorldView) -> Iterator[str]:
        """Yield instances in a shifted zone whose termination was begun for a voluntary reason. A disruption run that
        has begun to request its terminations requests all of them: the replacements are there, and the step may hang.
        """
        if not view.shifted:
            return
        for record in view.disruptions.values():
            if record.requested:
                for instance in record.to_terminate.values():
                    self._requested.setdefault(cause_id(record, instance), view.now)
        if self._opened is None:
            members = (member.id for group in view.groups.values() for member in group.instances)
            self._causes = {instance: len(view.known_causes(instance)) for instance in members}
            self._opened = set(view.open_since)
        opened = view.open_since.keys() - self._opened
        self._opened = set(view.open_since)
        for instance in sorted(opened):
            zone, causes = _zone_of(instance, view), view.known_causes(instance)
            new = causes[self._causes.get(instance, 0) :]
            self._causes[instance] = len(causes)
            reason = next((cause for cause in new if cause.startswith(VOLUNTARY)), "")
            decided = self._requested.get(reason, view.now)
            if reason and len(new) <= OF_ONE_REQUEST and self._is_shifted(zone, decided, view):
                yield f"{instance} in {zone}: {reason}"

    def _is_shifted(self, zone: str, at: float, view: WorldView) -> bool:
        """Return whether a shift away from the zone (empty: from any) was in effect and long known at the time. The
        clock of a function is ahead of the world's by as long as its run has taken: it sees an expiry earlier.
        """
        return any(
            shift.ended is None
            and view.now + POLL_TAKES < shift.expires
            and (not zone or shift.zone == zone)
            and at > self._known.get(number, at) + STARTS
            for number, shift in enumerate(view.shifted)
        )


def _zone_of(instance: str, view: WorldView) -> str:
    """Return the zone in which the group lists the instance; a name of no zone for one that no group lists."""
    members = (member for group in view.groups.values() for member in group.instances)
    return next((member.zone for member in members if member.id == instance), "nowhere")
