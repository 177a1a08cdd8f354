"""Paths in an interactive shell: the name that Tab completes reaches the command as it is, whatever is in it.

A snapshot folder may come from a stranger. Each shell runs in a terminal of its own, as a person has it."""

import os
import pty
import select
import signal
import time

import pytest

from tests.tools import need

STARTS = {
    "bash": (("bash", "--norc", "--noprofile", "-i"), "PS1='ready> '; HISTFILE=; bind 'set bell-style none'"),
    "zsh": (("zsh", "-f", "-i"), "PS1='ready> '; unsetopt beep; autoload -U compinit; compinit -u -D"),
    "fish": (
        ("fish", "--no-config", "-i"),
        "function fish_prompt; printf 'ready> '; end; function fish_right_prompt; end; set -g fish_greeting",
    ),
}
NAMES = (
    "$(touch PWNED)",
    "`touch PWNED`",
    "; touch PWNED;",
    "two words",
    'it\'s "quoted"',
    "two\nlines",
    "-dash",
    "* [a]",
    "~root",
    "$HOME",
    "back\\slash",
    "a&b|c<d>e",
)
PATIENCE = 20.0  # seconds until a command has run
SILENCE = 0.15  # seconds after which a shell has done what a key asks for


class Terminal:
    """An interactive shell in a pseudo-terminal, with a command `leeward` that writes down its arguments."""

    def __init__(self, shell, folder, script):
        self.folder, self._arguments = folder, folder / "arguments"
        command = folder / "leeward"
        command.write_text(f"#!/bin/sh\nprintf '%s\\0' \"$@\" >{folder}/part\nmv {folder}/part {self._arguments}\n")
        command.chmod(0o755)
        program, before = STARTS[shell]
        environment = {"PATH": f"{folder}:{os.environ['PATH']}", "HOME": str(folder), "LC_ALL": "C.UTF-8"}
        self.process, self._terminal = pty.fork()
        if self.process == 0:
            os.execvpe(program[0], program, {**environment, "TERM": "dumb" if shell == "fish" else "vt100"})
        self._type(f"{before}; source {script}; leeward started\r")
        self._run()
        self._read(0.3)

    def complete(self, line, holder):
        """Type the line in the folder, then Tab and Enter, and return the arguments that reach the command."""
        self._type(f"cd {holder}\r")
        self._read(SILENCE)
        self._type(f"{line}\t")
        self._read(SILENCE)
        self._type("\r")
        return self._run()

    def close(self):
        os.kill(self.process, signal.SIGKILL)
        os.waitpid(self.process, 0)
        os.close(self._terminal)

    def _type(self, text):
        os.write(self._terminal, text.encode())

    def _run(self):
        deadline, shown = time.monotonic() + PATIENCE, b""
        while not self._arguments.exists():
            assert time.monotonic() < deadline, f"no command was run; the terminal showed {shown!r}"
            shown += self._read(0.05)
        arguments = self._arguments.read_text().removesuffix("\0").split("\0")
        self._arguments.unlink()
        return arguments

    def _read(self, seconds):
        """Return what the shell prints until it has been silent for `seconds`."""
        shown = b""
        while select.select([self._terminal], [], [], seconds)[0]:
            shown += os.read(self._terminal, 65536)
        return shown


@pytest.fixture
def terminal(leeward, tmp_path):
    opened = []

    def open_terminal(shell):
        need(shell)
        folder = tmp_path / "commands"
        folder.mkdir()
        script = folder / f"script.{shell}"
        script.write_text(leeward("completion", shell).out)
        opened.append(Terminal(shell, folder, script))
        return opened[0]

    yield open_terminal
    for each in opened:
        each.close()


def completed(terminal, line, holder, name):
    """Complete the line in a folder that holds the folder `name` alone, which must not be run."""
    (holder / name).mkdir(parents=True)
    arguments = terminal.complete(line, holder)
    assert [path.name for path in holder.iterdir()] == [name], "the name was run"
    return [argument.removeprefix("./").removesuffix("/") for argument in arguments]


@pytest.mark.parametrize("shell", STARTS)
def test_a_path_arrives_as_it_is_and_is_not_run(terminal, tmp_path, shell):
    opened = terminal(shell)
    arrived = {
        name: completed(opened, "leeward plan --snapshot ", tmp_path / str(number), name)
        for number, name in enumerate(NAMES)
    }
    assert arrived == {name: ["plan", "--snapshot", name] for name in NAMES}


@pytest.mark.parametrize("shell", STARTS)
def test_a_path_that_is_an_argument_is_completed_too(terminal, tmp_path, shell):
    arguments = completed(terminal(shell), "leeward inspect explain-event \\$", tmp_path / "1", NAMES[0])
    assert arguments == ["inspect", "explain-event", NAMES[0]]


@pytest.mark.parametrize("shell", ["bash", "fish"])  # bashcompinit of zsh takes the option and its value as one name
def test_a_path_behind_an_equals_sign_is_completed_too(terminal, tmp_path, shell):
    arguments = completed(terminal(shell), "leeward plan --snapshot=", tmp_path / "1", NAMES[0])
    assert arguments == ["plan", f"--snapshot={NAMES[0]}"]


@pytest.mark.parametrize("shell", STARTS)
@pytest.mark.parametrize("word", ["'(touch PWNED)'", "'$(touch PWNED)'", "'`touch PWNED`'", "'a; touch PWNED'"])
def test_a_quoted_word_before_is_not_run_by_the_completion_of_the_next(terminal, tmp_path, shell, word):
    arguments = completed(terminal(shell), f"leeward --cluster {word} upgrade rollb", tmp_path / "1", "a")
    assert arguments == ["--cluster", word.strip("'"), "upgrade", "rollback"]


@pytest.mark.parametrize("shell", STARTS)
def test_an_arn_before_does_not_end_the_completion(terminal, tmp_path, shell):
    arn = "arn:aws:eks:us-east-1:111122223333:cluster/prod"
    opened = terminal(shell)
    for number, given in enumerate((f"--cluster {arn}", f"--cluster={arn}")):
        arguments = completed(opened, f"leeward {given} upgrade rollb", tmp_path / str(number), "a")
        assert arguments[-2:] == ["upgrade", "rollback"]
