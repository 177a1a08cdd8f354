"""ARC's zonal shifts of EKS clusters: GetManagedResource, as set through the control API.

`PUT zonal-shifts/CLUSTER` takes `{"awayFrom": ZONE ID, "shiftType"?, "seconds"?, "silent"?}` and begins a shift,
`DELETE` ends it, that of `awayFrom` where it is given; each sends ARC's event unless it is `silent`. Before the first
one the cluster is no managed resource, as one without zonal shift. As EKS does, a shift cordons the zone's nodes, and
its end removes these cordons.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

from moto.ec2.models.availability_zones_and_regions import RegionsAndZonesBackend

from local.aws.calls import Call
from local.aws.control import BadRequest, Control, Request
from local.aws.eks.drains import Nodes
from local.aws.outbox import Event, Outbox
from local.aws.settings import Settings

Answer = tuple[int, dict[str, str], bytes]
PATH = "/managedresources/"
LONGEST = timedelta(days=3)
FIS_EXPIRES = timedelta(minutes=1)  # FIS user guide, "aws:arc:start-zonal-autoshift": `expiresIn`


class Words(NamedTuple):
    """Detail types of ARC's events about one kind of shift."""

    begins: str
    ends: str


EVENTS: Mapping[str, Words] = {
    "ZONAL_SHIFT": Words("Manual Shift Started", "Manual Shift Canceled"),
    "PRACTICE_RUN": Words("Practice Run Started", "Practice Run Succeeded"),
    "FIS_EXPERIMENT": Words("FIS Experiment Autoshift In Progress", "FIS Experiment Autoshift Completed"),
}


def one_segment(path: str) -> str:
    """Return the path as the service model has it: the ARN of the resource, whose slash is decoded, as one part."""
    return PATH + quote(unquote(path.removeprefix(PATH)), safe="") if path.startswith(PATH) else path


class ZonalShifts:
    """Shifts by cluster: what ARC answers for it. Replaced as a whole, so safe to use from any thread."""

    def __init__(self, outbox: Outbox, settings: Settings, nodes_of: Callable[[str], Nodes | None]) -> None:
        self._outbox, self._settings, self._nodes_of = outbox, settings, nodes_of
        self._shifts: Mapping[str, Mapping[str, Any] | None] = {}
        self._cordoned: dict[str, list[str]] = {}

    def install(self, control: Control) -> None:
        """Add the routes."""
        control.add("PUT", "zonal-shifts/{cluster}", self._put)
        control.add("DELETE", "zonal-shifts/{cluster}", self._delete)

    def begin(self, cluster: str, zone_id: str, *, kind: str, lasts: timedelta, silent: bool = False) -> None:
        """Begin a shift away from a zone; one that is in effect gives way to it."""
        now = datetime.now(UTC)
        shift = {
            "appliedStatus": "APPLIED",
            "zonalShiftId": "00000000-0000-0000-0000-000000000001",
            "resourceIdentifier": self._arn(cluster),
            "awayFrom": zone_id,
            "startTime": now.timestamp(),
            "expiryTime": (now + min(lasts, LONGEST)).timestamp(),
            "comment": "local",
            "shiftType": kind,
        }
        self._shifts = {**self._shifts, cluster: shift}
        self._emit(cluster, EVENTS[kind].begins, zone_id, silent=silent)
        self._cordon(cluster, zone_id)

    def end(self, cluster: str, *, silent: bool = False) -> None:
        """End the shift of a cluster, if there is one."""
        shift = self._shifts.get(cluster)
        self._shifts = {**self._shifts, cluster: None}
        if shift is not None:
            self._emit(cluster, EVENTS[shift["shiftType"]].ends, shift["awayFrom"], silent=silent)
        nodes, cordoned = self._nodes_of(cluster), self._cordoned.pop(cluster, ())
        if nodes is not None:
            for node in cordoned:
                nodes.uncordon(node)

    def in_effect(self, cluster: str) -> Mapping[str, Any] | None:
        """Return the shift that is in effect now."""
        shift = self._shifts.get(cluster)
        return shift if shift is not None and shift["expiryTime"] > datetime.now(UTC).timestamp() else None

    def _put(self, request: Request) -> None:
        kind, silent = str(request.body.get("shiftType") or "ZONAL_SHIFT"), bool(request.body.get("silent"))
        if kind not in EVENTS:
            raise BadRequest(f"shiftType: found {kind}, expected one of {', '.join(EVENTS)}")
        lasts = timedelta(seconds=float(request.body.get("seconds") or 3600))
        self.begin(request.path["cluster"], str(request.body["awayFrom"]), kind=kind, lasts=lasts, silent=silent)

    def _delete(self, request: Request) -> None:
        shift, zone = self._shifts.get(request.path["cluster"]), request.body.get("awayFrom")
        if shift is not None and zone not in {None, shift["awayFrom"]}:
            raise BadRequest(f"awayFrom: found {zone}, expected {shift['awayFrom']}")
        self.end(request.path["cluster"], silent=bool(request.body.get("silent")))

    def _cordon(self, cluster: str, zone_id: str) -> None:
        nodes = self._nodes_of(cluster)
        zones = RegionsAndZonesBackend.zones[self._settings.region]
        zone = next((one.name for one in zones if one.zone_id == zone_id), None)
        if nodes is None or zone is None:
            return
        for node in nodes.schedulable_in(zone):
            nodes.cordon(node)
            self._cordoned.setdefault(cluster, []).append(node)

    def _emit(self, cluster: str, detail_type: str, zone: str, *, silent: bool) -> None:
        if silent:
            return
        home = (self._settings.account, self._settings.region)
        detail = {"version": "0.0.1", "data": "", "metadata": {"awayFrom": zone, "notes": ""}}
        self._outbox.emit(
            Event(
                source="aws.arc-zonal-shift",
                detail_type=detail_type,
                detail=detail,
                account=home[0],
                region=home[1],
                resources=(self._arn(cluster),),
                bus=home,
            )
        )

    def _arn(self, cluster: str) -> str:
        return f"arn:aws:eks:{self._settings.region}:{self._settings.account}:cluster/{cluster}"

    def answer(self, call: Call, path: str, _body: bytes) -> Answer | None:
        """Answer GetManagedResource; return None for any other call."""
        if call.name != "arc-zonal-shift:GetManagedResource":
            return None
        arn = unquote(path.removeprefix(PATH))
        cluster = arn.rpartition("/")[2]
        if cluster not in self._shifts:
            headers = {"Content-Type": "application/json", "x-amzn-ErrorType": "ResourceNotFoundException"}
            return 404, headers, json.dumps({"message": f"{arn} is no managed resource"}).encode()
        shift = self.in_effect(cluster)
        shifts = [] if shift is None else [_shown(shift)]
        weights = {str(one["awayFrom"]): 0.0 for one in shifts}
        named = {"arn": arn, "name": cluster, "zonalAutoshiftStatus": "DISABLED"}
        document = {**named, "appliedWeights": weights, "zonalShifts": shifts, "autoshifts": []}
        return 200, {"Content-Type": "application/json"}, json.dumps(document).encode()


def _shown(shift: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the shift as ARC answers it: AWS FIS asks for one minute at a time, and renews that."""
    if shift["shiftType"] != "FIS_EXPERIMENT":
        return shift
    renewed = (datetime.now(UTC) + FIS_EXPIRES).timestamp()
    return {**shift, "expiryTime": min(renewed, shift["expiryTime"])}
