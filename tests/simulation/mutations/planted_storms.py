"""Planted builds: how a storm is counted, and what an emptied node does in it."""

from tests.simulation.mutations.editing import edit
from tests.simulation.mutations.plant import Planted

OF_STORMS = (
    Planted(
        name="a storm is counted in one batch",
        story="takes the messages that came together for all there are",
        edits=(
            edit(
                "leeward.interruption.batch._counted",
                "together = max(counted, len(taken)) if isinstance(counted, int) else len(taken)",
                "together = len(taken)",
            ),
        ),
        tests=("tests/handlers/interruption/test_batches.py",),
    ),
    Planted(
        name="a storm of small batches takes the usual order",
        story="launches ahead for each of many nodes, while AWS throttles what would offset the launches",
        edits=(
            edit(
                "leeward.interruption.batch._counted",
                "together = max(counted, len(taken)) if isinstance(counted, int) else len(taken)",
                "together = len(taken)",
            ),
        ),
        tests=("tests/simulation/test_storm.py::test_within_the_limits_of_aws_pods_without_a_budget_leave_in_time",),
    ),
    Planted(
        name="a message that comes back makes a storm",
        story="counts deliveries",
        edits=(edit("leeward.interruption.batch._counted", " if work.record.receives == 1", ""),),
        tests=("tests/handlers/interruption/test_batches.py",),
    ),
    Planted(
        name="an emptied node of a storm asks AWS at once",
        story="ends what has no pods as usual, while AWS throttles",
        edits=(
            edit(
                "leeward.termination.prompt_eviction.asks_when_empty",
                "return crc32(record.instance.encode()) % max(taken_together(record), 1) < SMALLEST_STORM",
                "return True",
            ),
        ),
        tests=("tests/state_machines/test_storms.py",),
    ),
)
