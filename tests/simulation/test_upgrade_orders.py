"""Who goes first and how many together, as the policy says it (U3, U9)."""

import pytest

from tests.simulation.fleet_stand_in import deployment
from tests.simulation.upgrade_stand_in import GROUP, Upgraded, a_fleet


def rolled(**update):
    """The upgraded world, and the most old nodes that were on their way out at one moment."""
    world, most = Upgraded(a_fleet(**update)), [0]
    look_on = world.world.seen

    def note():
        look_on()
        record = world.world.upgrades.get(GROUP)
        busy = [old for old in record.under_way if drains(world, old)] if record is not None else ()
        most[0] = max(most[0], len(busy))

    world.world.seen = note
    world.start(launchTemplateVersion="2").run()
    assert (world.ended(), world.at_rest()) == ("Upgraded", True)
    return world, most[0]


def drains(world, instance):
    record = world.world.records.get(instance)
    return record is None or "drained" not in record.times


@pytest.mark.parametrize("order", ["random", "zone", "age"])
def test_every_order_replaces_every_node_within_the_limit(order):
    world, most = rolled(order=order, max_unavailable=2)
    assert most <= 2
    assert world.record.finished == 6


def test_a_percentage_lets_that_share_of_the_nodes_go_together():
    free = (deployment("web", 12),)
    _, most = rolled(workloads=free, max_unavailable=None, max_unavailable_percentage=34)
    assert most == 3, "34 % of six, rounded up"
