"""Requests that are sent beside others: an admission webhook may keep one waiting for half a minute."""

import threading
from collections.abc import Callable


class Background:
    """Calls in threads of their own. The threads are daemons: none keeps a process alive."""

    def beside(self, work: Callable[[], None]) -> Callable[[float], bool]:
        """Begin the work; the returned function waits for so many seconds and tells whether it has ended."""
        return _Begun(work).ended


class _Begun:
    def __init__(self, work: Callable[[], None]) -> None:
        self._work, self._over = work, threading.Event()
        self._error: BaseException | None = None
        threading.Thread(target=self._run, daemon=True).start()

    def ended(self, seconds: float) -> bool:
        if not self._over.wait(seconds):
            return False
        if self._error is not None:
            raise self._error
        return True

    def _run(self) -> None:
        try:
            self._work()
        except BaseException as error:  # noqa: BLE001  (it is raised where the work is waited for)
            self._error = error
        self._over.set()
