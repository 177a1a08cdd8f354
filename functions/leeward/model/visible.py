"""Escapes for untrusted text. Names, annotations and error texts come from clusters; raw, they could move a terminal's
cursor, hide a line or turn the order of its letters."""

import re

QUOTED = 80  # characters
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 without tab and line feed, DEL, C1
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # direction of text (Unicode TR 9)
    "\u2028\u2029\ud800-\udfff]"
)


def visible(text: str) -> str:
    r"""Return the text with characters that act on a terminal, or on the order of others, spelled out: `\x1b`."""
    return _INVISIBLE.sub(lambda found: ascii(found[0])[1:-1], text)


def quoted(text: str) -> str:
    """Return a wrong text as a message repeats it: in quotes, escaped and cut short."""
    return repr(text) if len(text) <= QUOTED else f"{text[:QUOTED]!r}…"
