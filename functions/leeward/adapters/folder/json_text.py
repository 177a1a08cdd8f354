"""JSON text of a file, decoded value by value: of a list of 60,000 pods one is in memory at a time.

The values are decoded by the standard library from a buffer that slides over the file, in less time than the whole file
in one piece. ijson with yajl takes twice as long, tells no line, and cannot say that a list is missing."""

import codecs
import json
import re
from collections.abc import Iterator
from typing import Any, BinaryIO

BLOCK = 1 << 20  # bytes read at once; a value that does not fit doubles the buffer
SHOWN = 20  # characters that an error shows
_SPACE = re.compile(r"[ \t\n\r]*")


class JsonTextError(Exception):
    """Error for text that is no JSON; `place` in the file, `reason`, and the text that is `near`, None where the whole
    file is wrong.
    """

    def __init__(self, reason: str, place: str = "document", near: str | None = None) -> None:
        super().__init__(f"{place}: {reason}")
        self.reason, self.place, self.near = reason, place, near


class JsonText:
    """JSON of an open file. Methods raise JsonTextError, and OSError. Keys whose value is null are left out, as
    Kubernetes takes null for absent.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._bytes, self._ended = file, 0, False
        self._utf8 = codecs.getincrementaldecoder("utf-8-sig")()
        self._text, self._at = "", 0  # the buffer, and the next character in it
        self._lines, self._column = 0, 0  # before the buffer: line breaks, and characters since the last of them
        self._decode = json.JSONDecoder(object_pairs_hook=_without_nulls, parse_float=_number).raw_decode

    def peek(self) -> str:
        """Return the next character that is no space, empty at the end of the file."""
        while True:
            space = _SPACE.match(self._text, self._at)
            self._at = space.end() if space is not None else self._at
            if self._at < len(self._text) or self._ended:
                return self._text[self._at : self._at + 1]
            self._fill()

    def value(self) -> Any:
        """Return the next value as a whole."""
        self.peek()
        while True:
            try:
                value, end = self._decode(self._text, self._at)
            except json.JSONDecodeError as error:
                # a value that is cut off fails at the end of the buffer, or names the beginning of its last text
                cut_off = error.pos + SHOWN > len(self._text) or error.msg.startswith("Unterminated")
                if self._ended or not cut_off:
                    raise self._error(error.msg, error.pos - self._at) from None
            except (ValueError, RecursionError):
                raise JsonTextError("JSON out of all proportion") from None
            else:
                if end + SHOWN <= len(self._text) or self._ended:  # a number might go on
                    self._at = end
                    return value
            self._fill()

    def items(self) -> Iterator[int]:
        """Yield the number of each item of the next value, a list. The caller reads the item before the next one."""
        for number, _ in enumerate(self._parts("]")):
            yield number

    def members(self) -> Iterator[str]:
        """Yield each key of the next value, a mapping. The caller reads the key's value before the next one."""
        for _ in self._parts("}"):
            if self.peek() != '"':
                raise self._error("Expecting property name enclosed in double quotes")
            key = self.value()
            if self.peek() != ":":
                raise self._error("Expecting ':' delimiter")
            self._at += 1
            yield key

    def _parts(self, last: str) -> Iterator[None]:
        """Yield before each part of a list or mapping, whose first character is next."""
        self._at += 1
        if self.peek() == last:
            self._at += 1
            return
        while True:
            yield
            found = self.peek()
            if found not in {",", last}:
                raise self._error("Expecting ',' delimiter")
            self._at += 1
            if found == last:
                return

    def _fill(self) -> None:
        """Drop the text before the next character from the buffer and read more."""
        dropped, self._text = self._text[: self._at], self._text[self._at :]
        self._lines, self._column, self._at = *self._after(dropped), 0
        block = self._file.read(max(BLOCK, len(self._text)))
        self._bytes, self._ended = self._bytes + len(block), not block
        try:
            self._text += self._utf8.decode(block, final=not block)
        except UnicodeDecodeError as error:
            place = f"byte {self._bytes - len(error.object) + error.start + 1}"
            raise JsonTextError(f"text that is not UTF-8 ({error.reason})", place) from error

    def _after(self, text: str) -> tuple[int, int]:
        """Return the line breaks before the end of a text at the buffer's beginning, and the characters since."""
        breaks = text.count("\n")
        return self._lines + breaks, len(text) - text.rfind("\n") - 1 if breaks else self._column + len(text)

    def _error(self, reason: str, after: int = 0) -> JsonTextError:
        """Return the error for the text that many characters after the next one."""
        while self._at + after + SHOWN > len(self._text) and not self._ended:
            self._fill()
        at = self._at + after
        lines, column = self._after(self._text[:at])
        return JsonTextError(reason, f"line {lines + 1} column {column + 1}", self._text[at : at + SHOWN])


def _number(text: str) -> int | float:
    """Return a whole number as an int: to JSON Schema 4.0 is one, and the models count with it."""
    value = float(text)
    return int(value) if value.is_integer() else value


def _without_nulls(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    return {key: value for key, value in pairs if value is not None}
