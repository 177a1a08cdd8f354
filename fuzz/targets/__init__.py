"""Targets of fuzzing, by name."""

from collections.abc import Callable, Mapping
from typing import Any

from fuzz.target import Target
from fuzz.targets.folders import Folders
from fuzz.targets.messages import Messages
from fuzz.targets.objects import Objects
from fuzz.targets.policies import PolicyDocuments, PolicyTexts
from fuzz.targets.quantities import Quantities
from fuzz.targets.reports import Reports
from fuzz.targets.selectors import Selectors
from fuzz.targets.user_data import UserData
from fuzz.targets.windows import Windows

_ALL: tuple[type[Target[Any]], ...] = (
    Quantities,
    Selectors,
    Windows,
    Messages,
    PolicyDocuments,
    PolicyTexts,
    UserData,
    Reports,
    Folders,
    Objects,
)
TARGETS: Mapping[str, Callable[[], Target[Any]]] = {target.name: target for target in _ALL}
