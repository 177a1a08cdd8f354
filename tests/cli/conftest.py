"""What every test of the command line takes."""

import pytest

from tests.cli.command import Command


@pytest.fixture
def leeward(capsys):
    return Command(capsys)
