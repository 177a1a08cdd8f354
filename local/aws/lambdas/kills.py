"""Switch that kills a function's process in the middle of an invocation, as the kernel does for lack of memory."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ministack.core import lambda_runtime

from local.aws.pins import expect

_POLL_SECONDS = 0.02


@dataclass(slots=True, kw_only=True)
class Kill:
    """Number of invocations of a function that die, and seconds after their beginning."""

    after_seconds: float
    times: int


class Kills:
    """Armed kills by function name. A kill is used up only when it has hit a running invocation."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._armed: dict[str, Kill] = {}

    def install(self) -> None:
        """Patch the invocation of a worker."""
        expect("ministack", hasattr(lambda_runtime.Worker, "invoke"), "lambda_runtime.Worker has no invoke")
        lambda_runtime.Worker.invoke = self._watched(lambda_runtime.Worker.invoke)

    def arm(self, function: str, after_seconds: float, times: int) -> None:
        """Kill the next ``times`` invocations of ``function`` that last longer than ``after_seconds``."""
        with self._lock:
            self._armed[function] = Kill(after_seconds=after_seconds, times=times)

    def clear(self) -> None:
        """Disarm everything."""
        with self._lock:
            self._armed.clear()

    def remaining(self) -> dict[str, int]:
        """Return how many kills are left, by function."""
        with self._lock:
            return {function: kill.times for function, kill in self._armed.items()}

    def _watched(self, original: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
        @functools.wraps(original)
        def invoke(worker: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
            with self._lock:
                kill = self._armed.get(worker.func_name)
            if kill is None or kill.times <= 0:
                return original(worker, *args, **kwargs)
            over = threading.Event()
            threading.Thread(target=self._strike, args=(worker, kill, over), daemon=True).start()
            try:
                return original(worker, *args, **kwargs)
            finally:
                over.set()

        return invoke

    def _strike(self, worker: Any, kill: Kill, over: threading.Event) -> None:
        while worker._proc is None or worker._start_time is None:
            if over.wait(_POLL_SECONDS):
                return
        if over.wait(kill.after_seconds):
            return
        with self._lock:
            if kill.times > 0 and worker._proc is not None:
                kill.times -= 1
                worker._proc.kill()
