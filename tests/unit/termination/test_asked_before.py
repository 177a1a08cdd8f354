"""A launch that each member of its group was asked to offset before, until the last of them was ended by others."""

from dataclasses import replace

import pytest

from leeward.errors import AwsUnavailableError
from leeward.model.capacity import NoOffset
from leeward.model.termination import Cause, CauseKind, Outcome, Status
from leeward.termination.capacity_ledger import surplus, to_offset
from leeward.termination.ledger_settlement import request_offsets, settle
from leeward.termination.situation import read, survey
from tests.fakes.builders import GROUP, a_group, a_subject, an_instance
from tests.fakes.ledger import a_surge, by
from tests.fakes.system import FakeSystem

NEW, FIRST, LAST = "i-0new", "i-0first", "i-0last"
SURGE, AGAIN = a_surge(NEW), a_surge(NEW, request=LAST)


def asked(system, member, surge=SURGE):
    system.claims.claim(a_subject(member), surplus(surge, system.clock.now()), system.clock.now())


def passed_on(system, member, to, surge=SURGE):
    """Its pods could not leave: it was returned to service, and `to` was asked."""
    system.claims.note(member, offsets={surge: by(to)})
    version = system.claims.records[member].version
    system.claims.close(member, version=version, outcome=Outcome.RETURNED_TO_SERVICE, now=system.clock.now())
    asked(system, to, surge)


@pytest.fixture
def system():
    """NEW and FIRST were asked and are blocked; LAST is retried, and then its group balances its zones."""
    members = [an_instance(NEW), an_instance(FIRST), an_instance(LAST)]
    found = FakeSystem(instances=members, groups=[a_group(GROUP, NEW, FIRST, LAST)])
    asked(found, NEW)
    passed_on(found, NEW, FIRST)
    passed_on(found, FIRST, LAST)
    found.groups.begin_terminating(GROUP, LAST)
    return found


def ended(system, member=LAST):
    system.instances.set_state(member, "shutting-down")
    system.claims.note(member, times={"terminated": system.clock.now()})
    return survey(read(member, system.ports.claims), system.ports)


def resize(system, **fields):
    system.groups.by_name[GROUP] = replace(system.groups.by_name[GROUP], **fields)


def settle_last(system):
    resize(system, desired=2)
    return settle(ended(system), system.ports)


def test_a_member_that_was_asked_before_is_asked_again(system):
    assert settle_last(system) is None
    assert system.claims.records[LAST].offsets == {SURGE: by(NEW), AGAIN: by(NEW)}
    assert to_offset(system.claims.records[NEW]) == (AGAIN,)
    assert to_offset(system.claims.records[FIRST]) == ()


def test_a_repeated_settlement_asks_it_once(system):
    settle_last(system)
    before = system.claims.records[NEW]
    assert settle(survey(read(LAST, system.ports.claims), system.ports), system.ports) is None
    assert system.claims.records[NEW] == before


def test_a_settlement_killed_before_the_request_makes_it_when_it_is_repeated(system):
    system.claims.fail("claim", AwsUnavailableError("connection reset"), times=1)
    with pytest.raises(AwsUnavailableError):
        settle_last(system)
    assert to_offset(system.claims.records[NEW]) == ()
    assert settle(survey(read(LAST, system.ports.claims), system.ports), system.ports) is None
    assert to_offset(system.claims.records[NEW]) == (AGAIN,)


def test_a_repeated_request_of_a_member_that_has_passed_the_launch_on_begins_no_round(system):
    request_offsets(system.claims.records[NEW], system.ports)
    assert system.claims.records[FIRST].status is Status.CLOSED
    assert to_offset(system.claims.records[FIRST]) == ()


def test_the_second_round_asks_each_member_once(system):
    settle_last(system)
    system.instances.set_state(NEW, "running")
    assert settle(survey(read(NEW, system.ports.claims), system.ports), system.ports) is None
    assert system.claims.records[NEW].offsets[AGAIN] == by(FIRST)
    assert to_offset(system.claims.records[FIRST]) == (AGAIN,)


def test_a_member_that_only_offsets_another_launch_is_asked_where_no_other_is_left(system):
    other = a_surge("i-0other")
    for member in (NEW, FIRST):
        asked(system, member, other)
    settle_last(system)
    assert system.claims.records[LAST].offsets == {SURGE: by(NEW), AGAIN: by(NEW)}
    assert to_offset(system.claims.records[NEW]) == (other, AGAIN)


def test_a_member_that_terminates_for_another_cause_is_not_asked(system):
    for member in (NEW, FIRST):
        warning = Cause(id="spot#1", kind=CauseKind.SPOT_INTERRUPTION, at=system.clock.now())
        system.claims.claim(a_subject(member), warning, system.clock.now())
    assert settle_last(system) is None
    assert system.claims.records[LAST].offsets == {SURGE: NoOffset.WRITTEN_OFF}


def test_no_member_is_asked_again_in_a_group_that_others_made_smaller(system):
    resize(system, minimum=2)
    assert settle_last(system) is None
    assert system.claims.records[LAST].offsets == {SURGE: NoOffset.WRITTEN_OFF}
