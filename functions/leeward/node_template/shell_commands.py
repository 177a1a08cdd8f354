"""Commands of a shell script, and which of them run in any case."""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from leeward.node_template.shell_words import ASSIGNMENT, plain

MOST_ROUNDS = 8  # functions that call each other
SHELLS = frozenset({"sh", "bash", "dash", "ksh", "zsh", "source", ".", "eval"})
_SOURCES = {"source", "."}
_WRAPPERS = {
    **dict.fromkeys((*SHELLS, "sudo", "exec", "nohup", "env", "time", "command", "nice"), 1),
    "timeout": 2,
    "cloud-init-per": 3,
}  # words to skip
_SOURCED = re.compile(
    r"/profile\.d/|/etc/environment$|bootstrap\.sh$|/var/lib/cloud/scripts/per-"
)  # run by every shell, by EKS' bootstrap.sh or by cloud-init


@dataclass(slots=True, eq=False)
class Scope:
    """Part of a script whose commands run together. `perhaps`: only under a condition; `branch`: that condition chooses
    among ways to boot (`if`, `case`), unlike `&&` and loops; `name`: of a function or a file, which runs if called.
    """

    kind: str
    parent: "Scope | None" = None
    perhaps: bool = False
    branch: bool = False
    name: str = ""
    depth: int = 0
    condition: bool = False  # of the next command, after `&&` or `||`
    subshell: bool = False  # it runs in a process of its own
    parts: "list[Scope]" = field(default_factory=list)  # those before it of the same `if`
    failing: bool = False  # the last command may fail
    certain: bool = False
    possible: bool = False

    def within(self, kinds: Collection[str]) -> bool:
        """Return whether it is one of these kinds, or a part of one."""
        return any(scope.kind in kinds for scope in outwards(self))


@dataclass(slots=True, eq=False)
class Command:
    """Simple command. `words` as written, with their quotes; `certain`: it runs in any case; `possible`: no branch and
    no file that is not executed holds it; `written`: its own text is printed, or read as a script of its own.
    """

    text: str
    words: tuple[str, ...]
    scope: Scope
    perhaps: bool
    subshell: bool = False  # it runs in a process of its own
    written: bool = False
    certain: bool = False
    possible: bool = False
    arguments: list[str] = field(default_factory=list)  # without quotes, assignments and wrappers such as `sudo`
    callee: str = ""  # the program or function; empty where there are assignments only

    def __post_init__(self) -> None:
        words, at = [plain(word) for word in self.words], 0
        while at < len(words) and (words[at] in _WRAPPERS or words[at][:1] == "-" or ASSIGNMENT.match(words[at])):
            at += _WRAPPERS.get(words[at], 1)
        self.arguments = words[at:]
        self.callee = next(iter(self.arguments), "")

    def is_lost(self, inside: Collection[Scope]) -> bool:
        """Return whether the variables that it sets are lost, or its `exit` ends nothing, outside a subshell. `inside`:
        the scopes that count.
        """
        return self.subshell or any(scope.subshell and scope not in inside for scope in outwards(self.scope))


def decide(found: list[Command]) -> None:
    """Fill in which commands are certain and which are possible."""
    scopes = list(dict.fromkeys(scope for command in found for scope in outwards(command.scope)))
    scopes.sort(key=lambda scope: scope.depth)
    called = set[str]()
    mentioned = {word for command in found if command.callee not in {"tee", "cat"} for word in command.arguments}
    for _ in range(MOST_ROUNDS):
        for scope in scopes:
            outer = scope.parent
            runs = not scope.name or scope.name in called or bool(_SOURCED.search(scope.name))
            scope.certain = (outer is None or outer.certain) and not scope.perhaps and runs
            may = not scope.name or scope.name in mentioned or runs
            scope.possible = (outer is None or outer.possible) and not scope.branch and may
        known = {command.callee for command in found if command.scope.certain and not command.perhaps}
        if known <= called:
            break
        called |= known
    sourced = {command.callee for command in found if plain(command.words[0] if command.words else "") in _SOURCES}
    for scope in scopes:
        executed = scope.kind == "file" and scope.name not in sourced and not _SOURCED.search(scope.name)
        scope.subshell = scope.subshell or executed
    for command in found:
        command.certain = command.scope.certain and not command.perhaps
        command.possible = command.scope.possible


def outwards(scope: Scope | None) -> Iterator[Scope]:
    """Yield the scope and those around it."""
    while scope is not None:
        yield scope
        scope = scope.parent
