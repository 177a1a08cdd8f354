"""Subset of YAML in which people write a NodeConfig: block mappings and lists, flow `{…}` and `[…]`, plain and quoted
texts, `|` and `>` blocks, comments.

No YAML parser runs in the functions (docs/designs/one-asset.md); what is beyond this subset (anchors, tags, several
keys on a line) is refused, so that no document is misread."""

import re
from collections.abc import Sequence
from typing import Any

from leeward.errors import InvalidInputError

DEEPEST = 24  # levels; a NodeConfig has six
_QUOTED_KEY = re.compile(r"""("[^"\\]*"|'[^']*')\s*:(?:\s+(.*))?$""")
_COLON = re.compile(r":(?=\s|$)")
_COMMENT = re.compile(r"(?:^|\s)#.*$")
_NO_START = "[]{}&*!|>%@`,"
_BLOCK = re.compile(r"[|>][+-]?$")
_FLOW_TOKEN = re.compile(r"""\s*("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[\[\]{},]|:(?=\s|$)|(?:[^\[\]{},:"']|:(?!\s|$))+)""")
_SCALARS = {"": None, "~": None, "null": None, "true": True, "True": True, "false": False, "False": False}


def load(text: str) -> Any:
    """Parse one document. Raises InvalidInputError naming the line where it leaves this subset of YAML."""
    lines = [(number, line) for number, line in enumerate(text.splitlines(), 1)]
    reader = _Reader([(n, line) for n, line in lines if line.strip() not in {"---", "..."}])
    value = reader.block(0, 0)
    reader.skip()
    if reader.at < len(reader.lines):
        raise reader.refused("the end")
    return value


class _Reader:
    """Reader of block after block; `at` is the next line."""

    def __init__(self, lines: Sequence[tuple[int, str]]) -> None:
        self.lines = list(lines)
        self.at = 0

    def refused(self, expected: str) -> InvalidInputError:
        number, line = self.lines[min(self.at, len(self.lines) - 1)]
        return InvalidInputError(f"line {number}: found {line.strip()[:40]!r}, expected {expected}")

    def skip(self) -> None:
        """Skip empty lines and comments."""
        while self.at < len(self.lines) and not _bare(self.lines[self.at][1]):
            self.at += 1

    def indent(self) -> int:
        """Return the indentation of the next line with content, -1 at the end."""
        self.skip()
        if self.at == len(self.lines):
            return -1
        line = self.lines[self.at][1]
        if "\t" in line[: len(line) - len(line.lstrip())]:
            raise self.refused("spaces before it")
        return len(line) - len(line.lstrip(" "))

    def block(self, least: int, depth: int) -> Any:
        """Read the mapping, list or text that begins at the next line; None when that is less indented than `least`."""
        column = self.indent()
        if column < least:
            return None
        if depth > DEEPEST:
            raise self.refused(f"at most {DEEPEST} levels")
        first = _bare(self.lines[self.at][1])
        if first == "-" or first.startswith("- "):
            return self.sequence(column, depth)
        if _entry(first):
            return self.mapping(column, depth)
        return self.scalar(first)

    def mapping(self, column: int, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while self.indent() == column:
            entry = _entry(_bare(self.lines[self.at][1]))
            if entry is None:
                raise self.refused("KEY: VALUE")
            key, rest = entry
            if key in found:
                raise self.refused("each key once")
            found[key] = self.value(rest, column, depth)
        if self.indent() > column:
            raise self.refused("the same indentation as the line before")
        return found

    def value(self, rest: str, column: int, depth: int) -> Any:
        """Read the value behind the colon, or below it; a list may be as far left as its key."""
        if _BLOCK.match(rest):
            return self.literal(rest, column)
        if rest:
            return self.scalar(rest)
        self.at += 1
        below = self.indent()
        dash = below == column and _bare(self.lines[self.at][1]).startswith("-")
        return self.block(column if dash else column + 1, depth + 1)

    def sequence(self, column: int, depth: int) -> list[Any]:
        found: list[Any] = []
        while self.indent() == column:
            number, line = self.lines[self.at]
            item = _bare(line)
            if item != "-" and not item.startswith("- "):
                break
            inner = item[1:].lstrip()
            if inner.startswith("- "):
                raise self.refused("one dash on a line")
            if not inner:
                self.at += 1
                found.append(self.block(column + 1, depth + 1))
            elif _entry(inner):
                # `- key: value`: the mapping begins at the column of its first key
                start = line.index("-", column) + 1
                self.lines[self.at] = (number, " " * start + line[start:])
                found.append(self.block(column + 1, depth + 1))
            else:
                found.append(self.scalar(inner))
        return found

    def literal(self, mark: str, column: int) -> str:
        """Read a `|` or `>` block: all lines that are further right."""
        self.at += 1
        taken: list[str] = []
        while self.at < len(self.lines):
            line = self.lines[self.at][1]
            if line.strip() and len(line) - len(line.lstrip(" ")) <= column:
                break
            taken.append(line)
            self.at += 1
        margin = min((len(line) - len(line.lstrip(" ")) for line in taken if line.strip()), default=0)
        text = ("\n" if mark[0] == "|" else " ").join(line[margin:].rstrip() for line in taken).rstrip()
        return text if mark.endswith("-") else text + "\n"

    def scalar(self, text: str) -> Any:
        """Read the rest of the line; the next line is then the one below."""
        value = self.flow(text) if text[0] in "[{" else self.plain(text)
        self.at += 1
        return value

    def flow(self, text: str) -> Any:
        tokens = _tokens(text) or []
        value, end = _flow(tokens, 0, 0)
        if not tokens or end != len(tokens):
            raise self.refused("a list or mapping that ends on its line")
        return value

    def plain(self, text: str) -> Any:
        quoted = text[0] in "\"'"
        if text[0] in _NO_START or (quoted and not _is_quoted(text)):
            raise self.refused("plain or quoted text")
        if not quoted and _COLON.search(text):
            raise self.refused("quotes around a text with a colon")
        return _plain(text)


def _entry(text: str) -> tuple[str, str] | None:
    """Return (key, text behind the colon) of a line of a mapping, or None for any other line."""
    if text[:1] in {'"', "'"}:
        quoted = _QUOTED_KEY.match(text)
        return (_unquoted(quoted[1]), quoted[2] or "") if quoted else None
    colon = _COLON.search(text)
    if colon is None or not colon.start() or text[0] in _NO_START:
        return None
    return text[: colon.start()].rstrip(), text[colon.end() :].lstrip()


def _bare(line: str) -> str:
    """Remove indentation and comment; a `#` inside quotes stays."""
    stripped = line.strip()
    if '"' in stripped or "'" in stripped:
        return _without_comment(stripped)
    return _COMMENT.sub("", stripped).rstrip()


def _without_comment(text: str) -> str:
    quote = ""
    for index, letter in enumerate(text):
        if quote:
            quote = "" if letter == quote and text[index - 1] != "\\" else quote
        elif letter in "\"'" and (index == 0 or text[index - 1] in " \t[{,:"):
            quote = letter
        elif letter == "#" and (index == 0 or text[index - 1].isspace()):
            return text[:index].rstrip()
    return text


def _plain(text: str) -> Any:
    if text[:1] in {'"', "'"}:
        return _unquoted(text)
    if text in _SCALARS:
        return _SCALARS[text]
    return int(text) if re.fullmatch(r"[+-]?\d{1,18}", text, re.ASCII) else text


def _is_quoted(text: str) -> bool:
    return bool(re.fullmatch(r""""(?:[^"\\]|\\.)*"|'(?:[^']|'')*'""", text))


def _unquoted(text: str) -> str:
    if text[:1] == "'":
        return text[1:-1].replace("''", "'")
    return re.sub(r"\\(.)", r"\1", text[1:-1]) if text[:1] == '"' else text


def _tokens(text: str) -> list[str] | None:
    found: list[str] = []
    at = 0
    while at < len(text):
        token = _FLOW_TOKEN.match(text, at)
        if token is None:
            return None if text[at:].strip() else found
        found.append(token[1].strip())
        at = token.end()
    return [token for token in found if token]


def _flow(tokens: Sequence[str], at: int, depth: int) -> tuple[Any, int]:
    """Parse one value of a flow collection and return it with the index behind it; -1 when it is none."""
    if at < 0 or at >= len(tokens) or depth > DEEPEST:
        return None, -1
    if tokens[at] not in "[{":
        return (None, -1) if tokens[at] in "]},:" else (_plain(tokens[at]), at + 1)
    mapping, close = tokens[at] == "{", "}" if tokens[at] == "{" else "]"
    pairs: list[tuple[Any, Any]] = []
    at += 1
    while 0 <= at < len(tokens) and tokens[at] != close:
        key, at = _flow(tokens, at, depth + 1)
        value = None
        if mapping and 0 <= at < len(tokens) and tokens[at] == ":":
            value, at = _flow(tokens, at + 1, depth + 1)
        pairs.append((key, value))
        if 0 <= at < len(tokens) and tokens[at] == ",":
            at += 1
        elif not (0 <= at < len(tokens) and tokens[at] == close):
            return None, -1
    if not 0 <= at < len(tokens):
        return None, -1
    return ({str(key): value for key, value in pairs} if mapping else [key for key, _ in pairs]), at + 1
