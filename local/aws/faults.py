"""AWS calls that fail on demand: the next N calls of one action answer with an error instead of being carried out."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass
from xml.sax.saxutils import escape

from local.aws.calls import Call


@dataclass(slots=True, kw_only=True)
class Fault:
    """Injected failure; empty fields match everything, ``times`` None lasts until the faults are cleared."""

    service: str
    action: str | None = None
    code: str = "InternalFailure"
    message: str = "injected by the local AWS"
    status: int = 500
    times: int | None = 1
    function: str | None = None

    def covers(self, call: Call) -> bool:
        """Return whether this fault matches the call."""
        return (
            self.times != 0
            and self.service == call.service
            and self.action in (None, call.action)
            and self.function in (None, call.function)
        )


class Faults:
    """Injected faults; safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._all: list[Fault] = []

    def add(self, fault: Fault) -> None:
        """Inject one fault."""
        with self._lock:
            self._all.append(fault)

    def clear(self) -> None:
        """Clear all faults."""
        with self._lock:
            self._all.clear()

    def take(self, call: Call) -> Fault | None:
        """Return the fault that matches this call, if any, and use up one of its times."""
        with self._lock:
            for fault in self._all:
                if fault.covers(call):
                    if fault.times is not None:
                        fault.times -= 1
                    return fault
        return None


def answer(fault: Fault, call: Call) -> tuple[int, dict[str, str], bytes]:
    """Return the fault as an HTTP answer in the protocol that the service speaks."""
    if call.protocol == "ec2":
        body = (
            f"<Response><Errors><Error><Code>{fault.code}</Code><Message>{escape(fault.message)}</Message></Error>"
            "</Errors><RequestID>local</RequestID></Response>"
        )
        return fault.status, {"Content-Type": "text/xml"}, body.encode()
    if call.protocol in ("query", "rest-xml"):
        body = (
            f"<ErrorResponse><Error><Type>Sender</Type><Code>{fault.code}</Code>"
            f"<Message>{escape(fault.message)}</Message></Error><RequestId>local</RequestId></ErrorResponse>"
        )
        return fault.status, {"Content-Type": "text/xml"}, body.encode()
    headers = {"Content-Type": "application/json", "x-amzn-errortype": fault.code}
    return fault.status, headers, json.dumps({"__type": fault.code, "message": fault.message}).encode()
