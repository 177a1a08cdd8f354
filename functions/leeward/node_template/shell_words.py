"""Words of shell scripts, with the quotes and substitutions that they hold."""

import re

from leeward.errors import InvalidInputError

ASSIGNMENT = re.compile(r"([A-Za-z_]\w{0,99})(?:\[[^\]\s]{0,99}\])?(\+?)=")
_PLAIN = {
    "": re.compile(r"[^\s;&|()<>\"'`$\\]+"),
    '"': re.compile(r"[^\"`$\\]+"),
    ")": re.compile(r"[^()\"'`$\\]+"),
    "}": re.compile(r"[^}\"'`$\\]+"),
    "`": re.compile(r"[^`\\]+"),
}  # characters without a meaning, by what closes the innermost quote


def plain(word: str) -> str:
    """Return the word without its quotes."""
    return re.sub(r"[\"']|\\(?=\W)", "", word)


def inner(word: str) -> str:
    """Return the text in the quotes around the word, with the quotes that it holds."""
    return word[1:-1] if word[:1] in {"'", '"'} else word


def word_end(text: str, start: int) -> int:
    """Return where the word that begins at `start` ends. Raises InvalidInputError for a quote that is not closed."""
    at, closers = start, list[str]()
    while at < len(text):
        if match := _PLAIN[closers[-1] if closers else ""].match(text, at):
            at = match.end()
        elif step := _step(text, at, start, closers):
            at += step
        else:
            break
    if closers or at > len(text) or at == start:
        raise InvalidInputError("found an open quote, expected its end")
    return at


def _step(text: str, at: int, start: int, closers: list[str]) -> int:
    """Return how many characters belong to the word, and note quotes that open and close; 0 at the end of the word."""
    top, char, after = closers[-1] if closers else "", text[at], text[at + 1 : at + 2]
    if char == "\\":
        return 2
    if char == top:
        closers.pop()
    elif char == "'" and top != '"':
        end = text.find("'", at + 1)
        return end + 1 - at if end >= 0 else len(text) + 1
    elif char in '"`':
        closers.append(char)
    elif char == "$" and after in {"(", "{"}:
        closers.append(")" if after == "(" else "}")
        return 2
    elif char == "(" and (top == ")" or (at > start and text[at - 1] in "=<>")):  # an array, a process substitution
        closers.append(")")
    elif not (top or char == "$" or (char in "<>" and after == "(" and at == start)):
        return 0
    return 1
