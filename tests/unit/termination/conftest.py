"""Every Event of a step is true when it is written."""

import pytest

from tests.truthful_events import held_against_the_truth


@pytest.fixture(autouse=True)
def _truthful(monkeypatch):
    with held_against_the_truth(monkeypatch):
        yield
