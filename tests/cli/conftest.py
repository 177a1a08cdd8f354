"""What every test of the command line takes."""

import io
import sys

import pytest

from leeward.cli.main import DEBUG
from tests.cli.command import Command


@pytest.fixture(autouse=True)
def _without_the_last_net(monkeypatch):
    """An unexpected exception fails the test instead of being reported in a sentence."""
    monkeypatch.setenv(DEBUG, "1")


@pytest.fixture
def leeward(capsys):
    return Command(capsys)


@pytest.fixture
def answer(monkeypatch):
    """A terminal on which this is typed, as wide as every sentence."""

    def typed(text):
        terminal = io.StringIO(text)
        terminal.isatty = lambda: True
        monkeypatch.setattr(sys, "stdin", terminal)
        monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
        monkeypatch.setenv("COLUMNS", "1000")

    return typed
