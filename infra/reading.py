"""Reader of one mapping of the settings, key by key; each mistake becomes one sentence.

It knows JSON's types, not the meaning of the keys.
"""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from leeward.errors import InvalidInputError
from leeward.policy.parse import EXPECTED, refers

_SHOWN = 60  # characters of a value that a message repeats


@dataclass(frozen=True, slots=True)
class Reader:
    """Reader of `value` at `path` of `source`. Every method raises InvalidInputError naming source, path, found and
    expected.
    """

    source: str
    path: str
    value: Any

    def __post_init__(self) -> None:
        if not isinstance(self.value, Mapping):
            self.refuse("", self.value, "a mapping")

    def refuse(self, key: str, found: object, expected: str) -> NoReturn:
        """Raise for the value at `key` ("" for the whole)."""
        shown = found if isinstance(found, str) else json.dumps(found, default=str)
        shown = shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…"
        path = f"{self.path}.{key}" if key else self.path
        raise InvalidInputError(f"{self.source}: {path}: found {shown}, expected {expected}")

    def only(self, *known: str) -> None:
        """Reject any other key."""
        for key in self.value:
            if key not in known:
                self.refuse("", f"key {key!r}", f"only {', '.join(known)}")

    def has(self, key: str) -> bool:
        """Return whether there is a value at `key`; null counts as none."""
        return self.value.get(key) is not None

    def mapping(self, key: str) -> "Reader":
        """Return the mapping at `key`, empty when there is none."""
        return Reader(self.source, f"{self.path}.{key}", self.value[key] if self.has(key) else {})

    def items(self, key: str, *, at_least: int, at_most: int) -> list["Reader"]:
        """Return a list of mappings."""
        found = self._list(key, at_least)
        if len(found) > at_most:
            self.refuse(key, f"{len(found)} items", f"at most {at_most}")
        return [Reader(self.source, f"{self.path}.{key}[{index}]", item) for index, item in enumerate(found)]

    def text(self, key: str, pattern: re.Pattern[str] | None, expected: str) -> str | None:
        """Return a text that `pattern` matches as a whole, None when there is none."""
        return self._text(key, self.value[key], pattern, expected) if self.has(key) else None

    def needed_text(self, key: str, pattern: re.Pattern[str] | None, expected: str) -> str:
        """Return a text as `text` does, and require it."""
        return self._text(key, self.value.get(key), pattern, expected)

    def texts(self, key: str, pattern: re.Pattern[str] | None, expected: str, *, at_least: int = 0) -> tuple[str, ...]:
        """Return a list of texts."""
        found = self._list(key, at_least) if at_least or self.has(key) else []
        return tuple(self._text(f"{key}[{index}]", item, pattern, expected) for index, item in enumerate(found))

    def switch(self, key: str, *, default: bool) -> bool:
        """Return true or false."""
        found = self.value.get(key, default)
        if not isinstance(found, bool):
            self.refuse(key, found, "true or false")
        return found

    def count(self, key: str, *, default: int, at_least: int, at_most: float = math.inf) -> int | None:
        """Return a whole number; 0 says "none on purpose" and becomes None (the CDK passes no null through)."""
        found = self.value.get(key, default)
        if isinstance(found, bool) or not isinstance(found, int) or not (found == 0 or at_least <= found <= at_most):
            most = "" if at_most == math.inf else f" and at most {at_most}"
            self.refuse(key, found, f"a whole number of at least {at_least}{most}, or 0 for none")
        return found or None

    def choice(self, key: str, choices: tuple[str, ...], *, default: str) -> str:
        """Return one of a closed set."""
        found = self.value.get(key, default)
        if found not in choices:
            self.refuse(key, found, " | ".join(choices))
        return str(found)

    def _list(self, key: str, at_least: int) -> list[Any]:
        found = self.value.get(key)
        if not isinstance(found, list) or len(found) < at_least:
            self.refuse(key, found, f"a list of at least {at_least}" if at_least else "a list")
        return found

    def _text(self, key: str, found: object, pattern: re.Pattern[str] | None, expected: str) -> str:
        if not isinstance(found, str) or (pattern and not pattern.fullmatch(found)):
            self.refuse(key, found, expected)
        if refers(found):
            self.refuse(key, found, EXPECTED)
        return found
