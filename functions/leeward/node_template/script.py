"""Scripts of user data: what they pass to kubelet, to EKS' bootstrap.sh, or to its counterpart on Windows.

A script is not run. A flag in a branch (`if`, `case`, `&&` after a test), or in one of several calls that differ, is
not known to reach kubelet: its attribute is unknown, and the most cautious of the values counts. So is every attribute
of a kubelet whose own files the script edits."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from leeward.errors import InvalidInputError
from leeward.model.quantity import amount
from leeward.model.visible import quoted
from leeward.node_template.flags import MOST_UNKNOWN_PODS, MOST_WARNINGS, pairs, read
from leeward.node_template.kubelet import Family, KubeletSettings
from leeward.node_template.provenance import KUBELET, Attribute, Provenance, joined, unknown

BOOTSTRAP, WINDOWS_BOOTSTRAP = "bootstrap.sh", "EKSBootstrap"
Span = tuple[int, int]
Flags = list[tuple[str, str]]
_COMMENT = re.compile(r"^[ \t]*#(?!!).*$|[ \t]#[^\n\"']{0,200}$", re.MULTILINE)  # not in a quoted text
_USE_MAX_PODS = re.compile(r"\bUSE_MAX_PODS=[\"']?false\b")  # the variable that bootstrap.sh reads beside its own flag
_SETUP_DISKS = re.compile(r"\bsetup-local-disks[ \t]+(raid0|raid10)\b")  # what bootstrap.sh --local-disks calls
_EXTRA = re.compile(
    r"(?:--kubelet-extra-args|-KubeletExtraArgs)(?:=|[ \t]+)((?:\"[^\"]*\"|'[^']*'|[^\s\"']+)+)", re.IGNORECASE
)  # quoted extra arguments hold flags of their own
_QUOTED = re.compile(r"\"([^\"]*)\"|'([^']*)'")
MOST_VARIABLES = 8  # that are looked up in a script
_START = r"(?:^|[;&|({)]|\bthen\b|\bdo\b|\belse\b|!)[ \t]*"
_BLOCK = re.compile(_START + r"(if|case|fi|esac)\b", re.MULTILINE)
_SHORT = re.compile(r"(?:\]|\b(?:test|e?grep)\b[^\n;&|]{0,300})[ \t]*&&[^\n;]*|\|\|[^\n;]*")
_CALL = re.compile(
    _START
    + r"(?:(?:sudo|bash|sh|exec|until|while|source|-\w+)[ \t]+){0,8}"
    + r"[\"']?[^\s\"']{0,200}bootstrap\.sh[\"']?[ \t]+([^\n]+)",
    re.MULTILINE,
)
_WINDOWS_CALL = re.compile(r"&[ \t]*[\"']?[^\n\"']{0,200}EKSBootstrap[^\s\"']{0,50}[\"']?[ \t]+([^\n]+)", re.IGNORECASE)
_CONFIG_FILES = re.compile(r"kubelet-config\.json|kubelet/config\.json|config\.json\.d")
_ALL_FILES = re.compile(
    r"kubelet\.env\b|nodeadm\.d\b|kubelet\.service\.d|/(?:default|sysconfig)/kubelet\b|\bnodeadm[ \t]{1,8}init\b"
)
_MAX_PODS_EDIT = re.compile(r"maxPods[\"'\\]*[ \t]*[:=][ \t]*[\"'\\]*(\d{1,5})\b")


def of_script(text: str, *, windows: bool = False, nodeadm: bool = False) -> KubeletSettings:
    """Read a script. `nodeadm`: a NodeConfig or EKS' own boots the node, so that flags and variables for bootstrap.sh
    reach nothing.
    """
    row = _COMMENT.sub("", text.replace("\r\n", "\n")).replace("`\n" if windows else "\\\n", "  ")
    row, opaque = _unquoted(row)
    sure, unsure = _sorted_out(row, _braces(row) if windows else _branches(row), _WINDOWS_CALL if windows else _CALL)
    edits = _of_edits(row, overruled=any(name == "max-pods" for name, _ in sure) and not nodeadm)
    if nodeadm and not edits.recognised:
        return _unread([*sure, *unsure], row)
    boots = (WINDOWS_BOOTSTRAP if windows else BOOTSTRAP) in row
    called = dict.fromkeys((Attribute.LABELS, Attribute.TAINTS), Provenance.ESTIMATED) if boots else {}
    family = Family.WINDOWS if windows else Family.AMAZON_LINUX if boots else None
    found = KubeletSettings(family=family, recognised=boots, provenance=called)
    found = found.joined(read(() if nodeadm else sure, Provenance.ESTIMATED))
    found = with_doubts(found, [*sure, *unsure] if nodeadm else unsure)
    return found.joined(edits).joined(opaque)


def with_doubts(settings: KubeletSettings, flags: Sequence[tuple[str, str]]) -> KubeletSettings:
    """Return the settings where each of the flags may reach kubelet or not: labels that it may change are left out,
    taints are joined, the fewest pods and the largest reservations count.
    """
    if not flags:
        return settings
    options = [read([flag], Provenance.UNKNOWN) for flag in flags]
    most = [found.max_pods for found in (settings, *options) if found.max_pods is not None]
    most += [MOST_UNKNOWN_PODS for found in options if not found.counts_interfaces]
    most += [found.ceiling for found in options if found.ceiling is not None]
    touched = joined({}, {key: Provenance.UNKNOWN for found in options for key in found.provenance})
    changed = {key for found in options for key, value in found.labels.items() if settings.labels.get(key) != value}
    names = ", ".join(dict.fromkeys(f"--{name}" for name, _ in flags))
    warning = f"user data: {names}: set in a branch or in one of several calls: unknown, the most cautious value counts"
    warnings = [text for found in options for text in found.warnings]
    counted = Attribute.MAX_PODS in touched and bool(most)
    return replace(
        settings,
        labels={key: value for key, value in settings.labels.items() if key not in changed},
        taints=tuple(dict.fromkeys((*settings.taints, *(taint for found in options for taint in found.taints)))),
        system_reserved={**settings.system_reserved, **_largest(options)},
        recognised=True,
        provenance=joined(settings.provenance, touched),
        warnings=(*settings.warnings, *tuple(dict.fromkeys(warnings))[:MOST_WARNINGS], warning),
        max_pods=None if counted else settings.max_pods,
        ceiling=min(most) if counted else settings.ceiling,
    )


def _sorted_out(row: str, branches: Iterable[Span], call: re.Pattern[str]) -> tuple[Flags, Flags]:
    """Return the flags that reach kubelet, and those of which it is not known."""
    calls = [(match.span(), " ".join(match[1].split())) for match in call.finditer(row)]
    differing = [span for span, _ in calls] if len({text for _, text in calls}) > 1 else []
    starts: list[int] = []
    ends: list[int] = []
    for start, end in sorted([*branches, *differing]):
        if ends and start <= ends[-1]:
            ends[-1] = max(end, ends[-1])
        else:
            starts, ends = [*starts, start], [*ends, end]
    variable = _USE_MAX_PODS.search(row)
    found = [*([(variable.start(), "use-max-pods", "false")] if variable else ()), *pairs(row)]
    found += [(match.start(), "local-disks", match[1]) for match in _SETUP_DISKS.finditer(row)]
    sure: Flags = []
    unsure: Flags = []
    for at, name, value in found:
        span = bisect_right(starts, at) - 1
        (unsure if span >= 0 and at < ends[span] else sure).append((name, value))
    return sure, unsure


def _unquoted(row: str) -> tuple[str, KubeletSettings]:
    """Return the row with extra arguments out of their quotes, and what follows from arguments that only the script
    knows as a whole (`$ARGS`).
    """
    variables: dict[str, None] = {}

    def plain(match: re.Match[str]) -> str:
        inner = " ".join(_QUOTED.sub(lambda found: found[1] or found[2] or "", match[1]).splitlines())
        before = ""
        for word in inner.split():
            if word.strip("\"'\\").startswith(("$", "`")) and (not before.startswith("--") or "=" in before):
                variables[word.strip("\"'\\")] = None
            before = word
        return f" {inner} "

    row = _EXTRA.sub(plain, row)
    opaque = [word for word in list(variables)[:MOST_VARIABLES] if _is_opaque(word, row)]
    opaque += list(variables)[MOST_VARIABLES:]
    if not opaque:
        return row, KubeletSettings()
    warning = f"user data: --kubelet-extra-args: found {quoted(opaque[0][:60])}, which only the script knows"
    return row, KubeletSettings(recognised=True, ceiling=MOST_UNKNOWN_PODS, provenance=unknown(), warnings=(warning,))


def _is_opaque(word: str, row: str) -> bool:
    """Return whether the word may hold flags that the row does not assign to a variable of that name."""
    name = re.match(r"\$\{?(\w{1,64})", word)
    return name is None or re.search(rf"\b{name[1]}[ \t]*\+?=[^\n]*--[a-z]", row) is None


def _branches(row: str) -> Iterator[Span]:
    """Yield the spans that run only under a condition."""
    opened: list[tuple[str, int]] = []
    for match in _BLOCK.finditer(row):
        if match[1] in {"if", "case"}:
            opened.append((match[1], match.start()))
        elif opened and opened[-1][0] == match[1][::-1]:
            yield opened.pop()[1], match.end()
    for match in _SHORT.finditer(row):
        yield match.start() + match[0].find("&&" if "&&" in match[0] else "||"), match.end()


def _braces(row: str) -> list[Span]:
    """Return the spans in braces, which are blocks of PowerShell; `${name}` is a variable."""
    spans, opened = [], []
    for match in re.finditer(r"(?<!\$)\{|\}", row):
        if match[0] == "{":
            opened.append(match.start())
        elif opened:
            spans.append((opened.pop(), match.end()))
    return spans


def _of_edits(row: str, *, overruled: bool) -> KubeletSettings:
    """Return what follows from edits of kubelet's files, which are not carried out here. `overruled`: a flag sets max
    pods, whatever the configuration says.
    """
    everything = _ALL_FILES.search(row)
    match = everything or _CONFIG_FILES.search(row)
    if match is None:
        return KubeletSettings()
    kept = () if everything else (Attribute.LABELS, *((Attribute.MAX_PODS,) if overruled else ()))
    attributes = tuple(name for name in KUBELET if name not in kept)
    pods = [int(number) for number in _MAX_PODS_EDIT.findall(row)]
    most = min((*pods, MOST_UNKNOWN_PODS)) if "maxpods" in row.lower() and Attribute.MAX_PODS in attributes else None
    does = "runs" if match[0].startswith("nodeadm ") else "edits"
    warning = f"user data: a script {does} {match[0].strip('/')}: {', '.join(attributes)} are unknown"
    return KubeletSettings(
        ceiling=most,
        recognised=True,
        provenance=unknown(attributes),
        warnings=(warning,),
    )


def _unread(flags: Sequence[tuple[str, str]], row: str) -> KubeletSettings:
    """Return the warning that nodeadm reads no variables and flags of a script."""
    names = list(dict.fromkeys(f"--{name}" for name, _ in flags)) or ([BOOTSTRAP] if _CALL.search(row) else [])
    if not names:
        return KubeletSettings()
    warning = f"user data: {', '.join(names)}: set by a script, which nodeadm does not read; it is passed over"
    return KubeletSettings(warnings=(warning,))


def _largest(options: Iterable[KubeletSettings]) -> dict[str, str]:
    """Return the largest reservation by resource, beside EKS' own."""
    found: dict[str, str] = {}
    for option in options:
        for name, text in (*option.kube_reserved.items(), *option.system_reserved.items()):
            found[name] = _larger(name, found.get(name, "0"), text)
    return found


def _larger(name: str, first: str, second: str) -> str:
    try:
        return first if amount(name, first) >= amount(name, second) else second
    except InvalidInputError:
        return first
