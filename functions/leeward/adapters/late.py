"""Adapters that most functions never use: imported and built at their first call, so that the other functions start
cold without them."""

import threading
from collections.abc import Mapping
from importlib import import_module
from typing import Any


def late(module: str, name: str, *arguments: object, **named: object) -> Any:
    """Return a stand-in for `module.name(*arguments, **named)`, which is built when one of its methods is called."""
    return _Late(module, name, arguments, named)


class _Late:
    def __init__(self, module: str, name: str, arguments: tuple[object, ...], named: Mapping[str, object]) -> None:
        self._how = module, name, arguments, named
        self._built: Any = None
        self._lock = threading.Lock()  # fn interruption works in threads; a cache that is built twice forgets

    def __getattr__(self, attribute: str) -> Any:
        with self._lock:
            if self._built is None:
                module, name, arguments, named = self._how
                self._built = getattr(import_module(module), name)(*arguments, **named)
        return getattr(self._built, attribute)
