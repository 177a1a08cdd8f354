"""Broken builds: notifications of upgrades and disruption runs."""

from simulation.rule import Rule
from tests.simulation.mutations.build import DISRUPTIONS, ROLLING, ROLLING_HARSH, Mutation
from tests.simulation.mutations.editing import edit, edited

EVENTS = "leeward.notifications"

OF_NOTIFICATIONS = (
    Mutation(
        name="each write after the end of an upgrade announces it again",
        story="asks whether the upgrade has ended, and not whether it had before",
        breaks=edited(
            edit(f"{EVENTS}.workflow_events._of_upgrade", "if not after.runs and ran:", "if not after.runs:")
        ),
        rules=frozenset({Rule.NOTIFIED}),
        scenario=ROLLING_HARSH,
    ),
    Mutation(
        name="only the first disruption run of a cluster is announced",
        story="takes a record that is new for a run that is new",
        breaks=edited(edit(f"{EVENTS}.workflow_events._of_run", "if not same:", "if before is None:")),
        rules=frozenset({Rule.NOTIFIED}),
        scenario=DISRUPTIONS,
    ),
    Mutation(
        name="an upgrade that ends well is not announced",
        story="announces failures alone",
        breaks=edited(edit(f"{EVENTS}.workflow_events._of_upgrade", "if not after.runs and ran:", "if after.error:")),
        rules=frozenset({Rule.NOTIFIED}),
        scenario=ROLLING,
    ),
    Mutation(
        name="a stopped upgrade whose event was lost is announced by its next start",
        story="relies on the event that tells how an execution ended",
        breaks=edited(edit("leeward.upgrade.reconciler._restored", "if record.runs and", "if False and")),
        rules=frozenset({Rule.NOTIFIED}),
        scenario=ROLLING,
        seed=15,
    ),
)
