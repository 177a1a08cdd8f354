"""New nodes of an upgrade that are kept from Cluster Autoscaler, once no execution works on it any more."""

from dataclasses import replace

import pytest

from leeward.model.well_known import KEPT_FOR, SCALE_DOWN_DISABLED
from leeward.reconcile.reconciler import reconcile_once
from leeward.upgrade.completion import restore_group
from tests.fakes.builders import GROUP, a_group, a_node, an_instance
from tests.fakes.system import FakeSystem
from tests.unit.upgrade.builders import a_record, begun

NODE, THEIRS, NAME = "i-0abc", "i-0def", f"{GROUP}-1"
KEPT = {SCALE_DOWN_DISABLED: "true", KEPT_FOR: GROUP}


@pytest.fixture
def system():
    """Two nodes that Cluster Autoscaler leaves alone, the second because others want it so."""
    nodes = [
        replace(a_node(NODE), annotations=KEPT),
        replace(a_node(THEIRS), annotations={SCALE_DOWN_DISABLED: "true"}),
    ]
    ids = (NODE, THEIRS)
    found = FakeSystem(instances=map(an_instance, ids), groups=[a_group(GROUP, *ids)], nodes=nodes)
    begun(found, execution=NAME, attempt=1)
    return found


def notes(system):
    return [system.kubernetes.by_name[f"node-{name}"].annotations for name in (NODE, THEIRS)]


def test_the_reconciler_keeps_those_of_an_upgrade_that_runs(system):
    system.upgrade_executions.open.add(NAME)
    assert reconcile_once(system.ports).restored == []
    assert notes(system) == [KEPT, {SCALE_DOWN_DISABLED: "true"}]


@pytest.mark.parametrize("left", ["stopped", "ended", "nothing"])
def test_the_reconciler_releases_those_of_any_other_and_nothing_else(system, left):
    if left == "nothing":
        system.upgrades.records.clear()
    elif left == "ended":  # the execution's last step is still on its way
        system.upgrade_executions.open.add(NAME)
        system.upgrades.records[GROUP] = a_record(system, execution=NAME, ended=system.clock.now())
    assert reconcile_once(system.ports).restored == [f"node-{NODE}"]
    assert notes(system) == [{}, {SCALE_DOWN_DISABLED: "true"}]
    assert reconcile_once(system.ports).restored == []


def test_a_cluster_that_does_not_answer_delays_no_end_and_the_reconciler_releases_later(system):
    system.kubernetes.down = True
    assert restore_group(a_record(system, execution=NAME, suspended=True), system.ports).suspended is False
    system.kubernetes.down = False
    assert reconcile_once(system.ports).restored == [f"node-{NODE}"]
    assert notes(system)[0] == {}
