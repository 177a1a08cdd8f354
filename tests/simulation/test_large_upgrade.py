"""An upgrade of 500 nodes with a third of them at once, as owners of large groups ask for."""

import pytest

from tests.simulation.fleet_stand_in import budget, deployment
from tests.simulation.upgrade_stand_in import Upgraded, a_fleet

NODES = 500
WORKLOADS = tuple(
    part
    for number in range(60)
    for part in (deployment(f"web-{number}", 25), budget(f"web-{number}", 5))
)  # fmt: skip


@pytest.mark.long  # minutes: 1,500 pods move, and every event is checked by every rule
def test_five_hundred_nodes_are_replaced_a_third_at_a_time_without_a_broken_rule():
    third = {"max_unavailable": None, "max_unavailable_percentage": 33}
    fleet = a_fleet(NODES, maximum=NODES, workloads=WORKLOADS, **third)
    upgraded = Upgraded(fleet).start(launchTemplateVersion="2").run(hours=3)
    assert upgraded.ended() == "Upgraded", upgraded.why()
    assert upgraded.at_rest(NODES)
    assert upgraded.world.kubernetes.refusals <= NODES
