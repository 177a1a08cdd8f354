"""A termination record that cannot be read, of another group or of a member: the steps of an upgrade go on."""

import pytest

from leeward.errors import NewerRecordError
from leeward.model.termination import Cause, CauseKind
from leeward.termination.requests import read_apart
from leeward.upgrade.record import ControlRequest, OpenLaunch
from leeward.upgrade.run import UpgradeNext
from leeward.upgrade.steps import STEPS
from tests.fakes.builders import GROUP, a_subject
from tests.unit.upgrade.test_waits import NEW, OLD, RUN, a_rolling_group, draining

STRANGE = "i-0ccc"  # an instance of another group


def unreadable(system, *names, error=NewerRecordError):
    """Reads and claims of these instances fail, as those of a newer version's records do. Return the names of each
    read of many. `error`: UnexpectedError for malformed records.
    """
    claims, calls = system.claims, []
    read, read_all, claim = claims.read, claims.read_all, claims.claim

    def parsed(name):
        if name in names:
            raise error(f"termination#{name}: 'suspended' is not a valid Status")
        return name

    claims.read = lambda name: read(parsed(name))
    claims.read_all = lambda instances: calls.append(instances) or read_all([parsed(name) for name in instances])
    claims.claim = lambda subject, *rest, **more: parsed(subject.instance) and claim(subject, *rest, **more)
    return calls


def a_strange_record(system):
    cause = Cause(id="c", kind=CauseKind.SPOT_INTERRUPTION, at=system.clock.now())
    system.claims.claim(a_subject(STRANGE, group="another"), cause, system.clock.now())
    unreadable(system, STRANGE)
    system.clock.advance(minutes=1)


@pytest.mark.parametrize("name", ["prepare", "launch", "gate", "drain", "scale-down", "undo", "restore"])
@pytest.mark.parametrize("control", [ControlRequest.RUN, ControlRequest.ABORT])
def test_a_record_of_another_group_stops_no_step(name, control):
    system = a_rolling_group()
    draining(system, control=control, prepared=True, pointed=True, desired=1)
    a_strange_record(system)
    assert STEPS[name](RUN, {}, system.ports).next is not UpgradeNext.FAILED


def under_way(system, **given):
    draining(system, pointed=True, started=1, under_way={OLD: f"{GROUP}.1"}, **given)


def test_a_member_whose_record_cannot_be_read_stays_under_way_until_it_is_named():
    system = a_rolling_group()
    under_way(system)
    unreadable(system, OLD)
    assert STEPS["drain"](RUN, {}, system.ports).next is UpgradeNext.WAIT
    assert OLD in system.upgrades.records[GROUP].under_way
    system.clock.advance(minutes=41)
    run = STEPS["drain"](RUN, {}, system.ports)
    assert run.next is UpgradeNext.EVICTION_FAILURE
    assert f"its record cannot be read: termination#{OLD}: 'suspended' is not a valid Status" in run.why


def test_a_member_whose_record_cannot_be_read_offsets_no_launch():
    system = a_rolling_group()
    draining(system, pointed=True, desired=1, ahead={NEW: OpenLaunch(zone="us-east-1a")})
    unreadable(system, NEW)
    STEPS["scale-down"](RUN, {}, system.ports)
    assert NEW not in system.claims.records


def test_the_records_beside_it_are_read_with_few_calls():
    system = a_rolling_group()
    names = [f"i-{number:04d}" for number in range(1000)]
    for name in names[:3]:
        cause = Cause(id="c", kind=CauseKind.UPGRADE, at=system.clock.now())
        system.claims.claim(a_subject(name), cause, system.clock.now())
    calls = unreadable(system, names[1])
    records = read_apart(names, system.claims)
    assert (sorted(records.read), list(records.unreadable)) == ([names[0], names[2]], [names[1]])
    assert len(calls) < 25
