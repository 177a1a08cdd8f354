"""Targets of fuzzing, by name."""

from collections.abc import Callable, Mapping
from typing import Any

from fuzz.target import Target
from fuzz.targets.quantities import Quantities
from fuzz.targets.selectors import Selectors
from fuzz.targets.windows import Windows

TARGETS: Mapping[str, Callable[[], Target[Any]]] = {target.name: target for target in (Quantities, Selectors, Windows)}
