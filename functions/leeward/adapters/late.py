"""Adapters that most functions never use: imported and built at their first call, so that the others start cold without
them."""

from importlib import import_module
from typing import Any


def late(module: str, name: str, *arguments: object) -> Any:
    """Stands for `module.name(*arguments)` until somebody calls a method of it."""
    return _Late(module, name, arguments)


class _Late:
    def __init__(self, module: str, name: str, arguments: tuple[object, ...]) -> None:
        self._how = module, name, arguments
        self._built: Any = None

    def __getattr__(self, attribute: str) -> Any:
        if self._built is None:
            module, name, arguments = self._how
            self._built = getattr(import_module(module), name)(*arguments)
        return getattr(self._built, attribute)
