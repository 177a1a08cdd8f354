"""Scripts of user data: what they pass to kubelet, to EKS' bootstrap.sh, or to its counterpart on Windows.

A script is not run. A flag of a command that may run or not (`if`, `case`, `&&`, a function, a file), of a variable
that is assigned again, or of one of several calls that differ, is not known to reach kubelet: its attribute is unknown,
and the most cautious of the values counts. So is every attribute of a kubelet whose own files the script edits.

Flags of Windows' scripts: PowerShell, batch files, and the tasks of EC2Launch.

Text in braces, and a batch file with branches, may run or not."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from leeward.errors import InvalidInputError
from leeward.model.quantity import CPU, amount
from leeward.model.visible import quoted
from leeward.node_template.flags import MOST_UNKNOWN_PODS, MOST_WARNINGS, read
from leeward.node_template.kubelet import Family, KubeletSettings
from leeward.node_template.passed_flags import BOOTSTRAP, WINDOWS_BOOTSTRAP, Passed, flags_in
from leeward.node_template.provenance import KUBELET, Attribute, Provenance, joined, unknown
from leeward.node_template.shell_flags import of_shell

Span = tuple[int, int]
_CALL = re.compile(r"&[ \t]*[\"']?[^\n\"']{0,200}EKSBootstrap[^\s\"']{0,50}[\"']?[ \t]+([^\n]+)", re.IGNORECASE)
_BATCH = re.compile(
    r"<script>(?s:.*?)(?:</script>|\Z)|type:[ \t]*batch(?s:.*?)(?:^- task|\Z)", re.IGNORECASE | re.MULTILINE
)
_BATCH_BRANCH = re.compile(r"(?:^|[\s&(@])(?:if|for|goto)[ \t]|&&|\|\|", re.IGNORECASE)
MOST_VARIABLES = 8  # that are looked up in a script
_COMMENT = re.compile(r"^[ \t]*#(?!!).*$|[ \t]#[^\n\"']{0,200}$", re.MULTILINE)  # not in a quoted text
_WINDOWS_COMMENT = re.compile(
    r"(?s:<#.*?#>)|^[ \t]*(?:rem\b|::|Write-\w+[ \t][^\n|>]*$)[^\n]*", re.IGNORECASE | re.MULTILINE
)
_CONFIG_FILES = re.compile(r"kubelet-config\.json|kubelet/config\.json|config\.json\.d")
_ALL_FILES = re.compile(
    r"kubelet\.env\b|nodeadm\.d\b|kubelet\.service\.d|systemd/system/kubelet\.service|/(?:default|sysconfig)/kubelet\b"
    r"|\bnodeadm[ \t]{1,8}init\b"
)
_HUGE_PAGES = re.compile(r"\bnr_hugepages\b|\bhugepages=\d")
_MAX_PODS_EDIT = re.compile(r"maxPods[\"'\\]*[ \t]*[:=][ \t]*[\"'\\]*(\d{1,5})\b")


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


def of_script(text: str, *, windows: bool = False, nodeadm: bool = False) -> KubeletSettings:
    """Read a script. `nodeadm`: a NodeConfig or EKS' own boots the node, so that flags and variables for bootstrap.sh
    reach nothing.
    """
    text = text.replace("\r\n", "\n")
    text = _WINDOWS_COMMENT.sub("", text) if windows else text
    row = _COMMENT.sub("", text).replace("`\n" if windows else "\\\n", "  ")
    passed = of_windows(row) if windows else of_shell(text)
    sure, unsure = passed.sure, passed.unsure
    edits = _of_edits(row, overruled=any(name == "max-pods" for name, _ in sure) and not nodeadm)
    pages = _of_huge_pages(row)
    if nodeadm and not edits.recognised:
        return _unread([*sure, *unsure], row).joined(pages)
    boots = (WINDOWS_BOOTSTRAP if windows else BOOTSTRAP) in row
    speaks = boots or sure or unsure
    called = dict.fromkeys((Attribute.LABELS, Attribute.TAINTS), Provenance.ESTIMATED) if speaks else {}
    family = Family.WINDOWS if windows else Family.AMAZON_LINUX if boots else None
    found = KubeletSettings(family=family, recognised=boots, provenance=called)
    found = found.joined(read(() if nodeadm else sure, Provenance.ESTIMATED))
    found = with_doubts(found, [*sure, *unsure] if nodeadm else unsure)
    unread = _of_other_program(passed) if found.recognised else KubeletSettings()
    return found.joined(edits).joined(_of_opaque(passed)).joined(unread).joined(pages)


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
    warning = f"user data: {names}: may or may not reach kubelet: unknown, the most cautious value counts"
    warnings = [text for found in options for text in found.warnings]
    counted = Attribute.MAX_PODS in touched and bool(most)
    cores = [found.pods_per_core for found in (settings, *options) if found.pods_per_core]
    cpus = [found.reserved_cpus for found in (settings, *options) if found.reserved_cpus is not None]
    return replace(
        settings,
        labels={key: value for key, value in settings.labels.items() if key not in changed},
        taints=tuple(dict.fromkeys((*settings.taints, *(taint for found in options for taint in found.taints)))),
        system_reserved={**settings.system_reserved, **_largest(options)},
        recognised=True,
        provenance=joined(settings.provenance, touched),
        warnings=(*settings.warnings, *tuple(dict.fromkeys(warnings))[:MOST_WARNINGS], warning),
        pods_per_core=min(cores, default=None),
        reserved_cpus=max(cpus) if settings.reserved_cpus is not None else None,
        max_pods=None if counted else settings.max_pods,
        ceiling=min(most) if counted else settings.ceiling,
    )


def _of_opaque(passed: Passed) -> KubeletSettings:
    """Return what follows from arguments that only the script knows as a whole (`$ARGS`)."""
    if not passed.opaque:
        return KubeletSettings()
    warning = f"user data: {passed.taking}: found {quoted(passed.opaque[0][:60])}, which only the script knows"
    return KubeletSettings(recognised=True, ceiling=MOST_UNKNOWN_PODS, provenance=unknown(), warnings=(warning,))


def _of_other_program(passed: Passed) -> KubeletSettings:
    """Return what follows from a text that is no shell script: it may pass what is not seen here."""
    if not passed.problem:
        return KubeletSettings()
    warning = f"user data: a script is not read: {passed.problem}: labels, taints, maxPods, capacity are unknown"
    return KubeletSettings(ceiling=MOST_UNKNOWN_PODS, provenance=unknown(), warnings=(warning,))


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


def _of_huge_pages(row: str) -> KubeletSettings:
    """Return the warning that a script sets memory aside as huge pages, which pods then lack."""
    if not _HUGE_PAGES.search(row):
        return KubeletSettings()
    warning = "user data: a script sets huge pages, which take memory from pods: capacity is unknown"
    return KubeletSettings(provenance=unknown((Attribute.CAPACITY,)), warnings=(warning,))


def _unread(flags: Sequence[tuple[str, str]], row: str) -> KubeletSettings:
    """Return the warning that nodeadm reads no variables and flags of a script."""
    names = list(dict.fromkeys(f"--{name}" for name, _ in flags)) or ([BOOTSTRAP] if BOOTSTRAP in row else [])
    if not names:
        return KubeletSettings()
    warning = f"user data: {', '.join(names)}: set by a script, which nodeadm does not read; it is passed over"
    return KubeletSettings(warnings=(warning,))


def _largest(options: Iterable[KubeletSettings]) -> dict[str, str]:
    """Return the largest reservation by resource, beside EKS' own."""
    found: dict[str, str] = {}
    for option in options:
        cpus = {} if option.reserved_cpus is None else {CPU: str(option.reserved_cpus)}
        for name, text in (*option.kube_reserved.items(), *option.system_reserved.items(), *cpus.items()):
            found[name] = _larger(name, found.get(name, "0"), text)
    return found


def _larger(name: str, first: str, second: str) -> str:
    try:
        return first if amount(name, first) >= amount(name, second) else second
    except InvalidInputError:
        return first
