"""Texts of the page: escaped, cut, shortened; times and lengths as people read them."""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from html import escape

from leeward.cli.report.record import RunRecord
from leeward.model.times import format_instant
from leeward.model.visible import visible

SHORT = 130  # characters of a sentence in the table; the rest opens below it
_INSTANT = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.\d+)?Z")
_ANNOUNCED = re.compile(r"Leeward will \w+ this node: (?:i-[0-9a-f]+: )?")
_IDS = re.compile(r" \((?:subnet|i|lt|sg|vpc|eni)-[0-9a-f]+\)")
_DETAIL = re.compile(r"(?:subnet-[0-9a-f]+ |a node takes |pods are not counted|.*kube-system/aws-node)")


def safe(text: str) -> str:
    """Escape text for HTML, in tags or attributes. Characters that no page can hold, or that are not seen on it, are
    spelled out as in a terminal.
    """
    return escape(visible(text), quote=True)


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
    """Format the time of day in UTC, in whole seconds."""
    return format_instant(at)[11:19]


def count(number: int, word: str) -> str:
    """Format a count such as `1 node`, `3 nodes`."""
    return f"{number:,} {noun(number, word)}"


def noun(number: int, word: str) -> str:
    """Return the word in the number that the count asks for."""
    return word if number == 1 else f"{word}s"


def without_announcement(text: str) -> str:
    """Return the text of an Event without the words that each Event of its kind has, and its own node's instance."""
    return _ANNOUNCED.sub("", text)


def shortened(text: str) -> str:
    """Return the sentence without the ids that it repeats and without the clauses that only explain a calculation, cut
    after a whole word to SHORT characters.
    """
    plain = _IDS.sub("", text)
    first, *others = plain.split("; ")
    kept = "; ".join([first, *(clause for clause in others if not _DETAIL.match(clause))])
    if len(kept) <= SHORT:
        return kept
    head = kept[: SHORT - 1]
    return f"{head.rsplit(' ', 1)[0] if ' ' in head else head}…"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportClock:
    """Spelling of the times of one page: the date is left out where the whole run is within one day."""

    date: str  # of the run; empty where it spans several days

    @classmethod
    def of(cls, record: RunRecord) -> "ReportClock":
        """Return the spelling for a run."""
        return cls(date=day(record.start) if day(record.start) == day(record.end) else "")

    def moment(self, at: datetime) -> str:
        """Format a moment: its time of day, with the date where that is not the run's."""
        return clock(at) if day(at) == self.date else f"{day(at)} {clock(at)}"

    def sentence(self, text: str) -> str:
        """Return the text with its RFC 3339 times spelled as the page spells them."""
        return _INSTANT.sub(lambda found: found[2] if found[1] == self.date else f"{found[1]} {found[2]}", text)
