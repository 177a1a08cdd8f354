"""`leeward completion`: scripts generated from the parsers, tried in the shells that are there."""

import shutil
import subprocess

import pytest

from leeward.cli.main import COMMANDS

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
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")
    subprocess.run([shell, "-n", str(script(shell))], check=True)


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")
@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("leeward dr", {"drain", "drift"}),
        ("leeward upgrade r", {"resume", "rollback"}),
        ("leeward drain --dr", {"--dry-run"}),
        ("leeward --cluster prod upgrade start --la", {"--launch-template-version"}),
        ("leeward plan --method con", {"consolidation"}),
        ("leeward plan -o ", {"table", "json", "yaml"}),
        ("leeward completion ", {"bash", "zsh", "fish"}),
        ("leeward upgrade pause --am", set()),
    ],
)
def test_bash_completes(script, typed, expected):
    words = typed.split(" ")
    listed = " ".join(f"'{word}'" for word in words)
    asked = f"source {script('bash')}; COMP_WORDS=({listed}); COMP_CWORD={len(words) - 1}; _leeward; "
    command = ["bash", "--norc", "-c", asked + 'printf "%s\\n" "${COMPREPLY[@]}"']
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert set(done.stdout.split()) >= expected
    assert bool(done.stdout.split()) == bool(expected)
    assert all(word.startswith(words[-1]) for word in done.stdout.split())


def test_another_shell_is_bad_input(leeward):
    assert "found 'bsh', expected one of bash, zsh, fish; did you mean bash?" in leeward.refuses("completion", "bsh")
