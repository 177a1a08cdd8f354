"""What every test of the command line takes."""

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
