"""Flags of Windows' scripts: PowerShell, batch files, and the tasks of EC2Launch.

Text in braces, and a batch file with branches, may run or not."""

import re
from collections.abc import Iterable

from leeward.node_template.passed_flags import Passed, flags_in

Span = tuple[int, int]
_CALL = re.compile(r"&[ \t]*[\"']?[^\n\"']{0,200}EKSBootstrap[^\s\"']{0,50}[\"']?[ \t]+([^\n]+)", re.IGNORECASE)
_BATCH = re.compile(
    r"<script>(?s:.*?)(?:</script>|\Z)|type:[ \t]*batch(?s:.*?)(?:^- task|\Z)", re.IGNORECASE | re.MULTILINE
)
_BATCH_BRANCH = re.compile(r"(?:^|[\s&(@])(?:if|for|goto)[ \t]|&&|\|\|", re.IGNORECASE)
MOST_VARIABLES = 8  # that are looked up in a script


def of_windows(row: str) -> Passed:
    """Return the flags of a script of Windows."""
    found = Passed(taking="-KubeletExtraArgs")
    calls = [(match.span(), " ".join(match[1].split())) for match in _CALL.finditer(row)]
    differing = [span for span, _ in calls] if len({text for _, text in calls}) > 1 else []
    batches = [match.span() for match in _BATCH.finditer(row) if _BATCH_BRANCH.search(match[0])]
    position = 0
    words: list[str] = []
    for start, end in _joined([*_braces(row), *differing, *batches]):
        found.sure += flags_in(row[position:start], words)
        found.unsure += flags_in(row[start:end], words)
        position = end
    found.sure += flags_in(row[position:], words)
    words = list(dict.fromkeys(words))
    found.opaque = [word for word in words[:MOST_VARIABLES] if _is_opaque(word, row)] + words[MOST_VARIABLES:]
    return found


def _is_opaque(word: str, row: str) -> bool:
    """Return whether the word may hold flags that the row does not assign to a variable of that name."""
    name = re.match(r"\$\{?(\w{1,64})", word)
    return name is None or re.search(rf"\b{name[1]}[ \t]*\+?=[^\n]*--[a-z]", row) is None


def _joined(spans: Iterable[Span]) -> list[Span]:
    joined: list[Span] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((start, end))
    return joined


def _braces(row: str) -> list[Span]:
    """Return the spans in braces, which are blocks of PowerShell; `${name}` is a variable."""
    spans, opened = [], []
    for match in re.finditer(r"(?<!\$)\{|\}", row):
        if match[0] == "{":
            opened.append(match.start())
        elif opened:
            spans.append((opened.pop(), match.end()))
    return spans
