"""Assertions that a patched private part of ministack or moto still has the code that the patch was written for.

Each patch calls ``expect_parameters`` or ``expect_source`` before it replaces anything, so that a changed pin ends the
launcher at start with a clear message, not a test run with an obscure failure.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

PINS = {"ministack": "1.5.33", "moto": "5.2.5"}


class PinMismatch(RuntimeError):
    """Error: a dependency does not have the version, or the shape, that a patch was written for."""


def check_versions() -> None:
    """Refuse to start on any version but the pinned ones."""
    for package, pinned in PINS.items():
        found = version(package)
        if found != pinned:
            raise PinMismatch(f"{package}=={pinned} is needed (its private parts are patched), found {found}")


def expect_parameters(package: str, function: Callable[..., Any], *names: str) -> None:
    """Refuse to patch a function whose parameters are not exactly ``names``."""
    found = tuple(inspect.signature(function).parameters)
    if found != names:
        where = f"{function.__module__}.{function.__qualname__}"
        raise PinMismatch(f"{package}=={PINS[package]}: {where} takes {found}, the patch expects {names}")


def expect_source(package: str, where: str, source: str, *fragments: str) -> None:
    """Refuse to patch code in which one of ``fragments`` does not occur exactly once."""
    for fragment in fragments:
        if source.count(fragment) != 1:
            raise PinMismatch(f"{package}=={PINS[package]}: {where} no longer contains exactly one {fragment!r}")


def expect(package: str, condition: bool, what: str) -> None:
    """Refuse to patch when ``condition`` does not hold."""
    if not condition:
        raise PinMismatch(f"{package}=={PINS[package]}: {what}")


def replace(owner: Any, **members: Any) -> None:
    """Replace private members of a class or module by our own."""
    for name, member in members.items():
        setattr(owner, name, member)
