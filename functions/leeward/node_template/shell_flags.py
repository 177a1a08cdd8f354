"""Flags that the commands of a shell script pass to kubelet, and those of which it is not known."""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from leeward.errors import InvalidInputError
from leeward.node_template.flags import READERS
from leeward.node_template.passed_flags import BOOTSTRAP, Flags, Passed, flags_in, opaque_words
from leeward.node_template.shell import ASSIGNMENT, MOST_ROUNDS, Scope, ShellCommand, commands, outwards, plain

MOST_CALLS = 20  # of bootstrap.sh, whose variables are compared
_SHEBANG = re.compile(r"(?:#cloud-boothook[^\n]*\n\s*)?#![ \t]*(?:\S*/)?(?:env[ \t]+(?:-\S+[ \t]+)*)?(\w+)")
_SHELL_NAMES = {"sh", "bash", "dash", "ksh", "zsh"}
_DECLARES = {"export", "local", "declare", "readonly", "typeset"}
_BOOT_VARIABLES = {"KUBELET_EXTRA_ARGS", "USE_MAX_PODS"}  # of bootstrap.sh itself
_EDITORS, _SERVICE = {"sed", "perl", "awk"}, "kubelet"
_SNAP = ["snap", "set", "kubelet-eks"]  # Ubuntu's kubelet: its flags without dashes
_MAPS = {"node-labels", "kube-reserved", "system-reserved", "eviction-hard"}
_EVERY = "*"  # variable
_NO_CALL = ShellCommand("", (), Scope("root"), perhaps=False)
_NO_CALLERS = _EDITORS | {"chmod", "chown", "cp", "mv", "rm", "cat", "ls", "tee", "grep", "[", "[[", "test", "aws"}
_SYSTEM = re.compile(r"/etc/(?:os-release|environment|profile|bashrc|bash\.bashrc|lsb-release)|bashrc$|profile$")
_READS = {"unset", "read", "mapfile", "readarray", "getopts"}
_DEFAULT = re.compile(r"\$\{(\w{1,100}):?=")
_SUBSTITUTION = re.compile(r"\$\((?!\()[^()]*\)|`[^`]*`")
_WHOLE = re.compile(r"\$\{?(\w{1,100})(?:\[[@*]\])?(?::?-)?\}?")
_VARIABLE = re.compile(r"\$\{?(\w{1,100})")
_GENERIC = {"config", "config-dir"}  # flags of many programs


def of_shell(text: str) -> Passed:
    """Return the flags of a shell script. Of a text that is none, each flag may reach kubelet or not."""
    shebang = _SHEBANG.match(text)
    try:
        if shebang and shebang[1] not in _SHELL_NAMES:
            raise InvalidInputError(f"found {shebang[1][:30]}, expected a shell")
        return _Script(commands(text)).passed()
    except InvalidInputError as error:
        found = Passed(problem=str(error))
        found.unsure = flags_in(text.replace("\\\n", "  "), found.opaque)
        return found


@dataclass(slots=True)
class _Slot:
    """Flags of one command, or of one assignment to a variable."""

    sure: bool
    flags: Flags
    held: bool = False  # it is sure once an argument of the call takes the variable


class _Script:
    """Commands of a script, sorted by what they do to kubelet's arguments."""

    def __init__(self, found: Sequence[ShellCommand]) -> None:
        self.commands = found
        self.assigned = [(names, command) for command in found if (names := _assigned(command))]
        boots = {name for names, command in self.assigned if BOOTSTRAP in command.text for name in names}
        self.calls = [command for command in found if _is_call(command, boots)]
        self.altered = {name for command in found for name in _altered(command)}
        self.same = len({" ".join(command.arguments) for command in self.calls}) == 1
        kubelets = [command.text for command in found if _is_kubelets(command)]
        exported = {name for command in found for name in _exported(command)}
        sourced = {name for names, command in self.assigned if command.scope.within({"file"}) for name in names}
        self.given = {name for name in _BOOT_VARIABLES if not {name, _EVERY}.isdisjoint(exported | sourced)}
        calls = self.calls if 0 < len(self.calls) <= MOST_CALLS else [_NO_CALL]
        self.used = set.intersection(*(self._used([call.text, *kubelets]) for call in calls))
        self.inside = set.intersection(*({*outwards(call.scope)} for call in self.calls or [_NO_CALL]))
        scopes = (scope for command in found for scope in outwards(command.scope))
        self.files = {scope.name for scope in scopes if scope.kind == "file"}
        self.in_order = not any(call.scope.within({"function", "file"}) for call in self.calls)
        self.found = Passed()
        self.slots: list[_Slot] = []
        self.values: dict[str, list[_Slot]] = {}  # of variables, by name
        self.snap: dict[str, str] = {}

    def _used(self, texts: Iterable[str]) -> set[str]:
        """Return the variables from which the arguments of one call come at first hand."""
        text = "\n".join(texts)
        used = self.given - ({"KUBELET_EXTRA_ARGS"} if "--kubelet-extra-args" in text else set())
        return used.union(_VARIABLE.findall(text))

    def passed(self) -> Passed:
        """Return the flags in their order."""
        ended = booted = False  # whether the script may have ended, and a boot may have begun
        calls = set(self.calls)
        for command in self.commands:
            is_call = command in calls
            sure = not ended and (command.certain or (is_call and self.same and command.possible))
            sure = sure and (self.same or not is_call)
            if command.callee == "exit" and (booted or command.certain):
                ended = not (command.is_lost(self.inside) or command.scope.within({"function", "file"}))
            names = self.values if self._is_foreign(command) else _altered(command)
            for slot in (slot for name in names for slot in self.values.get(name, ())):
                slot.sure = slot.held = False
            if command.written:
                continue
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
        self._hold_back()
        for slot in self.slots:
            (found.sure if slot.sure else found.unsure).extend(slot.flags)
        named = {name for name, _ in (*found.sure, *found.unsure)} & self.snap.keys()
        found.unsure += [flag for flag in (*found.sure, *self.snap.items()) if flag[0] in named]
        found.sure = [flag for flag in (*found.sure, *self.snap.items()) if flag[0] not in named]
        found.opaque = self._unseen()
        return found

    def _hold_back(self) -> None:
        """Take for unsure what two commands set to different values: their order in the end is not followed."""
        values: dict[tuple[str, str], set[str]] = {}
        for slot in self.slots if len(self.slots) > 1 else ():
            for entry, value in _entries(slot.flags).items() if slot.sure else ():
                values.setdefault(entry, set()).add(value)
        names = {name for (name, _), found in values.items() if len(found) > 1}
        for slot in self.slots:
            self.found.unsure += [flag for flag in slot.flags if slot.sure and flag[0] in names]
            slot.flags = [flag for flag in slot.flags if not (slot.sure and flag[0] in names)]

    def _is_foreign(self, command: ShellCommand) -> bool:
        """Return whether the command sources a file that the script does not write, and that may set any variable."""
        path = command.callee if command.words and plain(command.words[0]) in {"source", "."} else ""
        return bool(path) and path not in self.files and not _SYSTEM.search(path)

    def _set_snap(self, command: ShellCommand, *, sure: bool) -> None:
        for word in command.arguments[len(_SNAP) :]:
            name, _, value = word.partition("=")
            if word.startswith(("$", "`")):
                self.found.opaque.append(word)
                self.found.taking = " ".join(_SNAP)
            elif name in READERS and sure:
                self.snap[name] = value
            elif name in READERS:
                self.found.unsure.append((name, value))

    def _assign(self, name: str, command: ShellCommand, *, sure: bool, late: bool) -> None:
        """Add the flags of a variable. An assignment takes the place of earlier ones, unless it adds to them."""
        earlier = self.values.setdefault(name, [])
        if not (late or command.is_lost(self.inside) or _adds(name, command)):
            for slot in earlier:
                slot.flags, slot.sure, slot.held = [] if sure else slot.flags, False, False
            if sure:
                earlier.clear()
        sure, used = sure and not command.is_lost(self.inside), name in self.used
        slot = _Slot(sure and used, self._flags_of(command), held=sure and not used)
        for other in _VARIABLE.findall(command.text) if sure and used else ():
            for held in self.values.pop(other, ()) if other not in self.used else ():
                held.sure = held.held
                earlier.append(held)
        if name == "KUBELET_EXTRA_ARGS" and name in self.used:
            self.found.opaque += [word for _, text in _values(command) for word in opaque_words(text)]
        earlier.append(slot)
        self.slots.append(slot)

    def _flags_of(self, command: ShellCommand) -> Flags:
        """Return the flags that the command names. A substitution (`$(…)`) may print its flags or not."""
        row = command.text.replace("\\\n", "  ")
        for _ in range(MOST_ROUNDS):
            self.found.unsure += [flag for text in _SUBSTITUTION.findall(row) for flag in flags_in(text, [])]
            shorter = _SUBSTITUTION.sub("$_", row)
            if shorter == row:
                break
            row = shorter
        self.found.opaque += _positions(command)
        return flags_in(row, self.found.opaque)

    def _unseen(self) -> list[str]:
        """Return the words of kubelet's arguments that the script does not write out."""
        pending, looked, unseen = self.found.opaque[::-1], set[str](), list[str]()
        values: dict[str, list[str]] = {}
        for _, command in self.assigned:
            for name, text in _values(command):
                values.setdefault(name, []).append(text)
        while pending:
            word = pending.pop()
            match = _WHOLE.fullmatch(word)
            texts = values.get(match[1], []) if match else []
            if match is None or not texts or match[1] in self.altered:
                unseen.append(word)
            elif match[1] not in looked:
                looked.add(match[1])
                pending += [part for text in texts for part in opaque_words(text)]
        return list(dict.fromkeys(unseen))


def _is_call(command: ShellCommand, boots: Collection[str] = ()) -> bool:
    """Return whether the command runs EKS' bootstrap.sh, also by the help of another program (`retry 3 …`) or of a
    variable, one of `boots`.
    """
    words = command.arguments
    if not words or words[0] in _NO_CALLERS:
        return False
    if any(word.partition("=")[0] == "--kubelet-extra-args" for word in words):
        return True
    names = _VARIABLE.findall(words[0])
    called = words[0].endswith(BOOTSTRAP) or not set(names).isdisjoint(boots)
    return called or any(word.endswith("/" + BOOTSTRAP) for word in words)


def _is_kubelets(command: ShellCommand) -> bool:
    """Return whether the command passes its flags to kubelet: kubelet itself, an edit of bootstrap.sh, or the script
    that sets up its disks.
    """
    words = command.arguments
    if not words:
        return False
    edits = words[0] in _EDITORS and any(word.endswith(BOOTSTRAP) for word in words)
    return edits or words[0].rpartition("/")[2] in {_SERVICE, "setup-local-disks"}


def _assigned(command: ShellCommand) -> list[str]:
    """Return the variables that the command assigns, where it does nothing else."""
    words = command.words[1:] if command.words and plain(command.words[0]) in _DECLARES else command.words
    names = [match[1] for word in words if (match := ASSIGNMENT.match(plain(word)))]
    return names if names and len(names) == len([word for word in words if not word.startswith("-")]) else []


def _exported(command: ShellCommand) -> list[str]:
    """Return the variables that the command exports; `_EVERY` where it exports all that follow."""
    words = [plain(word) for word in command.words]
    if words[:1] == ["set"] and any(word in {"-a", "allexport"} for word in words):
        return [_EVERY]
    exports = words[:1] == ["export"] or (words[:1] in (["declare"], ["typeset"]) and "-x" in words)
    return [word.partition("=")[0].removesuffix("+") for word in words[1:]] if exports else []


def _entries(flags: Flags) -> dict[tuple[str, str], str]:
    """Return the values by flag, and by key where the flag holds a map."""
    found = {}
    for name, value in flags:
        if name in _MAPS:
            parts = (re.split(r"[=<]", part, maxsplit=1) for part in value.split(","))
            found.update({(name, part[0]): part[-1] for part in parts})
        else:
            found[name, ""] = value
    return found


def _altered(command: ShellCommand) -> list[str]:
    """Return the variables to which the command gives a value that is not followed."""
    words = [plain(word) for word in command.words]
    if words[:1] == ["printf"]:
        return words[2:3] if words[1:2] == ["-v"] else []
    names = [word for word in words[1:] if not word.startswith("-")] if words[:1] and words[0] in _READS else []
    return [*(words[1:2] if words[:1] in (["for"], ["select"]) else names), *_DEFAULT.findall(command.text)]


def _values(command: ShellCommand) -> list[tuple[str, str]]:
    """Return the variables that the command assigns, with their texts."""
    matches = ((ASSIGNMENT.match(plain(word)), plain(word)) for word in command.words)
    return [(match[1], word[match.end() :].strip("()")) for match, word in matches if match]


def _adds(name: str, command: ShellCommand) -> bool:
    matches = (ASSIGNMENT.match(plain(word)) for word in command.words)
    return any(match and match[2] for match in matches) or re.search(rf"\$\{{?{name}\b", command.text) is not None


def _positions(command: ShellCommand) -> list[str]:
    """Return the variables after the cluster's name of bootstrap.sh that no option takes."""
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
    return [word for word in found[1:] if word.startswith(("$", "`"))]
