"""The termination that offsets a launch, by the group's own word on how it parted with the replaced instance."""

from dataclasses import replace
from datetime import timedelta

import pytest

from leeward.model.termination import Cause, CauseKind, Outcome, Replacement
from leeward.termination.capacity_ledger import surplus
from leeward.termination.ledger_settlement import settle
from leeward.termination.situation import read, survey
from tests.fakes.builders import GROUP, a_group, a_subject, an_instance
from tests.fakes.ledger import a_surge, by
from tests.fakes.system import FakeSystem

OLD, NEW, OTHER = "i-0abc", "i-0new", "i-0other"


@pytest.fixture
def system():
    instances = [an_instance(OLD), an_instance(NEW), an_instance(OTHER)]
    return FakeSystem(instances=instances, groups=[a_group(GROUP, OLD, NEW, OTHER)])


def warned_and_replaced(system, *, decrement):
    """A spot warning for OLD, the launch of NEW, and the end of OLD, `decrement` after the launch (timedelta)."""
    now = system.clock.now()
    warning = Cause(id="spot#1", kind=CauseKind.SPOT_INTERRUPTION, at=now, deadline=now + timedelta(minutes=2))
    system.claims.claim(a_subject(OLD), warning, now)
    system.instances.put(replace(system.instances.known[NEW], launched=now - decrement))
    system.claims.replaced(OLD, Replacement(launched=(NEW,)), now)
    system.groups.terminate(instance=OLD, decrement=True)
    return survey(read(OLD, system.ports.claims), system.ports)


def test_a_decrement_after_the_launch_offsets_it(system):
    assert settle(warned_and_replaced(system, decrement=timedelta(seconds=30)), system.ports) is None
    assert system.claims.records[OLD].offsets == {a_surge(NEW): by(OLD)}


def test_an_owner_s_decrement_from_before_the_launch_leaves_it_to_the_youngest_member(system):
    situation = warned_and_replaced(system, decrement=timedelta(seconds=-4))
    assert settle(situation, system.ports) is None
    assert system.claims.records[OLD].offsets == {a_surge(NEW): by(NEW)}
    assert system.claims.records[NEW].has(CauseKind.SURPLUS)


def surplus_ended_by_its_owner(system):
    """NEW was to offset the launch made for OLD, which was returned to service. Its owner ends it at EC2; what is
    surveyed is from before the group has noticed.
    """
    now = system.clock.now()
    warning = Cause(id="rebalance#1", kind=CauseKind.REBALANCE_RECOMMENDATION, at=now)
    system.claims.claim(a_subject(OLD), warning, now)
    system.claims.replaced(OLD, Replacement(launched=(NEW,)), now)
    system.claims.note(OLD, offsets={a_surge(NEW): by(NEW)})
    version = system.claims.records[OLD].version
    system.claims.close(OLD, version=version, outcome=Outcome.RETURNED_TO_SERVICE, now=now)
    system.claims.claim(a_subject(NEW), surplus(a_surge(NEW), now), now)
    system.instances.put(replace(system.instances.known[NEW], state="shutting-down"))
    system.claims.note(NEW, times={"terminated": now})
    return survey(read(NEW, system.ports.claims), system.ports)


@pytest.fixture
def pair():
    instances = [an_instance(OLD), an_instance(NEW)]
    return FakeSystem(instances=instances, groups=[a_group(GROUP, OLD, NEW)])


def test_the_group_s_report_read_after_its_members_leaves_no_launch_without_an_offset(pair):
    """The members were read before the health check, the group's report after it: another member is on its way."""
    situation = surplus_ended_by_its_owner(pair)
    pair.groups.begin_terminating(GROUP, NEW)
    assert "has still to launch the member that can offset it" in (settle(situation, pair.ports) or "")
    assert pair.claims.records[NEW].offsets == {}
