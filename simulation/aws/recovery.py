"""Application Recovery Controller: the zonal shifts that are in effect for each cluster."""

from dataclasses import dataclass, replace
from datetime import datetime
from math import inf

from leeward.model.zonal_shift import ShiftKind, ShiftSource, ZonalShift

ZONE_IDS = {"us-east-1": "use1-az", "eu-west-1": "euw1-az"}  # of us-east-1a: use1-az1


def zone_id_of(zone: str) -> str:
    """Return the id of a simulated zone: us-east-1b has use1-az2. Ids follow another order in a real account."""
    return f"{ZONE_IDS.get(zone[:-1], 'use1-az')}{ord(zone[-1]) - ord('a') + 1}"


@dataclass(slots=True, kw_only=True)
class Shifted:
    """Shift as the rules see it, times in seconds since 1970. `ended` None: it is in effect, `expires`: unless it has
    expired.
    """

    zone: str
    began: float
    ended: float | None = None
    expires: float = inf


class SimRecovery:
    """Shifts by cluster. A shift with an expiry ends by itself, without an event."""

    def __init__(self) -> None:
        self._shifts: dict[str, list[ZonalShift]] = {}
        self._history: dict[str, list[Shifted]] = {}

    def start(
        self, cluster: str, zone_id: str, kind: ShiftKind, since: datetime, until: datetime | None = None
    ) -> ZonalShift:
        """Put a shift in effect, in place of an earlier one away from the same zone."""
        shift = ZonalShift(zone_id=zone_id, kind=kind, since=since.replace(microsecond=0), until=until)
        others = [one for one in self._shifts.get(cluster, ()) if one.zone_id != zone_id]
        self._shifts[cluster] = [*others, shift]
        return shift

    def history(self, cluster: str) -> list[Shifted]:
        """Return the shifts of the cluster, in the order in which they began; who plays them adds to it."""
        return self._history.setdefault(cluster, [])

    def in_effect(self, cluster: str) -> bool:
        """Return whether a shift of the cluster is not over yet, expired ones too."""
        return bool(self._shifts.get(cluster))

    def end(self, cluster: str, zone_id: str) -> None:
        """End the shift away from the zone."""
        self._shifts[cluster] = [one for one in self._shifts.get(cluster, ()) if one.zone_id != zone_id]

    def shifts(self, cluster: str, now: datetime) -> tuple[ZonalShift, ...]:
        """Return the shifts in effect, by zone id."""
        shifts = (one for one in self._shifts.get(cluster, ()) if one.until is None or now < one.until)
        return tuple(replace(one, source=ShiftSource.POLL) for one in sorted(shifts, key=lambda one: one.zone_id))
