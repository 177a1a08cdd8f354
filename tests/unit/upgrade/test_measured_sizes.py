"""Sizes that an upgrade restores: measured by each start that finds no launch of the upgrade left in the group."""

from dataclasses import replace

import pytest

from leeward.model.capacity import RaisedMaximum
from leeward.model.launch import LaunchSource
from leeward.model.termination import Cause, CauseKind, Outcome
from leeward.termination.capacity_ledger import surplus
from leeward.upgrade.members import UpgradeTarget
from leeward.upgrade.record import ControlRequest, LaunchOrder, OpenLaunch, UpgradeRequest, cause_id, surge_of
from leeward.upgrade.run import UpgradeNext
from leeward.upgrade.steps import STEPS
from tests.fakes.builders import GROUP, a_subject
from tests.fakes.ledger import by
from tests.unit.upgrade.test_waits import NEW, OLD, RUN, V1, V2, a_rolling_group, draining

BEFORE, NOW = 5, 4  # desired sizes: before the upgrade was stopped, and after an owner's decrement since then


def stopped(*, offset=True, now=NOW, **given):
    """The upgrade was stopped while OLD was to offset the launch of NEW. Since then OLD has (`offset`), and an owner
    has terminated another member with decrement.
    """
    system = a_rolling_group()
    system.templates.version_for(V1, "ami-00000000000000002", token="two")
    group = system.groups.by_name[GROUP]
    system.groups.by_name[GROUP] = replace(group, desired=now, launch=LaunchSource(template=V2))
    fields = {
        "under_way": {OLD: "t.1"},
        "ahead": {NEW: OpenLaunch(offset_by=OLD)},
        "previous": UpgradeTarget(template=V1),
    }
    draining(system, **{**fields, "desired": BEFORE, "started": 1, "launched": 1, "prepared": True, **given})
    record, at = system.upgrades.records[GROUP], system.clock.now()
    surge = surge_of(record, NEW, OLD)
    for cause in (Cause(id=cause_id(record, OLD), kind=CauseKind.UPGRADE, at=at), surplus(surge, at)):
        system.claims.claim(a_subject(OLD), cause, at)
    if offset:
        system.claims.note(OLD, offsets={surge: by(OLD)})
        version = system.claims.records[OLD].version
        system.claims.close(OLD, version=version, outcome=Outcome.TERMINATED, now=at)
    return system


def desired_after(system, step="prepare"):
    assert STEPS[step](RUN, {"step": step}, system.ports).next is UpgradeNext.POINT
    return system.upgrades.records[GROUP].desired


@pytest.mark.parametrize("prepared", [True, False])
def test_an_owner_s_decrement_after_the_last_offset_of_a_stopped_upgrade_is_in_the_size(prepared):
    asked = {} if prepared else {"request": UpgradeRequest(template_version="2")}
    system = stopped(prepared=prepared, **asked)
    assert desired_after(system) == NOW
    assert desired_after(system) == NOW  # the step repeated
    record = system.upgrades.records[GROUP]
    assert (record.under_way, record.ahead, record.gone, record.finished) == ({}, {}, 1, 1)


def test_a_rollback_of_a_stopped_upgrade_measures_after_its_last_offset():
    assert desired_after(stopped(control=ControlRequest.ROLLBACK), "start-rollback") == NOW


@pytest.mark.parametrize("step", ["prepare", "start-rollback"])
@pytest.mark.parametrize(
    "in_sizes",
    [
        {"offset": False},
        {"ahead": {NEW: OpenLaunch(offset_by=OLD), "i-0ccc": OpenLaunch()}},
        {"orders": {"2": LaunchOrder(zone="us-east-1a", subnet="subnet-a")}},
        {"raised": 1},
    ],
)
def test_a_launch_that_is_left_in_the_group_keeps_the_size_of_before_it(in_sizes, step):
    control = ControlRequest.ROLLBACK if step == "start-rollback" else ControlRequest.RUN
    assert desired_after(stopped(now=BEFORE + 1, control=control, **in_sizes), step) == BEFORE


@pytest.mark.parametrize("step", ["prepare", "start-rollback"])
@pytest.mark.parametrize(("raised", "restored"), [((), 6), ((6,), 10)])
def test_a_maxsize_that_an_owner_set_while_the_upgrade_was_stopped_is_restored(raised, restored, step):
    """Also with launches left in the desired size. Where it could not be restored yet, the value of before stays."""
    control = ControlRequest.ROLLBACK if step == "start-rollback" else ControlRequest.RUN
    system = stopped(offset=False, maximum=10, control=control)
    system.maxima.write(RaisedMaximum(group=GROUP, before=10, raised=raised))
    system.groups.by_name[GROUP] = replace(system.groups.by_name[GROUP], maximum=6)
    desired_after(system, step)
    assert system.upgrades.records[GROUP].maximum == restored
