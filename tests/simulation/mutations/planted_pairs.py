"""Planted builds that show with two of a kind alone: two dates, two policies, two Regions, two holds, two passes."""

from tests.simulation.mutations.editing import edit
from tests.simulation.mutations.plant import Planted

RECONCILE = "leeward.reconcile"

OF_PAIRS = (
    Planted(
        name="each generation of spot nodes is replaced",
        story="follows every rebalance recommendation",
        edits=(edit("leeward.interruption.decide._rebalance", "< YOUNG:", "< timedelta():"),),
        tests=("tests/unit/interruption/test_decide.py",),
    ),
    Planted(
        name="a recommendation says nothing about capacity",
        story="launches where EC2 has just advised against it",
        edits=(
            edit(
                "leeward.interruption.decide._unavailable",
                "isinstance(message, SpotInterruption | RebalanceRecommendation)",
                "isinstance(message, SpotInterruption)",
            ),
        ),
        tests=("tests/unit/interruption/test_decide.py", "tests/handlers/interruption/test_messages.py"),
    ),
    Planted(
        name="a record hides a Capacity Block's end",
        story="takes any termination of the instance, also one of last week, for the block's own",
        edits=(
            edit(
                f"{RECONCILE}.scheduled_events._block_is_due",
                'not (record is not None and record.knows(f"{block.event_id}#{instance}"))',
                "record is None",
            ),
        ),
        tests=("tests/unit/reconcile/test_capacity_blocks.py",),
    ),
    Planted(
        name="a closed record hides a Capacity Block's end",
        story="claims no instance that was returned to service",
        edits=(
            edit(
                f"{RECONCILE}.scheduled_events.drain_capacity_blocks",
                "if instance is not None and not instance.ended:",
                "if instance is not None and not instance.ended and ports.claims.read(name) is None:",
            ),
        ),
        tests=("tests/unit/reconcile/test_capacity_blocks.py",),
    ),
    Planted(
        name="a closed record hides scheduled maintenance",
        story="claims no instance that was returned to service",
        edits=(
            edit(
                f"{RECONCILE}.scheduled_events._is_known",
                "return any(",
                "return (record is not None and record.status is not Status.OPEN) or any(",
            ),
        ),
        tests=("tests/unit/reconcile/test_scheduled_events.py",),
    ),
    Planted(
        name="evacuation overwrites recorded sizes",
        story="records the sizes of each pass",
        edits=(
            edit(
                f"{RECONCILE}.evacuations._prepare",
                "{**sizes, **evacuation.sizes}",
                "{**evacuation.sizes, **sizes}",
            ),
        ),
        tests=("tests/unit/reconcile/test_evacuations.py",),
    ),
    Planted(
        name="evacuation forgets what it has suspended",
        story="records the groups that balance their zones at each pass",
        edits=(
            edit(
                f"{RECONCILE}.evacuations._prepare",
                "tuple(sorted({*evacuation.suspended, *suspended}))",
                "tuple(sorted(suspended)) or evacuation.suspended",
            ),
        ),
        tests=("tests/unit/reconcile/test_evacuations.py",),
    ),
    Planted(
        name="a blocked group switches the alarms of all off",
        story="keeps the blocks that are there already",
        edits=(
            edit(
                "leeward.disruption.observation.with_alarms",
                "{**held, **snapshot.blocked_groups}) if held",
                "snapshot.blocked_groups or held) if held",
            ),
        ),
        tests=("tests/unit/disruption/test_alarms.py",),
    ),
    Planted(
        name="the earlier of two dates of a reboot ends the wait",
        story="takes the first date that EC2 announced",
        edits=(edit("leeward.termination.reboot._starts", "return max(", "return min("),),
        tests=("tests/unit/termination/test_ec2_reboot.py",),
    ),
    Planted(
        name="an autoshift that is not applied closes its zone",
        story="takes every autoshift for one in effect",
        edits=(
            edit(
                "leeward.model.zonal_shift.applied_shifts",
                'for raw in answer.get("autoshifts") or () if raw.get("appliedStatus") == APPLIED]',
                'for raw in answer.get("autoshifts") or ()]',
            ),
        ),
        tests=("tests/unit/model/test_zonal_shift.py",),
    ),
    Planted(
        name="one role in two Regions shares a session",
        story="keeps the clients of a role by its name",
        edits=(
            edit(
                "leeward.adapters.places.Accounts.clients_of",
                "key = cluster.member_role, cluster.region",
                'key = cluster.member_role, ""',
            ),
        ),
        tests=("tests/unit/accounts/test_places.py",),
    ),
    Planted(
        name="balancing is resumed under an open disruption run",
        story="asks upgrades alone whether they rely on the suspension",
        edits=(
            edit(
                f"{RECONCILE}.evacuations._in_use",
                "return disrupted | being_upgraded(names, ports)",
                "return being_upgraded(names, ports)",
            ),
        ),
        tests=("tests/unit/reconcile/test_evacuations.py",),
    ),
    Planted(
        name="the mildest minimumSavings counts",
        story="takes the smallest amount of several policies",
        edits=(
            edit(
                "leeward.disruption.savings.threshold",
                "max((rule.savings_per_hour for rule in rules)",
                "min((rule.savings_per_hour for rule in rules)",
            ),
        ),
        tests=("tests/unit/disruption/test_savings.py",),
    ),
    Planted(
        name="the mildest minimumSavings counts as a share",
        story="takes the smallest share of several policies",
        edits=(
            edit(
                "leeward.disruption.savings.threshold",
                "max((rule.savings_percent for rule in rules)",
                "min((rule.savings_percent for rule in rules)",
            ),
        ),
        tests=("tests/unit/disruption/test_savings.py",),
    ),
)
