"""Reader of one mapping of a document, key by key: types, ranges, and every problem collected with its path.

Decides how a problem is worded; `sections.py` has the keys and their defaults."""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from math import isfinite
from types import TracebackType
from typing import Any, Self, TypeGuard, TypeVar

from leeward.model.visible import visible
from leeward.policy.durations import LONGEST, format_duration, parse_duration

T = TypeVar("T")
D = TypeVar("D")
NEVER = "Never"
_SURROGATE = re.compile("[\ud800-\udfff]")
LONGEST_KEY = 63  # characters of a key that a path shows without quotes, and whole
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Problems:
    """Errors of one document, a line each. `source` is the file (and document number) it came from."""

    source: str
    lines: list[str] = field(default_factory=list)

    def add(self, path: str, found: str, expected: str) -> None:
        """Add one problem, in the wording that every refusal shares."""
        self.lines.append(f"{self.source}: {path or 'document'}: found {found}, expected {expected}")


class Section:
    """One mapping of a document. As a context manager it reports, at its end, the keys that were not read."""

    def __init__(self, value: Any, path: str, problems: Problems) -> None:
        self.path = path
        self.problems = problems
        self._read: dict[str, None] = {}
        self._sealed = False
        if value is not None and not isinstance(value, Mapping):
            problems.add(path, shown(value), "a mapping")
            value = None
        self._raw: Mapping[Any, Any] = value or {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None and not self._sealed:
            for key in self._raw:
                if key not in self._read:
                    self.problems.add(self.at(key), "an unknown key", f"one of {', '.join(self._read)}")

    def seal(self) -> None:
        """Do not report unknown keys: the kind of the mapping is not known."""
        self._sealed = True

    def at(self, key: object) -> str:
        """Return the path of a key: `spec.drain.timeout`, `spec.selector.tags["k8s.io/x"]`."""
        name = str(key)
        if len(name) > LONGEST_KEY or not _PLAIN_KEY.fullmatch(name):
            return f"{self.path}[{shown(name)}]"
        return f"{self.path}.{name}" if self.path else name

    def has(self, key: str) -> bool:
        """Return whether the key is set; null counts as absent, as in Kubernetes."""
        return self.raw(key) is not None

    def raw(self, key: str) -> Any:
        """Return the value unparsed, or None when it is absent or null."""
        self._read[key] = None
        return self._raw.get(key)

    def refuse(self, key: str, expected: str, found: str | None = None) -> None:
        """Record a problem with the key's value."""
        self.problems.add(self.at(key), found or (shown(self.raw(key)) if self.has(key) else "nothing"), expected)

    def read(self, key: str, default: D, parse: Callable[[Any], T], expected: str) -> T | D:
        """Return the parsed value, the default when it is absent or `parse` raised ValueError (then recorded)."""
        value = self.raw(key)
        if value is None:
            return default
        try:
            return parse(value)
        except ValueError:
            self.refuse(key, expected)
            return default

    def section(self, key: str) -> "Section":
        """Return the mapping under the key, an empty one when it is absent."""
        return Section(self.raw(key), self.at(key), self.problems)

    def sections(self, key: str) -> "list[Section] | None":
        """Return the mappings in the list under the key, None when absent or no list; other values are recorded."""
        items = self.items(key, "a list of mappings")
        if items is None:
            return None
        for path, item in items:
            if not isinstance(item, Mapping):
                self.problems.add(path, shown(item), "a mapping")
        return [Section(item, path, self.problems) for path, item in items if isinstance(item, Mapping)]

    def items(self, key: str, expected: str) -> list[tuple[str, Any]] | None:
        """Return the elements under the key, each with its path; None when it is absent or no list (then recorded)."""
        value = self.raw(key)
        if value is None:
            return None
        if not isinstance(value, list | tuple):
            self.refuse(key, expected)
            return None
        return [(f"{self.at(key)}[{index}]", item) for index, item in enumerate(value)]

    def boolean(self, key: str, default: bool) -> bool:
        """Read true or false."""
        return self.read(key, default, _boolean, "true or false")

    def integer(self, key: str, default: D, low: int, high: int | None = None) -> int | D:
        """Read a whole number in a range, both ends included."""
        expected = f"a whole number of at least {low}" if high is None else f"a whole number from {low} to {high}"
        return self.read(key, default, lambda value: whole_number(value, low, high), expected)

    def number(self, key: str, default: float, low: float, high: float | None = None) -> float:
        """Read a number in a range, both ends included."""
        expected = f"a number of at least {low:g}" if high is None else f"a number from {low:g} to {high:g}"
        return self.read(key, default, lambda value: _number(value, low, high), expected)

    def text(self, key: str, default: D) -> str | D:
        """Read text that is not empty."""
        return self.read(key, default, _text, "text that is not empty (in quotes, where YAML reads another type)")

    def word(self, key: str, default: str, words: Iterable[str]) -> str:
        """Read one of a closed set."""
        allowed = tuple(words)
        return self.read(key, default, lambda value: _one_of(value, allowed), f"one of {', '.join(allowed)}")

    def choice(self, key: str, default: bool, *, yes: str, no: str) -> bool:
        """Read one of two words that stand for true and false."""
        return self.word(key, yes if default else no, (yes, no)) == yes

    def duration(self, key: str, default: D, low: timedelta = timedelta(), high: timedelta = LONGEST) -> timedelta | D:
        """Read a duration in a range, both ends included."""
        return self.read(key, default, lambda value: _duration(value, low, high), duration_expected(low, high))

    def duration_or(
        self, key: str, default: timedelta | None, word: str, low: timedelta, high: timedelta = LONGEST
    ) -> timedelta | None:
        """Read a duration, or the word that stands for None."""
        expected = f"{word} or {duration_expected(low, high)}"
        return self.read(key, default, lambda value: None if value == word else _duration(value, low, high), expected)

    def texts(self, key: str, words: Iterable[str] | None = None) -> tuple[str, ...]:
        """Read a list of texts, none empty, none twice, each one of `words` where they are given."""
        allowed = None if words is None else tuple(words)
        expected = f"one of {', '.join(allowed)}" if allowed else "text that is not empty"
        taken: list[str] = []
        for path, item in self.items(key, "a list of texts") or ():
            if not is_text(item) or not item or (allowed and item not in allowed):
                self.problems.add(path, shown(item), expected)
            elif item in taken:
                self.problems.add(path, f"{shown(item)} twice", "each once")
            else:
                taken.append(item)
        return tuple(taken)

    def text_map(self, key: str) -> dict[str, str]:
        """Read a mapping of texts to texts; values may be empty."""
        section = self.section(key)
        for name, value in section._raw.items():
            if not is_text(name) or not name:
                self.problems.add(section.path, f"the key {shown(name)}", "text that is not empty as key")
            elif not is_text(value):
                self.problems.add(section.at(name), shown(value), 'text (in quotes: "")')
        return {k: v for k, v in section._raw.items() if is_text(k) and is_text(v)}


def is_text(value: Any) -> TypeGuard[str]:
    """Return whether the value is text that can be stored: half of a surrogate pair has no UTF-8."""
    return isinstance(value, str) and not _SURROGATE.search(value)


def shown(value: Any) -> str:
    """Return a value as a message shows it: short, on one line, in the document's own spelling."""
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    if isinstance(value, int) and value.bit_length() > 256:
        return "a very large number"
    try:
        text = legible(json.dumps(value, ensure_ascii=False))
    except (TypeError, ValueError):
        text = f"a value of type {type(value).__name__}"
    return text if len(text) <= 80 else f"{text[:77]}..."


def legible(text: str, most: int | None = None) -> str:
    """Return the text with the characters escaped that would break or disguise its line, such as a right-to-left
    override, cut to `most` characters.
    """
    if not text.isprintable():
        text = "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text)
    text = visible(text)  # some letters and marks count as printable and have no form
    return text if most is None or len(text) <= most else f"{text[: most - 3]}..."


def duration_expected(low: timedelta, high: timedelta) -> str:
    """Describe the allowed durations for a refusal."""
    example = "a duration such as 15m or 1h30m"
    if high < LONGEST:
        return f"{example}, from {format_duration(low)} to {format_duration(high)}"
    return f"{example}, at least {format_duration(low)}" if low else example


def whole_number(value: Any, low: int, high: int | None) -> int:
    """Check for a whole number in the range; true and false are none. Raises ValueError."""
    if isinstance(value, bool) or not isinstance(value, int) or value < low or (high is not None and value > high):
        raise ValueError("no such whole number")
    return value


def _number(value: Any, low: float, high: float | None) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("no number")
    if isinstance(value, float) and not isfinite(value):
        raise ValueError("no finite number")
    if value < low or (high is not None and value > high):
        raise ValueError("out of range")
    return value


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("neither true nor false")
    return value


def _text(value: Any) -> str:
    if not is_text(value) or not value:
        raise ValueError("no text")
    return value


def _one_of(value: Any, allowed: tuple[str, ...]) -> str:
    if value not in allowed:
        raise ValueError("none of them")
    return str(value)


def _duration(value: Any, low: timedelta, high: timedelta) -> timedelta:
    duration = parse_duration(value)
    if not low <= duration <= high:
        raise ValueError("out of range")
    return duration
