"""MaxSize is put back after an upgrade or a disruption run: never below the desired size, nor over another's choice."""

from dataclasses import replace

import pytest

from leeward.disruption.completion import restore_groups
from leeward.upgrade.completion import restore_group
from leeward.upgrade.reconciler import reconcile_upgrades
from tests.fakes.builders import GROUP, a_group, an_instance
from tests.fakes.disruptions import a_disruption
from tests.fakes.system import FakeSystem
from tests.unit.upgrade.builders import a_record

BEFORE, RAISED = 3, 5


def a_system(*, desired=3, maximum=RAISED):
    members = [f"i-{n}" for n in range(desired)]
    group = replace(a_group(GROUP, *members), maximum=maximum)
    return FakeSystem(instances=[an_instance(name) for name in members], groups=[group])


def raised(system, **more):
    return a_record(system, **{"maximum": BEFORE, "raised_maximum": True, "raised_to": RAISED, **more})


def maximum(system):
    return system.groups.by_name[GROUP].maximum


def test_an_upgrade_puts_the_maximum_size_back():
    system = a_system()
    record = restore_group(raised(system), system.ports)
    assert maximum(system) == BEFORE
    assert (record.raised_maximum, record.raised_to) == (False, 0)


def test_a_maximum_below_the_desired_size_is_owed_until_the_group_has_shrunk():
    system = a_system(desired=4)
    record = restore_group(raised(system), system.ports)
    assert maximum(system) == RAISED
    assert record.raised_maximum


def test_a_larger_maximum_that_its_owner_has_chosen_stays():
    system = a_system(maximum=20)
    record = restore_group(raised(system), system.ports)
    assert maximum(system) == 20
    assert not record.raised_maximum


@pytest.mark.parametrize("runs", [False, True])
def test_the_minute_reconciler_puts_it_back_after_an_upgrade_that_does_not_run_any_more(runs):
    system = a_system()
    written = system.upgrades.write(raised(system, execution="web-a-1"))
    if runs:
        system.upgrade_executions.start("web-a-1", {})
    assert written is not None
    reconcile_upgrades(system.groups.by_name.values(), system.ports)
    assert maximum(system) == (RAISED if runs else BEFORE)


def test_a_disruption_run_puts_the_maximum_size_back():
    system = a_system()
    record = restore_groups(replace(a_disruption(), raised={GROUP: BEFORE}), system.ports)
    assert maximum(system) == BEFORE
    assert record.raised == {}


def test_a_disruption_run_owes_it_while_the_group_is_larger():
    system = a_system(desired=4)
    record = restore_groups(replace(a_disruption(), raised={GROUP: BEFORE}), system.ports)
    assert maximum(system) == RAISED
    assert record.raised == {GROUP: BEFORE}
