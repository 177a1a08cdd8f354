"""Reader of shell scripts: the commands in their order, and for each whether it runs in any case.

A script is never run. A command after `&&` or `||`, in a branch or a loop, in a function that is not called, or in a
file that is not executed may run or not. A text that is no shell script raises InvalidInputError, and nothing in it is
certain. Source: POSIX, Shell Command Language; the bash manual for `[[`, `((`, arrays and `function`.

Words of shell scripts, with the quotes and substitutions that they hold.

Commands of a shell script, and which of them run in any case."""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from leeward.errors import InvalidInputError

ASSIGNMENT = re.compile(r"([A-Za-z_]\w{0,99})(?:\[[^\]\s]{0,99}\])?(\+?)=")
_PLAIN = {
    "": re.compile(r"[^\s;&|()<>\"'`$\\]+"),
    '"': re.compile(r"[^\"`$\\]+"),
    ")": re.compile(r"[^()\"'`$\\]+"),
    "}": re.compile(r"[^}\"'`$\\]+"),
    "`": re.compile(r"[^`\\]+"),
}  # characters without a meaning, by what closes the innermost quote
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
MOST_BLOCKS = 100  # in each other
UNKNOWN = "\0"  # a place that is not known
DEEPEST = 4  # scripts in scripts: documents, `bash -c`
_NEVER_FAIL = {":", "true", "echo", "printf", "export", "set", "cd", "mkdir", "chmod", "sleep", "local", "sed"}
_TARGET = re.compile(r"(?:>>?\|?|\btee\b(?:[ \t]+-\w+)*)[ \t]*([^\s;&|<>()]{1,300})")
_TEE = re.compile(r"[^\n;&|]{0,100}\btee\b(?:[ \t]+-\w+)*[ \t]+([^\s;&|<>()]{1,300})")
_OPERATOR = re.compile(r"&&|\|\||;;&?|;&|;|\|&?|&>>?|\d?[<>]&|<<<|<<-?|\d?>>|\d?>\||\d?[<>](?!\()|&|\(|\)|\n")
_BLANK = re.compile(r"(?:[ \t\r]|\\\n)+|#[^\n]*")
_COMMAND_OPTION = re.compile(r"-[a-z]*c")
_END_OF_TEST = re.compile(r"\s\]\]")
_STARTS = {"{": "{", "if": "if", "while": "loop", "until": "loop", "for": "loop", "select": "loop"}
_PARTS = {"then": "if", "elif": "if", "else": "if", "do": "loop"}
_ENDS = {"}": "{", "fi": "if", "done": "loop", "esac": "case"}
_VARIABLE = re.compile(r"(?<!\\)\$\{?(\w{1,100})")
_QUOTES = re.compile(r"[\"']|\\(?=\W)")
_PARENTHESES = re.compile(r"\([ \t]*\)")


def plain(word: str) -> str:
    """Return the word without its quotes."""
    return _QUOTES.sub("", word) if "'" in word or '"' in word or "\\" in word else word


def inner(word: str) -> str:
    """Return the text in the quotes around the word, with the quotes that it holds."""
    return word[1:-1] if word[:1] in {"'", '"'} else word


def word_end(text: str, start: int) -> int:
    """Return where the word that begins at `start` ends. Raises InvalidInputError for a quote that is not closed."""
    at, closers = start, list[str]()
    while at < len(text):
        if match := _PLAIN[closers[-1] if closers else ""].match(text, at):
            at = match.end()
        elif step := _step(text, at, start, closers):
            at += step
        else:
            break
    if closers or at > len(text) or at == start:
        raise InvalidInputError("found an open quote, expected its end")
    return at


def _step(text: str, at: int, start: int, closers: list[str]) -> int:
    """Return how many characters belong to the word, and note quotes that open and close; 0 at the end of the word."""
    top, char, after = closers[-1] if closers else "", text[at], text[at + 1 : at + 2]
    if char == "\\":
        return 2
    if char == top:
        closers.pop()
    elif char == "'" and top != '"':
        end = text.find("'", at + 1)
        return end + 1 - at if end >= 0 else len(text) + 1
    elif char in '"`':
        closers.append(char)
    elif char == "$" and after in {"(", "{"}:
        closers.append(")" if after == "(" else "}")
        return 2
    elif char == "(" and (top == ")" or (at > start and text[at - 1] in "=<>")):  # an array, a process substitution
        closers.append(")")
    elif not (top or char == "$" or (char in "<>" and after == "(" and at == start)):
        return 0
    return 1


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
class ShellCommand:
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


def decide(found: list[ShellCommand]) -> None:
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


def commands(text: str) -> list[ShellCommand]:
    """Return the commands of the script, those of documents and quoted scripts among them. Raises InvalidInputError."""
    reader = _ScriptReader(text, Scope("root"), 0)
    reader.read()
    decide(reader.found)
    return reader.found


def _set_by(found: list[ShellCommand]) -> set[str]:
    words = (plain(word) for command in found for word in command.words)
    return {match[1] for word in words if (match := ASSIGNMENT.match(word))}


@dataclass(slots=True)
class _ScriptReader:
    text: str
    scope: Scope
    depth: int
    at: int = 0
    start: int = 0
    words: list[str] = field(default_factory=list)
    found: list[ShellCommand] = field(default_factory=list)
    function: str = ""  # its body comes next
    documents: list[tuple[str, bool, bool]] = field(default_factory=list)  # end, whether tabs go, variables expand
    line: int = 0  # where the present line starts
    patterns: bool = False  # of a `case`
    continued: bool = False  # by an operator at the end of the line
    piped: bool = False  # the next command reads what another prints
    ended: Scope | None = None  # the block that has just ended
    redirected: str = ""  # the operator before a file
    target: str = ""  # file that the command writes

    def read(self) -> None:
        text, root = self.text, self.scope
        while self.at < len(text):
            if blank := _BLANK.match(text, self.at):
                self.at = blank.end()
            elif operator := _OPERATOR.match(text, self.at):
                self.at = operator.end()
                self._operator(operator[0])
            else:
                self._word(self._whole_word())
        self._end()
        if self.scope is not root or self.documents:
            raise InvalidInputError("found an open block, expected its end")

    def _operator(self, operator: str) -> None:
        if self.patterns and operator not in {")", "\n"}:
            return
        if operator in {"<<", "<<-"}:
            self.at = self._after_blank()
            word = self._whole_word()
            self.documents.append((plain(word), operator == "<<-", plain(word) == word))
        elif "<" in operator or ">" in operator:
            self.redirected = operator  # the next word is a file
        elif operator == "(":
            self._parenthesis()
        elif operator == ")":
            self._closing()
        elif operator in {"&&", "||", "|", "|&", "&"}:
            self._end(operator)
        elif operator == "\n":
            self._newline()
        else:
            self._end()
            self.patterns = self.patterns or (len(operator) > 1 and self.scope.kind == "case")

    def _newline(self) -> None:
        if not self.continued or self.words:
            self._end()
        self._documents()
        self.line = self.at

    def _parenthesis(self) -> None:
        if len(self.words) == 1 and self.text.startswith(")", self._after_blank()):
            self.function, self.words = plain(self.words[0]), []
            self.at = self._after_blank() + 1
        elif self.text.startswith("(", self.at) and (not self.words or self.words == ["for"]):
            end = self.text.find("))", self.at)
            if end < 0:
                raise InvalidInputError("found ((, expected ))")
            self.words.append(self.text[self.at - 1 : end + 2])
            self.at = end + 2
        elif self.words:
            raise InvalidInputError("found ( within a command")
        else:
            self._push("(")

    def _closing(self) -> None:
        if self.patterns:
            self.patterns, self.words = False, []
            return
        self._end()
        self._pop("(")

    def _word(self, word: str) -> None:
        if self.patterns:
            if word == "esac":
                self.patterns = False
                self._pop("case")
            return
        self.continued = False
        if self.redirected:
            self.target = plain(word) if self.redirected[-1] == ">" else self.target
            self.redirected = ""
        elif self.words or not self._reserved(word):
            if not self.words:
                self.start = self.at - len(word)
            self.words.append(word)
            if self.words[0] == "case" and word == "in" and len(self.words) > 2:
                self.words, self.patterns = [], True
                self._push("case", perhaps=True, branch=True)

    def _reserved(self, word: str) -> bool:
        """Return whether the word is one of the grammar, which is then followed."""
        if word in _STARTS:
            self._push(_STARTS[word])
            return word not in {"for", "select"}  # their words are a command of their own
        if word in _PARTS:
            kind, before = _PARTS[word], self.scope
            self._pop(kind)  # the next part runs only under the condition of the part before
            self._push(kind, perhaps=True, branch=kind == "if")
            before.parts.append(before)
            self.scope.parts = before.parts
        elif word in _ENDS:
            self._pop(_ENDS[word])
        elif word == "function":
            self.at = self._after_blank()
            self.function = plain(self._whole_word())
            if parentheses := _PARENTHESES.match(self.text, self._after_blank()):
                self.at = parentheses.end()
        elif word == "[[":
            end = _END_OF_TEST.search(self.text, self.at)
            if end is None:
                raise InvalidInputError("found [[, expected ]]")
            self.words, self.start, self.at = ["[["], self.at, end.end()
        elif word != "!":
            return False
        return True

    def _push(self, kind: str, *, perhaps: bool = False, branch: bool = False) -> None:
        perhaps = perhaps or self.scope.condition
        if self.function:
            outer = Scope("function", self.scope, perhaps=perhaps, name=self.function, depth=self.scope.depth + 1)
            self.scope, self.function, perhaps = outer, "", False
        self.scope = Scope(kind, self.scope, perhaps=perhaps, branch=branch, depth=self.scope.depth + 1)
        self.scope.subshell, self.piped, self.ended = self.piped or kind == "(", False, None
        if self.scope.depth > MOST_BLOCKS:
            raise InvalidInputError(f"found more than {MOST_BLOCKS} blocks in blocks")

    def _pop(self, kind: str) -> None:
        if self.scope.kind != kind or self.scope.parent is None:
            raise InvalidInputError(f"found the end of {kind}, expected that of {self.scope.kind}")
        self.ended, self.scope = self.scope, self.scope.parent
        if self.scope.kind == "function" and self.scope.parent is not None:
            self.scope = self.scope.parent
        self.scope.failing = True

    def _after_blank(self) -> int:
        blank = _BLANK.match(self.text, self.at)
        return blank.end() if blank else self.at

    def _end(self, operator: str = "") -> None:
        """End the command; what follows `operator` runs depending on it."""
        scope, piped = self.scope, self.piped
        self.piped = operator in {"|", "|&"}
        subshell = piped or operator in {"|", "|&", "&"}
        if self.ended is not None:
            for part in (*self.ended.parts, self.ended) if subshell else ():
                part.subshell = True
        if self.words:
            text = self.text[self.start : self.at - len(operator)]
            command = ShellCommand(text, tuple(self.words), scope, scope.condition, subshell)
            self.words = []
            self.found.append(command)
            scope.failing = command.callee not in _NEVER_FAIL and bool(command.arguments)
            self._inner(command, operator)
        self.target, self.continued, self.ended = "", bool(operator) and operator != "&", None
        if operator == "&&":
            scope.condition = scope.condition or scope.failing
        elif operator == "||":
            scope.condition = True
        elif operator in {"", "&"}:
            scope.condition = False

    def _inner(self, command: ShellCommand, operator: str) -> None:
        """Read a script in quotes (`bash -c`, `eval`), and text that `echo` writes into a file."""
        first = plain(command.words[0])
        if first in {"echo", "printf"}:
            self._printed(command, operator)
        elif first == "trap" and len(command.words) > 1:
            self._document(inner(command.words[1]), command, UNKNOWN)
        elif first == "eval":
            command.written = True
            self._document(" ".join(map(inner, command.words[1:])), command, "")
        elif command.callee and any(_COMMAND_OPTION.fullmatch(word) for word in command.words):
            for word in command.words:
                if word[:1] in {"'", '"'}:
                    command.written = True
                    self._document(inner(word), command, "", apart=True)

    def _printed(self, command: ShellCommand, operator: str) -> None:
        command.written = True
        target = self.target
        if operator[:1] == "|" and operator != "||":
            tee = _TEE.match(self.text, self.at)
            target = plain(tee[1]) if tee else UNKNOWN
        if target:
            body = " ".join(inner(word) for word in command.words[1:])
            self._document(body.replace("\\n", "\n"), command, target)

    def _documents(self) -> None:
        """Read the documents that follow the line."""
        line, pending = self.text[self.line : self.at], self.documents
        self.documents = []
        targets = _TARGET.findall(line) if pending else []
        runs = any(plain(word) in SHELLS for word in line.split()) if pending else False
        for delimiter, stripped, expands in pending:
            tabs = r"\t*" if stripped else ""
            end = re.compile(rf"^{tabs}{re.escape(delimiter)}[ \t\r]*$", re.MULTILINE).search(self.text, self.at)
            if end is None:
                raise InvalidInputError("found a document without an end")
            body, self.at = self.text[self.at : end.start()], end.end()
            command = self.found[-1] if self.found else None
            if command is not None and command.words[:1] != (":",):
                path = plain(targets[-1]) if targets else "" if runs else UNKNOWN
                start = len(self.found)
                self._document(body, command, path, apart=not path)
                written = self.found[start:]
                mixed = expands and not _set_by(written).isdisjoint(_VARIABLE.findall(body))
                for inside in written if mixed else ():
                    inside.perhaps = True  # a variable of the text has the value that it has outside

    def _document(self, body: str, command: ShellCommand, path: str, *, apart: bool = False) -> None:
        """Read a script that the command runs, in a process `apart` or not, or writes to a path."""
        outer = command.scope
        scope = Scope("file" if path else "{", outer, perhaps=command.perhaps, name=path, depth=outer.depth + 1)
        scope.subshell = apart
        reader = _ScriptReader(body.replace("\n\t", "\n"), scope, self.depth + 1)
        try:
            if self.depth >= DEEPEST:
                raise InvalidInputError("found scripts in scripts")
            reader.read()
            self.found += reader.found
        except InvalidInputError:
            self.found.append(ShellCommand(body, (), Scope("file", scope, name=UNKNOWN, branch=True), perhaps=True))

    def _whole_word(self) -> str:
        start, self.at = self.at, word_end(self.text, self.at)
        return self.text[start : self.at]
