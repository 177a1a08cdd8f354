"""A budget that runs and upgrades share: each counts what the other one takes in the policy's groups (X9)."""

from leeward.policy.document import Budget
from simulation.definitions import NODE_GROUP_UPGRADE
from tests.simulation.disruption_stand_in import DECIDED, GROUP, OTHERS, Disrupted, a_fleet, deployment
from tests.simulation.fleet_stand_in import GroupPlan

GATE_OPENS = 60.0  # seconds before the first decision: the new nodes are Ready when the run begins
GROUPS = tuple(GroupPlan(name=name, spot=False, size=3, maximum=6) for name in (GROUP, OTHERS))
FULL = (deployment("web", 18),)


def side_by_side(*reasons):
    """A run takes drifted nodes of one group while the other one is upgraded. `met`: nodes of the run that were on
    their way together with nodes of the upgrade.
    """
    shared = Budget(nodes=1, percent=False, reasons=reasons)
    world = Disrupted(a_fleet(groups=GROUPS, budgets=(shared,), workloads=FULL)).drifting(OTHERS)
    met, upgrades = set(), world.world.system.machines[NODE_GROUP_UPGRADE]
    begin = {"group": GROUP, "ami": "ami-00000000000000009"}
    world.at(DECIDED - GATE_OPENS, lambda: upgrades.start("upgrade", begin))
    look = world.world.seen

    def seen():
        look()
        found, upgrade = world.world.disruptions.get("blue"), world.world.upgrades.get(GROUP)
        if found is not None and found.open and upgrade is not None and upgrade.under_way:
            met.update(name for name, instance in found.to_terminate.items() if instance not in found.ends)

    world.world.seen = seen
    return world.run(1.5), met


def test_an_upgrade_waits_while_a_round_of_another_group_holds_all_that_the_budget_allows():
    world, met = side_by_side("Upgrade", "Drifted")
    assert "the budgets for Upgrade are held by" in world.story
    assert met == set()
    assert "execution upgrade: SUCCEEDED Upgraded" in world.story
    assert world.ends == ["DisruptionDone"] * 3
    assert world.untouched()


def test_a_budget_that_does_not_name_upgrades_holds_none():
    world, met = side_by_side("Drifted")
    assert "the budgets for Upgrade" not in world.story
    assert met == {"node-i-00000000000000004"}
    assert "execution upgrade: SUCCEEDED Upgraded" in world.story
