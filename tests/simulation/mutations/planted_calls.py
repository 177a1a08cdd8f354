"""Planted builds: facts that travel in the record, and lists of a drain (docs/designs/aws-calls.md)."""

from tests.simulation.mutations.editing import edit
from tests.simulation.mutations.plant import Planted

FRESHNESS = "leeward.termination.situation"
FRESHNESS_TESTS = ("tests/unit/termination/test_freshness.py",)
LISTS = ("tests/state_machines/test_lists_of_a_drain.py",)

OF_CALLS = (
    Planted(
        name="a node returns to service on a word of minutes ago",
        story="goes by what the record has seen whatever the step is about to do",
        edits=(edit(f"{FRESHNESS}.facts", "if need is Freshness.ALL:", "if False:"),),
        tests=FRESHNESS_TESTS,
    ),
    Planted(
        name="an instance of the warm pool is ended on a stale word of its group",
        story="looks only whether the group has begun to end the instance",
        edits=(edit("leeward.model.lifecycle.may_be_ended", "return anyway", "return True"),),
        tests=("tests/adapters/test_groups.py",),
    ),
    Planted(
        name="AWS is never asked again after a lost state change",
        story="waits for the message that says how it went on",
        edits=(edit(f"{FRESHNESS}.group_fact", "now - since >= TRANSIENT_MAX_AGE", "False"),),
        tests=FRESHNESS_TESTS,
    ),
    Planted(
        name="what was seen serves as long as the termination lasts",
        story="trusts that every change is announced",
        edits=(
            edit(f"{FRESHNESS}.group_fact", "or now - seen.at >= MAX_AGE", ""),
            edit(f"{FRESHNESS}.instance_fact", "now - seen.at < lasts", "True"),
        ),
        tests=FRESHNESS_TESTS,
    ),
    Planted(
        name="an instance that is being stopped counts as running",
        story="reads no message but that of the end",
        edits=(
            edit(
                f"{FRESHNESS}.instance_fact", "any(cause.at >= seen.at - MAX_DISORDER for cause in announced)", "False"
            ),
        ),
        tests=FRESHNESS_TESTS,
    ),
    Planted(
        name="a late message of a hook overtakes a later look",
        story="takes messages in the order in which they come",
        edits=(edit(f"{FRESHNESS}.group_fact", "held >= seen.at - MAX_DISORDER and ", ""),),
        tests=FRESHNESS_TESTS,
    ),
    Planted(
        name="a message alone says that EC2 has ended an instance",
        story="believes whatever comes out of the queue",
        edits=(
            edit(
                "leeward.interruption.decide._claimed",
                'place.instance.state if confirmed and place.instance else ""',
                'message.state or ""',
            ),
        ),
        tests=("tests/handlers/interruption/test_recorded_facts.py",),
    ),
    Planted(
        name="each message about a node that is leaving asks EC2 and its group",
        story="looks everything up for every message",
        edits=(
            edit(
                "leeward.interruption.lookup.look_up_instances",
                "_recorded(acting, ports.claims, ports.clock)",
                "Recorded()",
            ),
        ),
        tests=("tests/handlers/interruption/test_recorded_facts.py",),
    ),
    Planted(
        name="a list of the API server's cache declares a node drained",
        story="counts what the API server remembers",
        edits=(edit("leeward.termination.eviction.work", "if plan.drained and cached:", "if False:"),),
        tests=LISTS,
    ),
    Planted(
        name="all budgets are read in each step",
        story="reads what may be needed for the sentences at once",
        edits=(edit("leeward.termination.eviction.work", "step.look(cached=cached)", "step.look(budgets=True)"),),
        tests=LISTS,
    ),
    Planted(
        name="a refused eviction is asked again each second",
        story="asks as often as the node is looked at",
        edits=(edit("leeward.termination.removals.Retries.refused", "pause = _pause(tries)", "pause = FIRST_PAUSE"),),
        tests=("tests/unit/termination/test_retries.py",),
    ),
    Planted(
        name="the pause after refused evictions grows without an end",
        story="doubles for each pod of a budget, which only a large workload shows",
        edits=(
            edit("leeward.termination.removals._pause", "min(tries - 1, LONGEST_PAUSE // FIRST_PAUSE)", "(tries - 1)"),
        ),
        tests=("tests/unit/termination/test_retries.py",),
    ),
    Planted(
        name="a rollback takes it for granted that its group exists",
        story="takes the group out of what DescribeAutoScalingGroups has answered",
        edits=(
            edit(
                "leeward.upgrade.steps.start_rollback",
                "described(record.group, ports.groups)",
                "ports.groups.describe([record.group])[record.group]",
            ),
        ),
        tests=("tests/unit/upgrade/test_completion.py",),
    ),
)
