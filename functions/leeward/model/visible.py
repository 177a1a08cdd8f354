"""Escapes for untrusted text. Names, annotations and error texts come from clusters; raw, they could move a terminal's
cursor, hide a line, turn the order of its letters, or look like another name.

Characters that are drawn as nothing or as a blank are spelled out: Unicode's Default_Ignorable_Code_Point (a stable
property, which `unicodedata` lacks), annotation controls, and blanks other than the space and the ideographic space,
which is twice as wide. Letters of two scripts that are drawn alike stay: an escape would make whole languages
unreadable."""

import re

QUOTED = 80  # characters
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 without tab and line feed, DEL, C1
    "\xa0\u1680\u2000-\u200a\u202f\u205f\u2800"  # blanks
    "\xad\u034f\u180b-\u180f\u200b-\u200f\u2060-\u206f\ufeff"  # soft hyphen, zero width, joiners, directions
    "\u061c\u202a-\u202e"  # direction of text (Unicode TR 9)
    "\u115f\u1160\u17b4\u17b5\u3164\uffa0"  # fillers of Hangul, vowels of Khmer without a form
    "\ufe00-\ufe0f\U000e0000-\U000e0fff"  # variation selectors, tags
    "\ufff0-\ufffb\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"  # controls of some notations
    "\u2028\u2029\ud800-\udfff]"
)


def visible(text: str) -> str:
    r"""Return the text with characters that act on a terminal, on the order of others, or that are not seen, spelled
    out: `\x1b`, `\u200b`.
    """
    return _INVISIBLE.sub(lambda found: ascii(found[0])[1:-1], text)


def quoted(text: str) -> str:
    """Return a wrong text as a message repeats it: in quotes, escaped and cut short."""
    return visible(repr(text) if len(text) <= QUOTED else f"{text[:QUOTED]!r}…")
