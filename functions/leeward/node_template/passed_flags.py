"""Flags that a script passes to kubelet: those that reach it in any case, and those of which it is not known."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from leeward.errors import InvalidInputError
from leeward.node_template.flags import READERS, pairs
from leeward.node_template.shell import Command, commands
from leeward.node_template.shell_words import ASSIGNMENT, plain

BOOTSTRAP, WINDOWS_BOOTSTRAP = "bootstrap.sh", "EKSBootstrap"
Flags = list[tuple[str, str]]
Span = tuple[int, int]
_EXTRA = re.compile(
    r"(?:--kubelet-extra-args|-KubeletExtraArgs)(?:=|[ \t]+)((?:\"[^\"]*\"|'[^']*'|[^\s\"']+)+)", re.IGNORECASE
)  # quoted extra arguments hold flags of their own
_QUOTED = re.compile(r"\"([^\"]*)\"|'([^']*)'")
_USE_MAX_PODS = re.compile(r"\bUSE_MAX_PODS=[\"']?false\b")  # the variable that bootstrap.sh reads beside its own flag
_SETUP_DISKS = re.compile(r"\bsetup-local-disks[ \t]+(raid0|raid10)\b")  # what bootstrap.sh --local-disks calls
_SHEBANG = re.compile(r"(?:#cloud-boothook[^\n]*\n\s*)?#![ \t]*(?:\S*/)?(?:env[ \t]+(?:-\S+[ \t]+)*)?(\w+)")
_SHELL_NAMES = {"sh", "bash", "dash", "ksh", "zsh"}
_DECLARES = {"export", "local", "declare", "readonly", "typeset"}
_BOOT_VARIABLES = {"KUBELET_EXTRA_ARGS", "USE_MAX_PODS"}  # of bootstrap.sh itself
_EDITORS, _SERVICE = {"sed", "perl", "awk"}, "kubelet"
_SNAP = ["snap", "set", "kubelet-eks"]  # Ubuntu's kubelet: its flags without dashes
_NO_CALLERS = _EDITORS | {"chmod", "chown", "cp", "mv", "rm", "cat", "ls", "tee", "grep", "[", "[[", "test", "aws"}
_VARIABLE = re.compile(r"\$\{?(\w{1,100})")
_GENERIC = {"config", "config-dir"}  # flags of many programs
_WINDOWS_CALL = re.compile(r"&[ \t]*[\"']?[^\n\"']{0,200}EKSBootstrap[^\s\"']{0,50}[\"']?[ \t]+([^\n]+)", re.IGNORECASE)
_BATCH = re.compile(
    r"<script>(?s:.*?)(?:</script>|\Z)|type:[ \t]*batch(?s:.*?)(?:^- task|\Z)", re.IGNORECASE | re.MULTILINE
)
_BATCH_BRANCH = re.compile(r"(?:^|[\s&(@])(?:if|for|goto)[ \t]|&&|\|\|", re.IGNORECASE)


@dataclass(slots=True)
class Passed:
    """Flags by name and value. `variables`: words of `taking` that hold arguments which are not written out."""

    sure: Flags = field(default_factory=list)
    unsure: Flags = field(default_factory=list)
    variables: list[str] = field(default_factory=list)
    taking: str = "--kubelet-extra-args"
    problem: str = ""  # for which nothing is certain


def of_shell(text: str) -> Passed:
    """Return the flags of a shell script. Of a text that is none, each flag may reach kubelet or not."""
    shebang = _SHEBANG.match(text)
    try:
        if shebang and shebang[1] not in _SHELL_NAMES:
            raise InvalidInputError(f"found {shebang[1][:30]}, expected a shell")
        return _Script(commands(text)).passed()
    except InvalidInputError as error:
        found = Passed(problem=str(error))
        found.unsure = _flags(text.replace("\\\n", "  "), found)
        return found


@dataclass(slots=True)
class _Slot:
    """Flags of one command, or of one assignment to a variable."""

    sure: bool
    flags: Flags


class _Script:
    """Commands of a script, sorted by what they do to kubelet's arguments."""

    def __init__(self, found: Sequence[Command]) -> None:
        self.commands = [command for command in found if not command.written]
        self.calls = [command for command in self.commands if _is_call(command)]
        self.same = len({" ".join(command.arguments) for command in self.calls}) == 1
        known = set(self.calls)
        uses = [
            command.text
            for command in self.commands
            if not known or command in known or _assigned(command) or _is_kubelets(command)
        ]
        self.used = set(_VARIABLE.findall("\n".join(uses)))
        self.given = any("--kubelet-extra-args" in call.text for call in self.calls)  # or else a variable's
        self.in_order = not any(call.scope.within({"function", "file"}) for call in self.calls)
        self.found = Passed()
        self.slots: list[_Slot] = []
        self.values: dict[str, list[_Slot]] = {}  # of variables, by name
        self.snap: dict[str, str] = {}

    def passed(self) -> Passed:
        """Return the flags in their order."""
        ended = booted = False  # whether the script may have ended, and a boot may have begun
        calls = set(self.calls)
        for command in self.commands:
            is_call = command in calls
            sure = not ended and (command.certain or (is_call and self.same and command.possible))
            sure = sure and (self.same or not is_call)
            if command.callee == "exit" and (booted or command.certain):
                ended = not command.scope.within({"function", "file", "("})
            if command.arguments[:3] == _SNAP:
                self._set_snap(command, sure=sure)
            elif names := _assigned(command):
                late = booted and self.in_order
                self._assign(names[-1], command, sure=sure and not late, late=late)
            else:
                flags = self._flags_of(command)
                reaches = is_call or _is_kubelets(command)
                self.slots.append(_Slot(sure and reaches, [one for one in flags if reaches or one[0] not in _GENERIC]))
            booted = booted or is_call
        return self._sorted()

    def _sorted(self) -> Passed:
        """Return the flags of all slots; a flag that the snap's settings name as well takes the other's place, or the
        other way round.
        """
        found = self.found
        for slot in self.slots:
            (found.sure if slot.sure else found.unsure).extend(slot.flags)
        named = {name for name, _ in (*found.sure, *found.unsure)} & self.snap.keys()
        found.unsure += [flag for flag in (*found.sure, *self.snap.items()) if flag[0] in named]
        found.sure = [flag for flag in (*found.sure, *self.snap.items()) if flag[0] not in named]
        return found

    def _set_snap(self, command: Command, *, sure: bool) -> None:
        for word in command.arguments[len(_SNAP) :]:
            name, _, value = word.partition("=")
            if word.startswith(("$", "`")):
                self.found.variables.append(word)
                self.found.taking = " ".join(_SNAP)
            elif name in READERS and sure:
                self.snap[name] = value
            elif name in READERS:
                self.found.unsure.append((name, value))

    def _assign(self, name: str, command: Command, *, sure: bool, late: bool) -> None:
        """Add the flags of a variable. An assignment takes the place of earlier ones, unless it adds to them."""
        earlier = self.values.setdefault(name, [])
        if not (late or _adds(name, command)):
            for slot in earlier:
                slot.flags, slot.sure = [] if sure else slot.flags, False
            if sure:
                earlier.clear()
        slot = _Slot(sure and self._is_used(name) and not command.scope.within({"("}), self._flags_of(command))
        earlier.append(slot)
        self.slots.append(slot)

    def _is_used(self, name: str) -> bool:
        """Return whether kubelet's arguments may come from the variable."""
        return name in self.used or (name in _BOOT_VARIABLES and not (self.given and name == "KUBELET_EXTRA_ARGS"))

    def _flags_of(self, command: Command) -> Flags:
        return _flags(command.text.replace("\\\n", "  "), self.found, _positions(command))


def of_windows(row: str) -> Passed:
    """Return the flags of a script of Windows: what stands in braces, and in a batch file with branches, may run or
    not.
    """
    found = Passed(taking="-KubeletExtraArgs")
    calls = [(match.span(), " ".join(match[1].split())) for match in _WINDOWS_CALL.finditer(row)]
    differing = [span for span, _ in calls] if len({text for _, text in calls}) > 1 else []
    batches = [match.span() for match in _BATCH.finditer(row) if _BATCH_BRANCH.search(match[0])]
    position = 0
    for start, end in _joined([*_braces(row), *differing, *batches]):
        found.sure += _flags(row[position:start], found)
        found.unsure += _flags(row[start:end], found)
        position = end
    found.sure += _flags(row[position:], found)
    return found


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


def _is_call(command: Command) -> bool:
    """Return whether the command runs EKS' bootstrap.sh, also by the help of another program (`retry 3 …`)."""
    words = command.arguments
    if not words or words[0] in _NO_CALLERS:
        return False
    return any(word.endswith(BOOTSTRAP) for word in words[:1]) or any(word.endswith("/" + BOOTSTRAP) for word in words)


def _is_kubelets(command: Command) -> bool:
    """Return whether the command passes its flags to kubelet: kubelet itself, an edit of bootstrap.sh, or the script
    that sets up its disks.
    """
    words = command.arguments
    if not words:
        return False
    edits = words[0] in _EDITORS and any(word.endswith(BOOTSTRAP) for word in words)
    return edits or words[0].rpartition("/")[2] in {_SERVICE, "setup-local-disks"}


def _assigned(command: Command) -> list[str]:
    """Return the variables that the command assigns, where it does nothing else."""
    words = command.words[1:] if command.words and plain(command.words[0]) in _DECLARES else command.words
    names = [match[1] for word in words if (match := ASSIGNMENT.match(plain(word)))]
    return names if names and len(names) == len([word for word in words if not word.startswith("-")]) else []


def _adds(name: str, command: Command) -> bool:
    matches = (ASSIGNMENT.match(plain(word)) for word in command.words)
    return any(match and match[2] for match in matches) or re.search(rf"\$\{{?{name}\b", command.text) is not None


def _positions(command: Command) -> list[str]:
    """Return the arguments of bootstrap.sh after the cluster's name that no option takes."""
    words = command.arguments
    at = next((at for at, word in enumerate(words) if word.endswith(BOOTSTRAP)), len(words))
    found, option = [], False
    for word in words[at + 1 :] if _is_call(command) else ():
        if word.startswith("-"):
            option = "=" not in word
        elif option:
            option = False
        else:
            found.append(word)
    return found[1:]


def _flags(row: str, found: Passed, words: Iterable[str] = ()) -> Flags:
    """Return the flags of the row, in the quotes of extra arguments too; `found` gets words that may hold others."""

    def unquoted(match: re.Match[str]) -> str:
        inner = " ".join(_QUOTED.sub(lambda part: part[1] or part[2] or "", match[1]).splitlines())
        before = ""
        for word in inner.split():
            if word.strip("\"'\\").startswith(("$", "`")) and (not before.startswith("--") or "=" in before):
                found.variables.append(word.strip("\"'\\"))
            before = word
        return f" {inner} "

    row = _EXTRA.sub(unquoted, row)
    found.variables += [word for word in words if word.startswith(("$", "`"))]
    variable = [("use-max-pods", "false")] if _USE_MAX_PODS.search(row) else []
    disks = [("local-disks", match[1]) for match in _SETUP_DISKS.finditer(row)]
    return [*variable, *((name, value) for _, name, value in pairs(row)), *disks]
