"""`leeward completion`: scripts generated from the parsers, tried in the shells that are there."""

import subprocess

import pytest

from leeward.cli.main import COMMANDS
from tests.tools import need

SHELLS = ("bash", "zsh", "fish")


@pytest.fixture
def script(leeward, tmp_path):
    def printed(shell):
        result = leeward("completion", shell)
        assert (result.code, result.err) == (0, "")
        path = tmp_path / f"leeward.{shell}"
        path.write_text(result.out)
        return path

    return printed


@pytest.mark.parametrize("shell", SHELLS)
def test_a_script_knows_every_command_action_and_option(script, shell):
    text = script(shell).read_text()
    assert not [name for name in COMMANDS if name not in text]
    assert "rollback" in text
    assert "launch-template-version" in text
    assert "consolidation" in text


@pytest.mark.parametrize("shell", SHELLS)
def test_the_shell_accepts_its_script(script, shell):
    need(shell)
    subprocess.run([shell, "-n", str(script(shell))], check=True)


TYPED = [
    ("leeward dr", {"drain", "drift"}),
    ("leeward inspect z", {"zones"}),
    ("leeward inspect ips --in", {"--instance-type"}),
    ("leeward upgrade r", {"resume", "rollback"}),
    ("leeward drain --dr", {"--dry-run"}),
    ("leeward --cluster prod upgrade start --la", {"--launch-template-version"}),
    ("leeward plan --method con", {"consolidation"}),
    ("leeward plan --ap", {"--apply"}),
    ("leeward plan -o ", {"table", "json", "yaml"}),
    ("leeward completion ", {"bash", "zsh", "fish"}),
    ("leeward help dr", {"drain", "drift"}),
    ("leeward upgrade start web --override Pdb", {"PdbNeverAllows", "PdbAllowsNoneNow"}),
    ("leeward upgrade pause --am", set()),
    ("leeward plan --cluster ", set()),
    ("leeward --cluster ", set()),
    ("leeward inspect ips --pods ", set()),
    ("leeward plan --pods --ap", {"--apply"}),  # a flag there
    ("leeward policy validate ", set()),
    ("leeward policy validate --y", {"--yes"}),
]
ZSH = "autoload -U compinit bashcompinit; compinit -u -D; bashcompinit; setopt ksharrays; "  # as its own compgen does
RUN = {"bash": (("bash", "--norc", "-c"), ""), "zsh": (("zsh", "-f", "-c"), ZSH)}


@pytest.mark.parametrize("shell", RUN)
@pytest.mark.parametrize(("typed", "expected"), TYPED)
def test_bash_and_zsh_complete(script, shell, typed, expected):
    need(shell)
    words, (command, before) = typed.split(" "), RUN[shell]
    listed = " ".join(f"'{word}'" for word in words)
    asked = f"{before}source {script(shell)}; COMP_WORDS=({listed}); COMP_CWORD={len(words) - 1}; _leeward; "
    done = subprocess.run(
        [*command, asked + 'printf "%s\\n" "${COMPREPLY[@]}"'], capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    offered = {
        word for word in done.stdout.split() if shell == "bash" or word.startswith(words[-1])
    }  # zsh chooses itself
    assert offered >= expected
    assert bool(offered) == bool(expected)
    assert all(word.startswith(words[-1]) for word in offered)


@pytest.mark.parametrize(("typed", "expected"), TYPED)
def test_fish_completes(script, typed, expected):
    need("fish")
    asked = f"source {script('fish')}; complete -C '{typed}'"
    done = subprocess.run(["fish", "--no-config", "-c", asked], capture_output=True, text=True, check=True)
    assert {line.partition("\t")[0] for line in done.stdout.splitlines()} >= expected


def test_another_shell_is_bad_input(leeward):
    assert "found 'bsh', expected one of bash, zsh, fish; did you mean bash?" in leeward.refuses("completion", "bsh")
