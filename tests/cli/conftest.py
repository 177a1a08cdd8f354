"""What every test of the command line takes."""

import io
import sys

import pytest

from leeward.adapters import wiring
from leeward.cli.main import DEBUG
from tests.cli.command import Command
from tests.fakes.builders import CLUSTER
from tests.fakes.deployment import FakeDeployment


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


@pytest.fixture
def deployment(monkeypatch, system):
    """The deployment of the module's `system`."""
    found = FakeDeployment(CLUSTER, listed=system.groups.by_name.values())
    monkeypatch.setattr(wiring, "command_line_deployment", lambda *_: found)
    monkeypatch.setattr(wiring, "command_line_ports", lambda *_: system.ports)
    return found
