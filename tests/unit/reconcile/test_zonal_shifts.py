"""The minute reconciler and zonal shifts: what it polls, keeps, reports and announces."""

from dataclasses import replace
from datetime import timedelta

from leeward.errors import AccessDeniedError, AwsUnavailableError
from leeward.model import well_known
from leeward.model.facts import FactKind, Sheet, subnets_content
from leeward.model.zonal_shift import ShiftKind, ShiftSource
from leeward.reconcile.reconciler import reconcile_once
from leeward.reconcile.zones import EVENT, EVENT_ENDED
from tests.fakes.builders import CLUSTER, a_group, a_node, a_subnet
from tests.fakes.system import FakeSystem

SILENT = AwsUnavailableError("no answer")


def in_zone(node, zone):
    return replace(node, labels={**node.labels, well_known.ZONE_LABEL: zone})


def a_system():
    """A cluster with subnets and nodes in two zones."""
    nodes = [a_node("i-0aa"), in_zone(a_node("i-0bb"), "us-east-1b")]
    system = FakeSystem(groups=[a_group("web-a")], nodes=nodes)
    subnets = [a_subnet(zone="us-east-1a"), a_subnet("subnet-b", zone="us-east-1b")]
    system.catalog.keep(CLUSTER, FactKind.SUBNETS, Sheet(synced=system.clock.now(), content=subnets_content(subnets)))
    return system


def shift(system, zone_id="use1-az2", kind=ShiftKind.MANUAL, **more):
    return system.recovery.arc.start(CLUSTER, zone_id, kind, system.clock.now(), **more)


def kept(system):
    return system.catalog.zonal_shifts(CLUSTER)


def minutes_later(system, minutes=1):
    system.clock.advance(minutes=minutes)
    return reconcile_once(system.ports)


def test_a_shift_that_no_event_has_announced_is_seen_by_the_next_poll():
    system = a_system()
    shift(system)
    result = reconcile_once(system.ports)
    assert kept(system).zones == {"us-east-1b"}
    assert kept(system).shifts[0].source is ShiftSource.POLL
    assert list(map(str, result.shifted)) == [f"{CLUSTER}: {kept(system).shifts[0].sentence}"]
    assert result.shift_changes == [f"{CLUSTER}: {kept(system).shifts[0].sentence} is in effect"]
    assert minutes_later(system).shift_changes == []


def test_one_call_a_minute_is_made_for_each_cluster():
    system = a_system()
    for _ in range(3):
        minutes_later(system)
    assert system.recovery.asked["shifts"] == 3


def test_a_shift_that_expires_without_an_event_is_over_at_the_next_poll():
    system = a_system()
    shift(system, until=system.clock.now() + timedelta(seconds=90))
    reconcile_once(system.ports)
    assert minutes_later(system, 2).shift_changes[0].endswith("has ended")
    assert kept(system).zones == frozenset()


def test_the_last_known_shifts_hold_while_arc_does_not_answer_and_the_result_says_so():
    system = a_system()
    shift(system)
    reconcile_once(system.ports)
    system.recovery.fail("shifts", SILENT)
    result = minutes_later(system)
    assert kept(system).zones == {"us-east-1b"}
    assert kept(system).failed == "no answer"
    (error,) = result.errors
    assert "zonal shifts" in error
    assert "the last known ones hold: zonal shift away from us-east-1b" in error
    system.recovery.heal()
    assert minutes_later(system).errors == []
    assert kept(system).failed == ""


def test_a_poll_that_is_denied_stops_no_other_pass():
    system = a_system()
    system.recovery.fail("shifts", AccessDeniedError("no permission"))
    result = reconcile_once(system.ports)
    assert len(result.errors) == 1
    assert "no permission" in result.errors[0]
    assert kept(system).zones == frozenset()


def test_an_answer_that_changes_nothing_is_written_once_in_five_minutes():
    system = a_system()
    reconcile_once(system.ports)
    written = system.catalog.asked["keep_zonal_shifts"]
    for _ in range(5):
        minutes_later(system)
    assert system.catalog.asked["keep_zonal_shifts"] == written + 1


def test_a_zone_whose_subnet_is_not_known_yet_is_named_as_soon_as_it_is():
    system = a_system()
    shift(system, "use1-az3")
    reconcile_once(system.ports)
    assert (kept(system).zones, kept(system).shifts[0].zone_id) == (frozenset(), "use1-az3")
    subnets = Sheet(synced=system.clock.now(), content=subnets_content([a_subnet("subnet-c", zone="us-east-1c")]))
    system.catalog.keep(CLUSTER, FactKind.SUBNETS, subnets)
    minutes_later(system)
    assert kept(system).zones == {"us-east-1c"}


def test_nodes_of_the_zone_get_an_event_when_a_practice_run_begins_and_when_it_is_over():
    system = a_system()
    shift(system, kind=ShiftKind.PRACTICE_RUN)
    for _ in range(3):
        minutes_later(system)
    system.recovery.arc.end(CLUSTER, "use1-az2")
    for _ in range(3):
        minutes_later(system)
    events = [(event.about, event.reason) for event in system.kubernetes.events]
    assert events == [("node-i-0bb", EVENT), ("node-i-0bb", EVENT_ENDED)]
    assert "practice run" in system.kubernetes.events[0].message
