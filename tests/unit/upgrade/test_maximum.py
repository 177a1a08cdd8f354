"""MaxSize is put back after an upgrade or a disruption run: never below the desired size, nor over another's choice."""

from dataclasses import replace

import pytest

from leeward.disruption.completion import restore_groups
from leeward.errors import GroupBusyError, ObjectGoneError
from leeward.model.capacity import RaisedMaximum
from leeward.reconcile.reconciler import reconcile_once
from leeward.termination.maximum_size import allow
from leeward.upgrade.completion import restore_group
from tests.fakes.builders import GROUP, a_group, an_instance
from tests.fakes.disruptions import a_disruption
from tests.fakes.system import FakeSystem
from tests.unit.upgrade.builders import a_record

BEFORE, RAISED = 3, 5


def a_system(*, desired=3, maximum=RAISED):
    members = [f"i-{n}" for n in range(desired)]
    group = replace(a_group(GROUP, *members), maximum=maximum)
    system = FakeSystem(instances=[an_instance(name) for name in members], groups=[group])
    system.maxima.write(RaisedMaximum(group=GROUP, before=BEFORE, raised=(9 if maximum == 9 else RAISED,)))
    return system


def owed(system):
    return system.maxima.read(GROUP).active


def maximum(system):
    return system.groups.by_name[GROUP].maximum


def test_an_upgrade_puts_the_maximum_size_back():
    system = a_system()
    restore_group(a_record(system), system.ports)
    assert (maximum(system), owed(system)) == (BEFORE, False)


def test_a_maximum_below_the_desired_size_is_owed_and_no_larger_than_the_group_needs():
    system = a_system(desired=4)
    record = restore_group(a_record(system), system.ports)
    assert (maximum(system), owed(system)) == (4, True)
    assert restore_group(record, system.ports) == record


def scaled_during_an_upgrade(desired=7):
    """Others have scaled the group above its owner's MaxSize while an upgrade had it raised, which has ended since."""
    system = a_system(desired=desired, maximum=9)
    record = restore_group(a_record(system), system.ports)
    assert system.upgrades.write(replace(record, ended=system.clock.now())) is not None
    return system


def resize(system, **sizes):
    system.groups.by_name[GROUP] = replace(system.groups.by_name[GROUP], **sizes)
    reconcile_once(system.ports)
    return maximum(system)


def test_weeks_after_an_upgrade_each_scale_in_lowers_maxsize_until_it_is_the_owner_s():
    system = scaled_during_an_upgrade()
    assert [resize(system, desired=size) for size in (7, 6, 6, 5, 4, 3)] == [7, 6, 6, 5, 4, 3]
    assert not owed(system)
    assert resize(system, desired=2) == 3


@pytest.mark.parametrize("later", [5, 4, 2])
@pytest.mark.parametrize("call", ["before", "after", "record"])
def test_a_pass_that_dies_while_it_lowers_maxsize_does_not_take_its_own_value_for_the_owner_s(monkeypatch, call, later):
    """It dies before MaxSize is set, after that, or as the result is to be written; others scale in meanwhile."""
    system = scaled_during_an_upgrade()
    put_back, write = system.group_changes.put_back_maximum, system.maxima.write

    def dies(*given, **more):
        if call == "after":
            put_back(*given, **more)
        raise KeyboardInterrupt

    def dies_at_the_result(item):
        return write(item) if item.restoring else dies()

    with monkeypatch.context() as patch:
        if call == "record":
            patch.setattr(system.maxima, "write", dies_at_the_result)
        else:
            patch.setattr(system.group_changes, "put_back_maximum", dies)
        with pytest.raises(KeyboardInterrupt):
            resize(system, desired=6)
    system.clock.advance(minutes=3)  # the pass that died was putting it back
    assert resize(system, desired=later) == max(later, BEFORE)
    assert resize(system, desired=BEFORE) == BEFORE


@pytest.mark.parametrize("chosen", [5, 20])
def test_a_maxsize_that_its_owner_sets_after_the_upgrade_stays(chosen):
    system = scaled_during_an_upgrade()
    assert resize(system, maximum=chosen, desired=4) == chosen
    assert resize(system, desired=3) == chosen


def test_a_larger_maximum_that_its_owner_has_chosen_stays():
    system = a_system(maximum=20)
    restore_group(a_record(system), system.ports)
    assert (maximum(system), owed(system)) == (20, False)


@pytest.mark.parametrize("runs", [False, True])
def test_the_minute_reconciler_puts_it_back_after_an_upgrade_that_does_not_run_any_more(runs):
    system = a_system()
    written = system.upgrades.write(a_record(system, execution="web-a-1"))
    if runs:
        system.upgrade_executions.start("web-a-1", {})
    assert written is not None
    reconcile_once(system.ports)
    assert maximum(system) == (RAISED if runs else BEFORE)


def test_a_disruption_run_puts_the_maximum_size_back():
    system = a_system()
    restore_groups(a_disruption(groups=(GROUP,)), system.ports)
    assert (maximum(system), owed(system)) == (BEFORE, False)


def test_a_disruption_run_owes_nothing_to_a_group_that_its_owner_has_deleted():
    system = a_system()
    system.group_changes.fail("resume", ObjectGoneError("no Auto Scaling group"))
    record = restore_groups(replace(a_disruption(), suspended=(GROUP,)), system.ports)
    assert record.suspended == ()


def test_while_maxsize_is_put_back_nothing_is_raised_and_the_step_is_tried_again():
    system = a_system()
    system.maxima.write(replace(system.maxima.read(GROUP), restoring=system.clock.now()))
    with pytest.raises(GroupBusyError):
        allow(GROUP, system.ports, size=8)
    assert maximum(system) == RAISED


def test_the_owner_s_maxsize_is_known_to_a_step_that_died_before_it_raised_it(monkeypatch):
    system = a_system(maximum=BEFORE)
    system.maxima.write(replace(system.maxima.read(GROUP), raised=()))
    system.upgrades.write(a_record(system, execution="web-a-1"))
    system.upgrade_executions.start("web-a-1", {})

    def dies(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(system.group_changes, "raise_to", dies)
        with pytest.raises(KeyboardInterrupt):
            allow(GROUP, system.ports, size=8)
    reconcile_once(system.ports)
    allow(GROUP, system.ports, size=8)
    assert maximum(system) == 8
    restore_group(a_record(system), system.ports)
    assert (maximum(system), owed(system)) == (BEFORE, False)
