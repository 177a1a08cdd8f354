"""A step of `make setup` is never silent for ten seconds, and its failure shows what the command said."""

import io
import re
import subprocess
import sys
from pathlib import Path

from supply_chain import progress
from supply_chain.progress import PERIOD, Step

SLOW = "import time; print('Downloading botocore'); time.sleep(0.5)"
FAILING = "import sys; print('first'); print('no matching distribution', file=sys.stderr); sys.exit(3)"


class Terminal(io.StringIO):
    def isatty(self):
        return True


def ran(tmp_path, code, *, out=None, period=PERIOD):
    """Exit code, printed text and log of a step."""
    out = out or io.StringIO()
    step = Step(name="2/7 packages", command=[sys.executable, "-c", code], out=out, period=period)
    return step.run(tmp_path / "log"), out.getvalue(), (tmp_path / "log").read_text()


def test_a_long_step_says_what_it_is_doing_and_for_how_long(tmp_path):
    code, printed, _ = ran(tmp_path, SLOW, period=0.2)
    first, *between, last = printed.splitlines()
    assert (code, first) == (0, "2/7 packages …")
    assert all(re.fullmatch(r"2/7 packages … \d+ s  (Downloading botocore)?", line) for line in between)
    assert between[-1].endswith("Downloading botocore")
    assert re.fullmatch(r"2/7 packages: \d+ s", last)


def test_no_silence_is_longer_than_ten_seconds():
    assert PERIOD < 10


def test_a_short_step_has_two_lines(tmp_path):
    _, printed, log = ran(tmp_path, "print('installed')")
    assert len(printed.splitlines()) == 2
    assert "installed" in log


def test_a_failure_shows_the_output_of_both_streams_and_where_all_of_it_is(tmp_path):
    tmp_path = tmp_path / ("a" * 120)  # wider than the terminal: a path is never cut
    code, printed, _ = ran(tmp_path, FAILING)
    assert code == 3
    assert "  first" in printed
    assert "  no matching distribution" in printed
    assert printed.endswith(f"all of its output: {tmp_path / 'log'}\n")


def test_a_terminal_shows_one_line_that_is_redrawn(tmp_path):
    _, printed, _ = ran(tmp_path, "pass", out=Terminal())
    assert printed.split("\n")[-2].startswith("\x1b[1A\r\x1b[K2/7 packages: ")


def test_it_runs_where_nothing_is_installed_yet(tmp_path):
    command = [sys.executable, "-S", "-I", progress.__file__, "1/7 environment", "--", sys.executable, "-c", "pass"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("1/7 environment …\n")


def test_setup_installs_nothing_outside_the_folder():
    """Only `make tools` does, which has to be asked for."""
    recipes = re.split(r"\n(?=[\w./-]+:)", Path("Makefile").read_text())
    assert [recipe.partition(":")[0] for recipe in recipes if "apt-get install" in recipe] == ["tools"]
    targets = {recipe.partition(":")[0]: recipe.partition(":")[2].partition("##")[0] for recipe in recipes}
    assert "tools" not in targets["setup"]
    assert "make setup tools" in Path(".ci/run").read_text()
