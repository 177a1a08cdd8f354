"""Labels of the page: escaped and cut text, and times and lengths as people read them."""

import re
from datetime import datetime, timedelta
from html import escape

from leeward.model.times import format_instant

_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")


def safe(text: str) -> str:
    """Escape text for HTML, in tags or attributes; characters that no page can hold become a replacement character."""
    return escape(_UNPRINTABLE.sub("\ufffd", text), quote=True)


def cut(text: str, most: int) -> str:
    """Cut text to at most `most` characters, with an ellipsis in the middle: names differ at both ends."""
    if len(text) <= most:
        return text
    head = (most - 1) * 2 // 3
    return f"{text[:head]}…{text[len(text) - (most - 1 - head) :]}"


def length(span: timedelta) -> str:
    """Format a length such as 3.2 s, 4 min 05 s, 2 h 10 min, 3 d 04 h."""
    seconds = span.total_seconds()
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    if whole < 86400:
        return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
    return f"{whole // 86400} d {whole % 86400 // 3600:02d} h"


def day(at: datetime) -> str:
    """Format the date."""
    return format_instant(at)[:10]


def clock(at: datetime) -> str:
    """Format the time of day in UTC, to the millisecond where there is one."""
    return format_instant(at)[11:-1]


def moment(at: datetime) -> str:
    """Format date and time of day."""
    return f"{day(at)} {clock(at)}"


def count(number: int, noun: str) -> str:
    """Format a count such as `1 node`, `3 nodes`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
