"""The ASGI application: the control API, then recording, faults and stand-ins, then ministack (and behind it moto)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from typing import Any, Protocol

from local.aws import faults
from local.aws.accounts import Accounts
from local.aws.calls import Call, recognise
from local.aws.control import Control
from local.aws.recording import Recording
from local.aws.requested import Home, requested
from local.aws.zonal_shifts import one_segment

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Asgi = Callable[[Mapping[str, Any], Receive, Send], Awaitable[None]]
Answer = tuple[int, dict[str, str], bytes]


class StandIn(Protocol):
    """Calls that neither emulator serves."""

    def answer(self, call: Call, path: str, body: bytes, /) -> Answer | None:
        """Answer the call; return None for one that it does not serve."""
        ...


class Gateway:
    """Layer between a client and ministack."""

    def __init__(
        self,
        inner: Asgi,
        control: Control,
        recording: Recording,
        injected: faults.Faults,
        stand_ins: Sequence[StandIn],
        home: Home,
        accounts: Accounts,
    ) -> None:
        self._inner = inner
        self._accounts = accounts
        self._control = control
        self._recording = recording
        self._faults = injected
        self._stand_ins = stand_ins
        self._home = home

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        """Serve one connection by the ASGI specification."""
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        body, replay = await _read(receive)
        if scope["path"].startswith("/_local/"):
            work = self._control.answer
            query = scope.get("query_string", b"").decode()
            await _respond(send, await asyncio.to_thread(work, scope["method"], scope["path"], query, body))
            return
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        query = scope.get("query_string", b"").decode("latin-1")
        path = one_segment(scope["path"])
        call = recognise(scope["method"], path, query, headers, body)
        if self._accounts.concern(headers, query, body):
            await _respond(send, await self._elsewhere(scope, call, headers, body))
            return
        answer = self._intercept(call, path, query, body)
        if answer is not None:
            await _respond(send, answer)
            return
        await self._inner(scope, replay, send)

    async def _elsewhere(
        self, scope: Mapping[str, Any], call: Call | None, headers: Mapping[str, str], body: bytes
    ) -> Answer:
        """Return the answer of another account, after the faults of this one."""
        fault = self._faults.take(call) if call else None
        if fault is not None and call is not None:
            return faults.answer(fault, call)
        path = scope.get("raw_path", scope["path"].encode()).decode("latin-1").partition("?")[0]
        target = f"{path}?{scope.get('query_string', b'').decode('latin-1')}"
        function = call.function if call else None
        return await asyncio.to_thread(self._accounts.answer, scope["method"], target, headers, body, function)

    def _intercept(self, call: Call | None, path: str, query: str, body: bytes) -> Answer | None:
        if call is None:
            return None
        if call.function is not None:
            self._recording.add(call, requested(call, path, query, body, self._home))
        fault = self._faults.take(call)
        if fault is not None:
            return faults.answer(fault, call)
        answers = (stand_in.answer(call, path, body) for stand_in in self._stand_ins)
        return next((answer for answer in answers if answer is not None), None)


async def _read(receive: Receive) -> tuple[bytes, Receive]:
    """Return the whole request body, and a ``receive`` that returns it again."""
    parts: list[bytes] = []
    more = True
    while more:
        message = await receive()
        if message["type"] != "http.request":
            break
        parts.append(message.get("body", b""))
        more = message.get("more_body", False)
    body = b"".join(parts)
    pending: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return pending.pop() if pending else await receive()

    return body, replay


async def _respond(send: Send, answer: Answer) -> None:
    status, headers, body = answer
    listed = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": listed})
    await send({"type": "http.response.body", "body": body})
