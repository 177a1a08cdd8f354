"""Surge instances of an upgrade: offset as any other, and otherwise returned instead of passed on."""

from dataclasses import replace
from datetime import timedelta

import pytest

from leeward.model.capacity import NoOffset, SurgeOwner
from leeward.model.termination import Cause, CauseKind
from leeward.termination.capacity_ledger import surplus, to_offset
from leeward.termination.ledger_settlement import offsets_later, return_to_owners, settle
from leeward.termination.situation import read, survey
from tests.fakes.builders import GROUP, a_group, a_subject, an_instance
from tests.fakes.ledger import a_surge, by
from tests.fakes.system import FakeSystem

OLD, NEW = "i-0abc", "i-0new"
SURGE = a_surge(NEW, SurgeOwner.UPGRADE, "20260506T120000.1")


@pytest.fixture
def system():
    found = FakeSystem(instances=[an_instance(OLD), an_instance(NEW)], groups=[a_group(GROUP, OLD, NEW)])
    now = found.clock.now()
    for cause in (Cause(id=f"upgrade#{GROUP}#1", kind=CauseKind.UPGRADE, at=now), surplus(SURGE, now)):
        found.claims.claim(a_subject(OLD), cause, now)
    return found


def situation(system):
    return survey(read(OLD, system.ports.claims), system.ports)


def test_a_node_that_is_returned_returns_the_request_and_no_other_is_asked(system):
    assert settle(situation(system), system.ports) is None
    assert system.claims.records[OLD].offsets == {SURGE: NoOffset.RETURNED}
    assert NEW not in system.claims.records


def test_no_node_is_tried_again_later_for_a_request_that_is_returned(system):
    assert not offsets_later(situation(system), system.ports)


def test_our_own_decrement_offsets_it(system):
    system.groups.terminate(instance=OLD, decrement=True)
    assert settle(situation(system), system.ports) is None
    assert system.claims.records[OLD].offsets == {SURGE: by(OLD)}


def test_an_instance_that_the_group_replaced_returns_it(system):
    system.groups.begin_terminating(GROUP, OLD)
    assert settle(situation(system), system.ports) is None
    assert system.claims.records[OLD].offsets == {SURGE: NoOffset.RETURNED}


def test_a_node_that_waits_for_its_maintenance_returns_the_request_at_once(system):
    now = system.clock.now()
    maintenance = Cause(
        id="health#1", kind=CauseKind.SCHEDULED_CHANGE, at=now, deadline=now + timedelta(days=3), reason="reboot"
    )
    system.claims.claim(a_subject(OLD), maintenance, now)
    return_to_owners(read(OLD, system.ports.claims), system.ports.claims)
    assert to_offset(read(OLD, system.ports.claims)) == ()


def test_a_spot_warning_after_a_request_was_returned_is_replaced_as_ever(system):
    from leeward.termination.decisions import wants_replacement

    now = system.clock.now()
    warning = Cause(id="spot#1", kind=CauseKind.SPOT_INTERRUPTION, at=now, deadline=now + timedelta(minutes=2))
    record = replace(read(OLD, system.ports.claims), offsets={SURGE: NoOffset.RETURNED})
    record = replace(record, causes=(*record.causes, warning))
    seen = replace(situation(system), record=record, lifecycle="InService")
    assert wants_replacement(seen, now).act
