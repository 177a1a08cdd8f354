"""Broken builds: upgrades of node groups. Those that no seed can reach are in `planted.py`."""

from dataclasses import replace

from simulation.features import Feature
from simulation.rule import Rule
from tests.simulation.mutations.build import ROLLING, ROLLING_HARSH, Mutation, with_features
from tests.simulation.mutations.editing import edit, edited

UPGRADE = "leeward.upgrade"
_PUT_BACK = "done = ports.group_changes.put_back_maximum(name, item.before, partly=lowest > item.before)"

OF_UPGRADES = (
    Mutation(
        name="an upgrade continues while an alarm rings",
        story="reads alarms for the canary alone",
        breaks=edited(edit(f"{UPGRADE}.waits.watch_of", "else update.alarms", "else ()")),
        rules=frozenset({Rule.ALARM}),
        scenario=replace(ROLLING, name="upgrades, alarms ring", hours=1, features=(Feature.ALARMS,)),
    ),
    Mutation(
        name="the windows of policies follow UTC",
        story="reads the hour of a schedule without its time zone",
        breaks=edited(
            edit("leeward.policy.schedule.is_active", "before.astimezone(zone(window.time_zone))", "before"),
        ),
        rules=frozenset({Rule.CLOSED}),
        scenario=with_features(Feature.CLOCKS_CHANGE, Feature.NO_FAULTS, hours=1, upgrades=12, disruption=True),
        seed=2,
    ),
    Mutation(
        name="MaxSize is not put back after an upgrade",
        story="raises MaxSize for the surge and counts on the group's owner",
        breaks=edited(edit("leeward.termination.maximum_size.put_back", _PUT_BACK, "done = True")),
        rules=frozenset({Rule.RESTORED}),
        scenario=ROLLING,
    ),
    Mutation(
        name="AZRebalance stays suspended after an upgrade",
        story="suspends zone balancing and forgets to resume it",
        breaks=edited(
            edit(
                f"{UPGRADE}.completion.restore_group", "ports.group_changes.resume(record.group, AZ_REBALANCE)", "pass"
            )
        ),
        rules=frozenset({Rule.RESTORED}),
        scenario=ROLLING,
    ),
    Mutation(
        name="an ended upgrade leaves its cordons",
        story="cordons all old nodes and uncordons none of those that stay",
        breaks=edited(edit(f"{UPGRADE}.terminations.uncordon", "kubernetes.uncordon(node)", "pass")),
        rules=frozenset({Rule.LIFTED}),
        scenario=ROLLING,
    ),
    Mutation(
        name="an upgrade drains every old node at once",
        story="takes maxUnavailable for a hint",
        breaks=edited(
            edit(f"{UPGRADE}.waves.model.Wave.full", "self._count >= self._limits.together", "False"),
            edit(f"{UPGRADE}.waves.drain_selection._covered", "min(most, limits.per_zone.get(zone, most))", "100"),
            edit(
                f"{UPGRADE}.waves.drain_selection._with_offsets",
                "if new := next(iter((*mine, *strays)), None):",
                'if new := "-":',
            ),
        ),
        rules=frozenset({Rule.PACE}),
        scenario=ROLLING,
    ),
    Mutation(
        name="new nodes stay kept from Cluster Autoscaler",
        story="annotates new nodes and never takes the annotation off",
        breaks=edited(
            edit(
                "leeward.workflow.scale_down_protection.release",
                "kubernetes.annotate(node, {SCALE_DOWN_DISABLED: None, KEPT_FOR: None})",
                "pass",
            )
        ),
        rules=frozenset({Rule.LIFTED}),
        scenario=ROLLING,
    ),
    Mutation(
        name="a launch of an upgrade that is offset is passed on again",
        story="passes on every launch whose old node has ended",
        breaks=edited(
            edit(f"{UPGRADE}.capacity_ledger._offset", "if settlement == Offset(instance=old):", "if False:")
        ),
        rules=frozenset({Rule.DECREMENT, Rule.SIZE, Rule.DEBT}),
        scenario=ROLLING,
    ),
    Mutation(
        name="an upgrade ends with launches that no node has offset",
        story="ends as soon as the last old node is gone",
        breaks=edited(
            edit(f"{UPGRADE}.completion.wait_for_size", "if record.ahead or record.raised:", "if False:"),
            edit(f"{UPGRADE}.completion.wait_for_size", "observation.group.desired <= record.desired", "True"),
            edit(f"{UPGRADE}.completion.request_offsets", "max(observation.group.desired - record.desired, 0)", "0"),
            edit(f"{UPGRADE}.completion.request_offsets", "if not requested:", "if True:"),
            edit(
                f"{UPGRADE}.completion.request_offsets", "request_offset(record, new, by, observation, ports)", "pass"
            ),
        ),
        rules=frozenset({Rule.DEBT, Rule.SIZE}),
        scenario=ROLLING,
    ),
    Mutation(
        name="an upgrade compares launch templates and not their versions",
        story="looks only whether the template is the same",
        breaks=edited(
            edit(
                f"{UPGRADE}.members._by_record",
                "is_template(have, wanted) and have.version == wanted.version",
                "is_template(have, wanted)",
            )
        ),
        rules=frozenset({Rule.TARGET}),
        scenario=ROLLING,
    ),
    Mutation(
        name="a stopped upgrade keeps what it has changed in the group",
        story="relies on the last step of the execution, which an operator's stop skips",
        breaks=edited(
            edit(f"{UPGRADE}.reconciler._restored", "restore_group(record, ports) if record.suspended else", ""),
            edit(
                f"{UPGRADE}.reconciler.handle_failed_execution",
                'restore_group(_stopped(record, f"ended with {status}", ports.clock), ports)',
                '_stopped(record, f"ended with {status}", ports.clock)',
            ),
        ),
        rules=frozenset({Rule.RESTORED}),
        scenario=ROLLING,
    ),
    Mutation(
        name="a launch of an upgrade whose answer was lost is asked for with another token",
        story="makes the client token from the time",
        breaks=edited(
            edit(
                f"{UPGRADE}.surge.orders.launch_ordered",
                "launch_token(record, number)",
                "f'{launch_token(record, number)}-{ports.clock.now():%H%M%S}'",
            )
        ),
        rules=frozenset({Rule.SIZE, Rule.DEBT, Rule.LAUNCH, Rule.LEAK, Rule.RESTORED}),
        scenario=ROLLING_HARSH,
    ),
)
