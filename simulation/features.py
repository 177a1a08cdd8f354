"""Features by which one seed's world differs from the default world, each in a single respect.

A world with features takes no longer to simulate than one without. The command line draws them from the seed (`drawn`);
a test names those that it needs."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from enum import StrEnum
from random import Random
from typing import Any

from leeward.policy.document import Budget, ClusterPolicies, DrainPolicy, NodePolicy, OnAlarm, OnShift, Window
from leeward.policy.repair import RepairAction, RepairCondition
from simulation.fault_rates import Faults
from simulation.fleets import REGION, Fleet, GroupPlan, HookPlan


class Feature(StrEnum):
    """Respect in which a world differs. The blocks: faults, the fleet, its policies, events and neighbours, and the
    environment of the functions.
    """

    HANGING_API = "hanging API"  # accepts requests and answers none of them, or lists alone
    SLOW_API = "slow API"
    FORBIDDEN = "403 after an outage"
    WEBHOOK = "failing webhook"
    ONLY_KUBERNETES_FAILS = "only Kubernetes fails"
    NO_FAULTS = "no faults"
    TOKEN_BUCKETS = "token buckets"  # EC2 and Auto Scaling limit the rate of calls, which other clients use as well

    TINY = "tiny fleet"
    MIN_SIZE = "groups at their MinSize"
    MAX_SIZE = "groups at their MaxSize"
    QUICK_BOOT = "quick boot"
    SLOW_BOOT = "slow boot"
    TWO_HOOKS = "two hooks of ours"
    SHORT_HOOK = "short hook"
    LAUNCH_HOOK = "launch hook"
    ABANDONING_HOOK = "another team's hook abandons"
    MIXED_INSTANCES = "mixed instances"
    WARM_POOL = "warm pool"
    WARM_LAUNCHES = "warm pool that launches again"
    LAUNCH_DENIED = "LaunchInstances is denied"
    LAUNCH_UNKNOWN = "LaunchInstances is unknown"
    LAUNCH_REFUSED = "LaunchInstances is refused"
    PROTECTED = "scale-in protection"
    STANDBY = "standby"
    LATE_PROVIDER_ID = "provider id comes late"
    SAME_NAMES = "node names are used again"

    FINALIZER = "finalizer"
    REPAIR = "repair with short limits"
    BUDGETS = "budgets with windows and reasons"  # one of them for a zone
    LONG_GRACE = "grace period beyond the time-out"
    REFUSING = "unmanaged pods and local data are refused"
    POLICIES_CHANGE = "policies change"

    OTHER_DEPLOYMENT = "another deployment on the cluster"
    FLAGS = "drains and upgrades with flags"
    MAINTENANCE_SPARES = "maintenance that spares the instance"
    RESERVATIONS = "capacity reservations are taken back"
    MANAGED = "managed node groups"  # EKS owns some of the groups, and upgrades them
    BLOCKS = "capacity blocks end"  # the warnings about some of them are lost
    CONDITIONS = "hardware fails and is rebooted"  # conditions of the node monitoring agent
    ALARMS = "alarms ring"  # CloudWatch alarms that policies name; they are deleted now and then
    ALIASES = "images behind an alias"  # SSM parameters whose image changes
    ZONAL_SHIFT = "zonal shift"  # ARC shifts traffic away from a zone now and then, and some of its events are lost
    AUTOMATIC = "upgrades start by themselves"  # to images behind an alias
    PRESCALE = "prescale"  # policies launch capacity for the pods of a shifted zone
    EVACUATION = "evacuation"  # operators evacuate a zone now and then

    TWO_CLUSTERS = "two clusters"  # served by one deployment, each with its own API
    ACCOUNTS = "clusters in several accounts"  # two clusters, of which one is in another account and Region
    WORKERS = "several workers"  # functions handle several records, nodes or clusters in threads


INDEPENDENT: Mapping[Feature, float] = {
    Feature.TOKEN_BUCKETS: 0.1,
    Feature.MANAGED: 0.1,
    Feature.ALIASES: 0.1,
    Feature.AUTOMATIC: 0.1,
    Feature.ALARMS: 0.15,
    Feature.BLOCKS: 0.1,
    Feature.CONDITIONS: 0.1,
    Feature.WORKERS: 0.5,
    Feature.TWO_CLUSTERS: 0.1,
    Feature.ACCOUNTS: 0.05,
    Feature.ZONAL_SHIFT: 0.1,
    Feature.PRESCALE: 0.5,  # of use with zonal shifts alone
    Feature.EVACUATION: 0.08,
}
"""Feature -> probability for one seed. Each is drawn from its own random stream: to add one here changes no other
feature of any seed."""
WEIGHTS: Mapping[Feature, float] = {
    **dict.fromkeys((feature for feature in Feature if feature not in INDEPENDENT), 2.0),
    Feature.HANGING_API: 5,
    Feature.WEBHOOK: 5,
    Feature.ONLY_KUBERNETES_FAILS: 4,
    Feature.TWO_HOOKS: 4,
    Feature.FLAGS: 4,
}
"""Relative probability of each other feature."""
SECOND_CLUSTER = frozenset({Feature.TWO_CLUSTERS, Feature.ACCOUNTS})
ZONES = tuple(f"{REGION}{letter}" for letter in "abc")  # those that every fleet has
OPEN_EVERY, OPEN_FOR = 40, 20  # minutes of an hour: windows of automatic upgrades
COUNTS = (0, 1, 2, 2, 3, 3, 4)  # numbers of weighted features, one entry is drawn
REFUSALS: Mapping[Feature, str] = {
    Feature.LAUNCH_DENIED: "AccessDenied: not authorized to perform autoscaling:LaunchInstances",
    Feature.LAUNCH_UNKNOWN: "UnknownOperation: this botocore has no LaunchInstances",
    Feature.LAUNCH_REFUSED: "ValidationError: the mixed instances policy has mixed purchase options",
}
BOOT_TIMES: tuple[tuple[Feature, tuple[float, float], tuple[float, float]], ...] = (
    (Feature.QUICK_BOOT, (0.5, 2), (0.5, 2)),
    (Feature.SLOW_BOOT, (60, 400), (10, 120)),
)
"""Feature, then the least and the most seconds for the boot of an instance, and for its node to join."""


def drawn(seed: int) -> frozenset[Feature]:
    """Return the features of a seed: the independent ones, and at most four weighted ones (none in one of seven)."""
    random, features = Random(f"{seed}/features"), set[Feature]()
    for _ in range(random.choice(COUNTS)):
        features.add(random.choices(tuple(WEIGHTS), tuple(WEIGHTS.values()))[0])
    features.update(entry for entry, chance in INDEPENDENT.items() if Random(f"{seed}/{entry.value}").random() < chance)
    return frozenset(features)


def with_faults(faults: Faults, features: frozenset[Feature]) -> Faults:
    """Return the fault rates of a world. With NO_FAULTS, only the faults of the other features remain."""
    if Feature.NO_FAULTS in features:
        faults = Faults.none()
    elif Feature.ONLY_KUBERNETES_FAILS in features:
        faults = replace(faults.of_kubernetes(), api_hangs_per_hour=3)
    elif Feature.SHORT_HOOK in features:  # otherwise a step that hangs until its time-out would outlast the hook
        faults = faults.of_kubernetes()
    if Feature.HANGING_API in features:
        faults = replace(faults, api_hangs_per_hour=3)
    if Feature.SLOW_API in features:
        faults = replace(faults, api_slow_per_hour=4)
    if Feature.FORBIDDEN in features:
        faults = replace(faults, forbidden_seconds=2, api_outages_per_hour=3)
    if Feature.TOKEN_BUCKETS in features:
        faults = replace(faults, token_buckets=True)
    if Feature.WEBHOOK in features:
        faults = replace(faults, webhooks_per_hour=4)
    return faults


def with_fleet(fleet: Fleet, features: frozenset[Feature], random: Random) -> Fleet:
    """Apply the features to groups and policies. Each group and each policy draws from its own random stream."""
    groups = [_group(group, features, Random(f"{random.random()}")) for group in fleet.groups]
    policies = fleet.policies
    for feature in sorted(features & POLICIES.keys()):
        changed = [POLICIES[feature](policy, Random(f"{random.random()}")) for policy in policies.policies]
        policies = replace(policies, policies=tuple(changed))
    return replace(fleet, groups=tuple(groups), policies=_with_hooks(policies, features))


def _group(group: GroupPlan, features: frozenset[Feature], random: Random) -> GroupPlan:
    changes: dict[str, Any] = {}
    if Feature.MIN_SIZE in features:
        changes["minimum"] = max(group.size - random.choice((0, 0, 1)), 0)
    if Feature.MAX_SIZE in features:
        changes["maximum"] = group.size
    for feature, boots, joins in BOOT_TIMES:
        if feature in features:
            changes |= {"boots": boots, "joins": joins}
    if group.selected:
        changes["hooks"] = tuple(_hooks(features, random))
    if Feature.ABANDONING_HOOK in features:
        changes |= {"foreign_hook": True, "foreign_abandons": True}
    if Feature.MIXED_INSTANCES in features:
        changes["types"] = tuple(random.sample(("m5.large", "m5.xlarge", "c5.xlarge", "r5.large"), 3))
    for refused in sorted(features & REFUSALS.keys()):
        changes["refuses"] = REFUSALS[refused]
    if group.selected and not group.spot:  # groups that launch spot instances can have no warm pool
        changes |= _warm_pool(features, random)
    return replace(group, **changes)


def _warm_pool(features: frozenset[Feature], random: Random) -> dict[str, Any]:
    if Feature.WARM_LAUNCHES in features:
        return {"reuses": True, "launches_warm": True}
    return {"reuses": random.random() < 0.6} if Feature.WARM_POOL in features else {}


def _hooks(features: frozenset[Feature], random: Random) -> list[HookPlan]:
    hooks = []
    if Feature.TWO_HOOKS in features:
        hooks.append(HookPlan(name="our-second", timeout=random.choice((120, 300, 900))))
    if Feature.SHORT_HOOK in features:
        hooks.append(HookPlan(name="our-short", timeout=60))
    if Feature.LAUNCH_HOOK in features:
        hooks.append(HookPlan(name="our-launch", timeout=random.choice((300, 600)), launching=True))
    return hooks


def _with_hooks(policies: ClusterPolicies, features: frozenset[Feature]) -> ClusterPolicies:
    names = ("our-second", "our-short", "our-launch")
    wanted = features & {Feature.TWO_HOOKS, Feature.SHORT_HOOK, Feature.LAUNCH_HOOK}
    if not wanted:
        return policies
    with_hooks = [
        replace(policy, interruption=replace(policy.interruption, hooks=names)) for policy in policies.policies
    ]
    return replace(policies, policies=tuple(with_hooks))


def _finalizer(policy: NodePolicy, _: Random) -> NodePolicy:
    return replace(policy, finalizer=True)


def _repair(policy: NodePolicy, random: Random) -> NodePolicy:
    limits = replace(policy.repair, not_ready_after=timedelta(minutes=random.choice((2, 5))))
    return replace(policy, repair=limits)


def _conditions(policy: NodePolicy, random: Random) -> NodePolicy:
    """Let broken hardware be rebooted soon, and a broken kernel be replaced. Half wait for the reboots of EC2."""
    soon = timedelta(minutes=random.choice((2, 5)))
    conditions = (
        RepairCondition(type="AcceleratedHardwareReady", after=soon, action=RepairAction.REBOOT),
        RepairCondition(type="KernelReady", after=soon),
    )
    most = random.choice((policy.repair.max_unhealthy, 60))
    limits = replace(policy.repair, max_unhealthy=most, max_unhealthy_percent=True)
    waits = replace(policy.interruption, waits_for_reboot=random.random() < 0.5)
    return replace(policy, repair=replace(limits, conditions=conditions), interruption=waits)


def _budgets(policy: NodePolicy, random: Random) -> NodePolicy:
    window = Window(schedule="*/30 * * * *", duration=timedelta(minutes=10))
    budgets = (
        Budget(nodes=random.choice((10, 50))),
        Budget(nodes=1, percent=False, reasons=("Drifted", "Upgrade")),
        Budget(nodes=0, percent=False, window=window, reasons=("Underutilized",)),
        Budget(nodes=random.choice((1, 50)), percent=random.random() < 0.5, zone=random.choice(ZONES)),
    )
    return replace(policy, disruption=replace(policy.disruption, budgets=budgets))


def _grace(policy: NodePolicy, random: Random) -> NodePolicy:
    grace = policy.drain.timeout + timedelta(minutes=random.choice((5, 15)))
    return _with_drain(policy, termination_grace_period=grace, force=False)


def _refusing(policy: NodePolicy, random: Random) -> NodePolicy:
    return _with_drain(policy, evict_unmanaged=random.random() < 0.5, delete_local_data=random.random() < 0.5)


def _with_drain(policy: NodePolicy, **changes: Any) -> NodePolicy:
    drain: DrainPolicy = replace(policy.drain, **changes)
    return replace(policy, drain=drain)


def _alarms(policy: NodePolicy, random: Random) -> NodePolicy:
    """Let the policy's alarm hold its upgrades, or roll them back, and its runs."""
    names = (alarm_of(policy),)
    update = replace(policy.update, alarms=names, on_alarm=random.choice(tuple(OnAlarm)))
    return replace(policy, update=update, disruption=replace(policy.disruption, alarms=names))


def _automatic(policy: NodePolicy, random: Random) -> NodePolicy:
    """Let the policy upgrade its groups when their image moves, by some policies in windows alone. Its runs leave
    drifted nodes as they are.
    """
    window = Window(schedule=f"*/{OPEN_EVERY} * * * *", duration=timedelta(minutes=OPEN_FOR))
    windows = (window,) if random.random() < 0.7 else ()
    update = replace(policy.update, auto=timedelta(minutes=random.choice((5, 15))), windows=windows)
    return replace(policy, update=update, disruption=replace(policy.disruption, drift=False))


def _prescale(policy: NodePolicy, _: Random) -> NodePolicy:
    return replace(policy, on_shift=OnShift.PRESCALE)


def alarm_of(policy: NodePolicy) -> str:
    """Return the name of the alarm of a policy."""
    return f"errors-{policy.name}"


POLICIES: Mapping[Feature, Callable[[NodePolicy, Random], NodePolicy]] = {
    Feature.FINALIZER: _finalizer,
    Feature.REPAIR: _repair,
    Feature.BUDGETS: _budgets,
    Feature.LONG_GRACE: _grace,
    Feature.REFUSING: _refusing,
    Feature.ALARMS: _alarms,
    Feature.AUTOMATIC: _automatic,
    Feature.CONDITIONS: _conditions,
    Feature.PRESCALE: _prescale,
}
