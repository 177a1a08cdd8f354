"""Notifications of whole worlds, faults and all: every termination from its first cause to its end, nothing twice."""

from collections import Counter

import pytest

from leeward.model.termination import Outcome, Status
from leeward.notifications.events import EventType, events_of_change
from simulation.case import Case


@pytest.fixture(scope="module", params=[11, 12])
def reported(request):
    """(world, events) of an hour and what it takes to come to rest; `put` is the table's every write of a record."""
    world = Case(seed=request.param, hours=1, per_hour=30, nodes=10).world()
    found, put = [], world.claims._put

    def written(record):
        found.extend(events_of_change(world.claims.records.get(record.instance), record, world.timeline.instant()))
        return put(record)

    world.claims._put = written
    assert world.run(1).violations == ()
    return world, found


def test_every_record_is_reported_from_its_first_cause_to_its_end(reported):
    world, found = reported
    turns = {}
    for event in found:
        turns.setdefault(event.record.instance, []).append(event.type)
    assert len(world.records) >= 3
    for instance, record in world.records.items():
        assert turns[instance][0] is EventType.DETECTED
        assert turns[instance].count(EventType.DETECTED) == len(record.all_causes)
        if record.status is Status.CLOSED and record.outcome is Outcome.TERMINATED:
            assert turns[instance][-1] is EventType.FINISHED


def test_no_two_events_have_one_id_and_every_one_can_be_reported(reported):
    _, found = reported
    ids = Counter(event.id for event in found if event.type is not EventType.BLOCKED)  # the same pods may block again
    assert ids
    assert max(ids.values()) == 1
    for event in found:
        detail = event.detail()
        assert detail["execution"].startswith(detail["instance"])
        assert detail["causes"]
