"""Flags that a script passes to kubelet: those that reach it in any case, and those of which it is not known."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from leeward.node_template.flags import pairs

BOOTSTRAP, WINDOWS_BOOTSTRAP = "bootstrap.sh", "EKSBootstrap"
Flags = list[tuple[str, str]]
_EXTRA = re.compile(
    r"(?:--kubelet-extra-args|-KubeletExtraArgs)(?:=|[ \t]+)((?:\"[^\"]*\"|'[^']*'|[^\s\"']+)+)", re.IGNORECASE
)  # quoted extra arguments hold flags of their own
_QUOTED = re.compile(r"\"([^\"]*)\"|'([^']*)'")
_USE_MAX_PODS = re.compile(r"\bUSE_MAX_PODS=[\"']?false\b")  # the variable that bootstrap.sh reads beside its own flag
_SETUP_DISKS = re.compile(r"\bsetup-local-disks[ \t]+(raid0|raid10)\b")  # what bootstrap.sh --local-disks calls


@dataclass(slots=True)
class Passed:
    """Flags by name and value. `opaque`: words of `taking` that hold arguments which are not written out."""

    sure: Flags = field(default_factory=list)
    unsure: Flags = field(default_factory=list)
    opaque: list[str] = field(default_factory=list)
    taking: str = "--kubelet-extra-args"
    problem: str = ""  # for which nothing is certain


def flags_in(row: str, opaque: list[str]) -> Flags:
    """Return the flags of the row, in the quotes of extra arguments too; `opaque` gets words that may hold others."""

    def unquoted(match: re.Match[str]) -> str:
        text = " ".join(_QUOTED.sub(lambda part: part[1] or part[2] or "", match[1]).splitlines())
        opaque.extend(opaque_words(text))
        return f" {text} "

    row = _EXTRA.sub(unquoted, row)
    variable = [("use-max-pods", "false")] if _USE_MAX_PODS.search(row) else []
    disks = [("local-disks", match[1]) for match in _SETUP_DISKS.finditer(row)]
    return [*variable, *((name, value) for _, name, value in pairs(row)), *disks]


def opaque_words(text: str) -> Iterator[str]:
    """Yield the words of arguments that only a shell expands, and that are no value of a flag."""
    before = ""
    for word in text.split():
        if word.strip("\"'\\").startswith(("$", "`")) and (not before.startswith("--") or "=" in before):
            yield word.strip("\"'\\")
        before = word
