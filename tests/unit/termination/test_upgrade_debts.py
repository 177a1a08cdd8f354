"""Debts that an upgrade keeps the books on: paid as any other, and otherwise returned instead of passed on."""

from dataclasses import replace
from datetime import timedelta

import pytest

from leeward.model.termination import RETURNED, Cause, CauseKind
from leeward.termination.capacity_ledger import debts
from leeward.termination.instance_state import read, survey
from leeward.termination.ledger_settlement import give_back_debts, pays_itself_later, settle
from tests.fakes.builders import GROUP, a_group, a_subject, an_instance
from tests.fakes.system import FakeSystem

OLD, NEW = "i-0abc", "i-0new"
DEBT = f"{NEW}/upgrade-20260506T120000.1"


@pytest.fixture
def system():
    found = FakeSystem(instances=[an_instance(OLD), an_instance(NEW)], groups=[a_group(GROUP, OLD, NEW)])
    now = found.clock.now()
    for id_, kind in ((f"upgrade#{GROUP}#1", CauseKind.UPGRADE), (f"debt#{DEBT}", CauseKind.SURPLUS)):
        found.claims.claim(a_subject(OLD), Cause(id=id_, kind=kind, at=now), now)
    return found


def situation(system):
    return survey(read(OLD, system.ports), system.ports)


def test_a_node_that_is_given_back_returns_the_debt_and_asks_nobody_else(system):
    assert settle(situation(system), system.ports) is None
    assert system.claims.records[OLD].payers == {DEBT: RETURNED}
    assert NEW not in system.claims.records


def test_nobody_is_tried_again_later_for_a_debt_that_goes_back(system):
    assert not pays_itself_later(situation(system), system.ports)


def test_our_own_decrement_pays_it(system):
    system.groups.terminate(instance=OLD, decrement=True)
    assert settle(situation(system), system.ports) is None
    assert system.claims.records[OLD].payers == {DEBT: OLD}


def test_an_instance_that_the_group_replaced_returns_it(system):
    system.groups.begin_terminating(GROUP, OLD)
    assert settle(situation(system), system.ports) is None
    assert system.claims.records[OLD].payers == {DEBT: RETURNED}


def test_a_node_that_waits_for_its_maintenance_gives_the_debt_back_at_once(system):
    now = system.clock.now()
    maintenance = Cause(
        id="health#1", kind=CauseKind.SCHEDULED_CHANGE, at=now, deadline=now + timedelta(days=3), reason="reboot"
    )
    system.claims.claim(a_subject(OLD), maintenance, now)
    give_back_debts(read(OLD, system.ports), system.ports)
    assert debts(read(OLD, system.ports)) == ()


def test_a_spot_warning_after_a_debt_was_returned_is_replaced_as_ever(system):
    from leeward.termination.decisions import wants_replacement

    now = system.clock.now()
    warning = Cause(id="spot#1", kind=CauseKind.SPOT_INTERRUPTION, at=now, deadline=now + timedelta(minutes=2))
    record = replace(read(OLD, system.ports), payers={DEBT: RETURNED})
    record = replace(record, causes=(*record.causes, warning))
    seen = situation(system)
    assert wants_replacement(record, seen.group, seen.policy, "InService", now).act
