"""The terminal of a recording shows what a real one shows of the sequences that Leeward writes."""

import pytest

from leeward.cli.progress import Progress
from leeward.cli.top.screen import Screen
from recordings.terminal import Run, Terminal


def text(terminal):
    return ["".join(run.text for run in row) for row in terminal.rows()]


@pytest.fixture
def terminal():
    return Terminal(columns=20, height=4)


def test_lines_that_are_drawn_again_replace_those_before(terminal, monkeypatch):
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("COLUMNS", "60")
    progress, now = Progress(redrawn=True), __import__("datetime").datetime(2026, 3, 2)
    terminal.columns = 60
    progress.show({"node-a": "draining", "node-b": "draining"}, now)
    progress.show({"node-a": "gone"}, now)
    assert text(terminal) == ["00:00:00 node-a: gone", "00:00:00 node-b: draining"]


def test_a_full_screen_view_leaves_what_was_shown_before(terminal, monkeypatch):
    monkeypatch.setenv("COLUMNS", "20")
    monkeypatch.setenv("LINES", "4")
    terminal.write("$ leeward top\n")
    with Screen(terminal) as screen:
        screen.draw(["one", "two", "three"])
        screen.draw(["four"])
        assert text(terminal) == ["four"]
    assert text(terminal) == ["$ leeward top"]


def test_a_colour_lasts_to_its_end_and_blanks_have_none(terminal):
    terminal.write("\x1b[33mnode-a   draining\x1b[0m 3")
    assert terminal.rows() == ((Run("node-a   draining ", "33"), Run("3", "")),)


def test_a_line_that_is_too_long_is_broken_and_the_last_rows_are_seen(terminal):
    terminal.write("\n".join(["x" * 25, "b", "c", "d"]))
    assert text(terminal) == ["xxxxx", "b", "c", "d"]


def test_a_sequence_that_leeward_does_not_write_is_an_error(terminal):
    with pytest.raises(ValueError, match="found the sequence 2J"):
        terminal.write("\x1b[2J")
