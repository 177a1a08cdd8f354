"""Reader of a parsed JSON document, piece by piece; errors name the path, the value found and the value expected."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from leeward.errors import InvalidInputError
from leeward.model.times import parse_instant

_INSTANT = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{1,6})?Z", re.ASCII)
LARGEST = 10**9  # replicas; what is larger cannot be drawn
_SHOWN = 60  # characters of a value in a message


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """One value and its path. Every method raises InvalidInputError when the value is of another kind."""

    path: str
    value: Any

    def has_only(self, *keys: str, may: tuple[str, ...] = ()) -> None:
        """Check for an object with all of these keys, perhaps those of `may`, and no other."""
        if not isinstance(self.value, dict):
            raise self._wrong("an object")
        for key in keys:
            if key not in self.value:
                raise InvalidInputError(f"{self._below(key)}: found nothing, expected it to be there")
        unknown = next((key for key in self.value if key not in (*keys, *may)), None)
        if unknown is not None:
            known = ", ".join((*keys, *may))
            raise InvalidInputError(f"{self._below(unknown)}: found an unknown key, expected one of {known}")

    def __getitem__(self, key: str) -> "Reader":
        return Reader(path=self._below(key), value=self.value[key])

    def holds(self, key: str) -> bool:
        """Return whether the object has the key."""
        return isinstance(self.value, dict) and key in self.value

    def entries(self) -> Iterator["Reader"]:
        """Yield the entries of a list."""
        if not isinstance(self.value, list):
            raise self._wrong("a list")
        for index, entry in enumerate(self.value):
            yield Reader(path=f"{self.path}[{index}]", value=entry)

    def text(self) -> str:
        """Return any text."""
        if not isinstance(self.value, str):
            raise self._wrong("text")
        return self.value

    def name(self) -> str:
        """Return text that is not empty."""
        if not isinstance(self.value, str) or not self.value:
            raise self._wrong("a name")
        return self.value

    def count(self) -> int:
        """Return a whole number from zero to `LARGEST`; 4.0 is one too, as in JSON Schema."""
        value = self.value
        whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
        if isinstance(value, bool) or not whole or not 0 <= value <= LARGEST:
            raise self._wrong(f"a whole number from 0 to {LARGEST}")
        return int(value)

    def truth(self) -> bool:
        """Return true or false."""
        if not isinstance(self.value, bool):
            raise self._wrong("true or false")
        return self.value

    def instant(self) -> datetime:
        """Return an RFC 3339 time in UTC with Z."""
        expected = "an RFC 3339 time such as 2024-05-01T12:00:00Z"
        if not isinstance(self.value, str) or not _INSTANT.fullmatch(self.value):
            raise self._wrong(expected)
        try:
            return parse_instant(self.value)
        except (ValueError, OverflowError):
            raise self._wrong(expected) from None

    def one_of(self, words: type[StrEnum]) -> str:
        """Return a word of a closed set."""
        allowed = [word.value for word in words]
        if self.value not in allowed:
            raise self._wrong(f"one of {', '.join(allowed)}")
        return str(self.value)

    def _below(self, key: str) -> str:
        return f"{self.path}.{key}" if self.path else str(key)

    def _wrong(self, expected: str) -> InvalidInputError:
        shown = repr(self.value)
        shown = shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…"
        return InvalidInputError(f"{self.path or 'the record'}: found {shown}, expected {expected}")
