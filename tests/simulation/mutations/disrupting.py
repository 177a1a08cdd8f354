"""Broken builds: disruption runs. Those that no seed can reach are in `planted.py`."""

from dataclasses import replace

from simulation.features import Feature
from simulation.rule import Rule
from tests.simulation.mutations.build import (
    DISRUPTIONS,
    DISRUPTIONS_HARSH,
    DISRUPTIONS_OF_ZONES,
    Mutation,
    with_features,
)
from tests.simulation.mutations.editing import edit, edited

BUDGETS, DISRUPTION = "leeward.budgets", "leeward.disruption"

OF_DISRUPTION = (
    Mutation(
        name="tags of the group do not win over those of its launch template",
        story="compares an instance with its launch template as it stands",
        breaks=edited(
            edit("leeward.drift.evidence.propagated_over", "key in group.propagated", "not group.propagated")
        ),
        rules=frozenset({Rule.DRIFT}),
        scenario=DISRUPTIONS,
    ),
    Mutation(
        name="disruption continues while an alarm rings",
        story="reads the alarms of upgrades and not those of disruption",
        breaks=edited(
            edit(f"{DISRUPTION}.observation.observe", "return with_alarms(snapshot, ports.alarms)", "return snapshot")
        ),
        rules=frozenset({Rule.ALARM}),
        scenario=replace(DISRUPTIONS, name="disruption runs, alarms ring", hours=2, features=(Feature.ALARMS,)),
    ),
    Mutation(
        name="disruption budgets allow one node more",
        story="compares with below zero where zero is meant",
        breaks=edited(
            edit(
                f"{BUDGETS}.disruption_budgets.allowance",
                "max(0, min(limits) - disrupting)",
                "min(limits) - disrupting + 1",
            )
        ),
        rules=frozenset({Rule.SPENT}),
        scenario=DISRUPTIONS,
    ),
    Mutation(
        name="nodes that are being disrupted do not count against the budgets",
        story="counts what is left to allow and not what is under way",
        breaks=edited(edit(f"{BUDGETS}.disruption_budgets.allowance", "min(limits) - disrupting", "min(limits)")),
        rules=frozenset({Rule.SPENT}),
        scenario=DISRUPTIONS,
    ),
    Mutation(
        name="disruption runs pass over the budgets of a zone",
        story="counts the nodes of the policy and not those of the zone",
        breaks=edited(
            edit(
                f"{BUDGETS}.usage.BudgetUsage.of",
                "for one in all_allowances(snapshot)",
                "for one in all_allowances(snapshot) if one.zone is None",
            )
        ),
        rules=frozenset({Rule.SPENT}),
        scenario=DISRUPTIONS_OF_ZONES,
    ),
    Mutation(
        name="MaxSize is not put back after a disruption run",
        story="leaves MaxSize to the run that names the group, whether it is open or not",
        breaks=edited(
            edit("leeward.termination.maximum_size._in_use", "run.open and name", "name"),
            edit(f"{DISRUPTION}.completion.restore_groups", "release(record.groups,", "release((),"),
        ),
        rules=frozenset({Rule.RESTORED}),
        scenario=DISRUPTIONS,
    ),
    Mutation(
        name="AZRebalance stays suspended after a disruption run",
        story="suspends zone balancing and forgets to resume it",
        breaks=edited(
            edit(f"{DISRUPTION}.completion.restore_groups", "ports.group_changes.resume(name, AZ_REBALANCE)", "pass")
        ),
        rules=frozenset({Rule.RESTORED}),
        scenario=DISRUPTIONS,
    ),
    Mutation(
        name="a stopped disruption run is never taken up again",
        story="relies on the execution that was started",
        breaks=edited(edit(f"{DISRUPTION}.run.restart", "return start(record, disruption_executions)", "return None")),
        rules=frozenset({Rule.DISRUPTION, Rule.STALE_TAINT}),
        scenario=DISRUPTIONS_HARSH,
    ),
    Mutation(
        name="replacements of dropped commands stay",
        story="launches first and forgets the launch when the command is dropped",
        breaks=edited(edit(f"{DISRUPTION}.completion.roll_back", "surplus = record.surplus()", "surplus = ()")),
        rules=frozenset({Rule.DEBT, Rule.SIZE}),
        scenario=with_features(Feature.ZONAL_SHIFT, disruption=True, hours=1, per_hour=20),  # commands are dropped
        seed=10,
    ),
    Mutation(
        name="a node of a disruption run is terminated before its replacement is launched",
        story="claims the node for its method and forgets the launch that it offsets",
        breaks=edited(
            edit(
                f"{DISRUPTION}.terminations._request_one",
                "request(subject, causes, ports)",
                "request(subject, causes[:1], ports)",
            )
        ),
        rules=frozenset({Rule.DEBT, Rule.SIZE, Rule.DISRUPTION}),
        scenario=DISRUPTIONS,
    ),
)
