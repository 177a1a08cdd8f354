"""ARC's zonal shifts of EKS clusters: GetManagedResource, as set through the control API.

`PUT zonal-shifts/CLUSTER` takes `{"awayFrom": ZONE ID, "shiftType"?, "seconds"?, "silent"?}` and begins a shift,
`DELETE` ends it; each sends ARC's event unless it is `silent`. Before the first one the cluster is no managed resource,
as one without zonal shift. Cordons are EKS's: `local.zones` sets them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote, unquote

from local.aws.calls import Call
from local.aws.control import BadRequest, Control, Request
from local.aws.outbox import Event, Outbox
from local.aws.settings import Settings

Answer = tuple[int, dict[str, str], bytes]
PATH = "/managedresources/"
LONGEST = timedelta(days=3)
EVENTS: Mapping[str, tuple[str, str]] = {
    "ZONAL_SHIFT": ("Manual Shift Started", "Manual Shift Canceled"),
    "PRACTICE_RUN": ("Practice Run Started", "Practice Run Succeeded"),
    "FIS_EXPERIMENT": ("FIS Experiment Autoshift In Progress", "FIS Experiment Autoshift Completed"),
}


def one_segment(path: str) -> str:
    """Return the path as the service model has it: the ARN of the resource, whose slash is decoded, as one part."""
    return PATH + quote(unquote(path.removeprefix(PATH)), safe="") if path.startswith(PATH) else path


class ZonalShifts:
    """Shifts by cluster: what ARC answers for it. Replaced as a whole, so safe to use from any thread."""

    def __init__(self, outbox: Outbox, settings: Settings) -> None:
        self._outbox, self._settings = outbox, settings
        self._shifts: Mapping[str, Mapping[str, Any] | None] = {}

    def install(self, control: Control) -> None:
        """Add the routes."""
        control.add("PUT", "zonal-shifts/{cluster}", self._begin)
        control.add("DELETE", "zonal-shifts/{cluster}", self._end)

    def _begin(self, request: Request) -> None:
        kind, zone = str(request.body.get("shiftType") or "ZONAL_SHIFT"), str(request.body["awayFrom"])
        if kind not in EVENTS:
            raise BadRequest(f"shiftType: found {kind}, expected one of {', '.join(EVENTS)}")
        now, lasts = datetime.now(UTC), timedelta(seconds=float(request.body.get("seconds") or 3600))
        shift = {
            "appliedStatus": "APPLIED",
            "zonalShiftId": "00000000-0000-0000-0000-000000000001",
            "resourceIdentifier": self._arn(request.path["cluster"]),
            "awayFrom": zone,
            "startTime": now.timestamp(),
            "expiryTime": (now + min(lasts, LONGEST)).timestamp(),
            "comment": "local",
            "shiftType": kind,
        }
        self._shifts = {**self._shifts, request.path["cluster"]: shift}
        self._emit(request, EVENTS[kind][0], zone)

    def _end(self, request: Request) -> None:
        shift = self._shifts.get(request.path["cluster"])
        self._shifts = {**self._shifts, request.path["cluster"]: None}
        if shift is not None:
            self._emit(request, EVENTS[shift["shiftType"]][1], shift["awayFrom"])

    def _emit(self, request: Request, detail_type: str, zone: str) -> None:
        if request.body.get("silent"):
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
                resources=(self._arn(request.path["cluster"]),),
                bus=home,
            )
        )

    def _arn(self, cluster: str) -> str:
        return f"arn:aws:eks:{self._settings.region}:{self._settings.account}:cluster/{cluster}"

    def answer(self, call: Call, path: str) -> Answer | None:
        """Answer GetManagedResource; return None for any other call."""
        if call.name != "arc-zonal-shift:GetManagedResource":
            return None
        arn = unquote(path.removeprefix(PATH))
        cluster = arn.rpartition("/")[2]
        if cluster not in self._shifts:
            headers = {"Content-Type": "application/json", "x-amzn-ErrorType": "ResourceNotFoundException"}
            return 404, headers, json.dumps({"message": f"{arn} is no managed resource"}).encode()
        shift = self._shifts[cluster]
        over = shift is None or shift["expiryTime"] <= datetime.now(UTC).timestamp()
        shifts = [] if shift is None or over else [shift]
        weights = {str(one["awayFrom"]): 0.0 for one in shifts}
        document = {"arn": arn, "name": cluster, "appliedWeights": weights, "zonalShifts": shifts, "autoshifts": []}
        return 200, {"Content-Type": "application/json"}, json.dumps(document).encode()
