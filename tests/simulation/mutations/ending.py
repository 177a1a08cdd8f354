"""Broken builds: ends of upgrades, and drains that get nowhere. Those that no seed can reach are in `planted.py`."""

from simulation.rule import Rule
from tests.simulation.mutations.build import ROLLING, ROUGH, Mutation
from tests.simulation.mutations.editing import edit, edited

UPGRADE = "leeward.upgrade"

OF_ENDS = (
    Mutation(
        name="a failure blames the zone of an instance that does not join",
        story="reports every new node that is missing in the same words",
        breaks=edited(
            edit(
                f"{UPGRADE}.failures.creation_failures",
                "never_joined(member.instance.id, member.instance.zone, waited, state)",
                "_nothing_launched(record, member.instance.zone)",
            )
        ),
        rules=frozenset({Rule.LIVENESS}),
        scenario=ROLLING,
    ),
    Mutation(
        name="a drain waits for pods that it does not evict",
        story="evicts at the deadline alone",
        breaks=edited(
            edit(
                "leeward.termination.drain_plan.DrainPlan.turn",
                "eviction.wave <= self.wave or eviction.due",
                "eviction.due",
            )
        ),
        rules=frozenset({Rule.IDLE}),
        scenario=ROUGH,
    ),
)
