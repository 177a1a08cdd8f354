"""Broken builds: zonal shifts."""

from dataclasses import replace

from simulation.fault_rates import Faults
from simulation.features import Feature
from simulation.rule import Rule
from tests.simulation.mutations.build import Mutation, Scenario, with_features
from tests.simulation.mutations.editing import edit, edited

SHIFTED = with_features(Feature.ZONAL_SHIFT, Feature.NO_FAULTS, hours=1)
ROLLED = Scenario(
    name="zonal shift, upgrades",
    hours=1,
    upgrades=12,
    per_hour=20,
    faults=Faults.none(),
    features=(Feature.ZONAL_SHIFT,),
)
EVACUATED = with_features(Feature.EVACUATION, Feature.NO_FAULTS, hours=1.5)
BOTH = with_features(Feature.EVACUATION, Feature.ZONAL_SHIFT, Feature.NO_FAULTS, hours=1.5)
DISRUPTED = replace(ROLLED, name="zonal shift, disruption runs", upgrades=0, disruption=True)

OF_SHIFTS = (
    Mutation(
        name="replacements are launched into a zone with a zonal shift",
        story="leaves the choice of the zone to the order by cores, in which a zone that loses nodes comes first",
        breaks=edited(
            edit(
                "leeward.placement.replacement.replacement_scene",
                "not_in_zones(known.facts.shifts)",
                "not_in_zones(ClusterFacts().shifts)",
            ),
            edit("leeward.placement.zones.zone_order", "(zone in closed, allocated", "(allocated"),
        ),
        rules=frozenset({Rule.SHIFT_LAUNCH}),
        scenario=SHIFTED,
        seed=4,
    ),
    Mutation(
        name="zonal shifts are learned from events alone",
        story="trusts that EventBridge loses nothing",
        breaks=edited(
            edit(
                "leeward.reconcile.reconciler._ClusterReconciler._set_shifts",
                "poll_shifts(self.cluster, self.ports, self.result)",
                "self.ports.catalog.zonal_shifts(self.cluster)",
            )
        ),
        rules=frozenset({Rule.SHIFT_KNOWN}),
        scenario=SHIFTED,
    ),
    Mutation(
        name="AZRebalance is resumed during a zonal shift",
        story="restores the group at the end of an upgrade as always",
        breaks=edited(
            edit(
                "leeward.upgrade.completion.restore_group", " or ports.catalog.zonal_shifts(record.cluster).shifts", ""
            )
        ),
        rules=frozenset({Rule.SHIFT_BALANCE}),
        scenario=ROLLED,
    ),
    Mutation(
        name="waves take nodes of a zone with a zonal shift",
        story="thinks of launches alone",
        breaks=edited(
            edit(
                "leeward.upgrade.waves.drain_selection.waiting",
                "and not in_shifted_zone(preflight.snapshot, one)",
                "",
            ),
            edit(
                "leeward.upgrade.waves.drain_selection._ready_surge",
                "if record.ahead[name].zone in shifted:",
                "if False:",
            ),
        ),
        rules=frozenset({Rule.SHIFT_REMOVAL}),
        scenario=ROLLED,
        seed=2,
    ),
    Mutation(
        name="disruption removes nodes of a zone with a zonal shift",
        story="saves money while the zone is ill",
        breaks=edited(
            edit("leeward.disruption.candidates._reason_not_now", "or snapshot.why_shifted(snapshot.zone_of(node))", "")
        ),
        rules=frozenset({Rule.SHIFT_REMOVAL}),
        scenario=DISRUPTED,
        seed=2,
    ),
    Mutation(
        name="a zone that was evacuated keeps AZRebalance suspended",
        story="removes the evacuation as soon as the zone is open",
        breaks=edited(
            edit("leeward.reconcile.evacuations.resume", "if name in state.groups:", "if name not in state.groups:")
        ),
        rules=frozenset({Rule.RESTORED}),
        scenario=EVACUATED,
    ),
    Mutation(
        name="AZRebalance is resumed after an evacuation although another zone is shifted",
        story="looks at its own zone alone",
        breaks=edited(
            edit(
                "leeward.reconcile.evacuations.resume",
                "if names and ports.catalog.zonal_shifts(state.cluster).shifts:",
                "if False:",
            )
        ),
        rules=frozenset({Rule.SHIFT_BALANCE}),
        scenario=BOTH,
    ),
    Mutation(
        name="replacements of an evacuated zone are launched there",
        story="knows shifts of ARC alone",
        breaks=edited(
            edit("leeward.model.zonal_shift.ZonalShifts.with_record", "if one.closed", "if not one.closed"),
            edit("leeward.placement.zones.zone_order", "(zone in closed, allocated", "(allocated"),
        ),
        rules=frozenset({Rule.SHIFT_LAUNCH, Rule.SHIFT_KNOWN}),
        scenario=EVACUATED,
    ),
)
