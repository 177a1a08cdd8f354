"""What every `ports.autoscaling.Maxima` does: the table's adapter on a local DynamoDB, the simulation's model, the
fake."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from leeward.adapters.aws.maxima import DynamoMaxima
from leeward.model.capacity import RaisedMaximum
from simulation.aws.maxima import SimMaxima
from tests.contract.tables import TABLES, a_table
from tests.fakes.maxima import FakeMaxima

NOW = datetime(2026, 3, 2, 10, 0, tzinfo=UTC)
RAISED = RaisedMaximum(group="web-a", before=5, raised=(6, 7), holders=("i-1", "i-2"), restoring=NOW)


@pytest.fixture(params=[*TABLES, "the model", "the fake"])
def maxima(request, monkeypatch):
    if request.param in TABLES:
        with a_table(monkeypatch, request.param) as table:
            yield DynamoMaxima(table)
    else:
        yield SimMaxima() if request.param == "the model" else FakeMaxima()


def test_a_group_that_was_never_raised_has_no_item(maxima):
    assert maxima.read("web-a") is None
    assert maxima.read_all(["web-a"]) == {}


def test_an_item_comes_back_as_it_was_one_version_later(maxima):
    assert maxima.write(RAISED) == replace(RAISED, version=1)
    assert maxima.read("web-a") == replace(RAISED, version=1)
    settled = maxima.write(replace(RAISED, version=1).settled())
    assert settled == RaisedMaximum(group="web-a", version=2) == maxima.read("web-a")
    assert not settled.active


def test_only_who_read_the_newest_version_writes(maxima):
    first = maxima.write(RAISED)
    assert maxima.write(RAISED) is None
    second = maxima.write(replace(first, holders=("i-1",)))
    assert maxima.write(first.settled()) is None
    assert maxima.read("web-a") == second


def test_items_of_several_groups_are_read_together(maxima):
    first, other = maxima.write(RAISED), maxima.write(replace(RAISED, group="web-b"))
    assert maxima.read_all(["web-a", "web-b", "web-c"]) == {"web-a": first, "web-b": other}
