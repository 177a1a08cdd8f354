"""Features by which one seed's world differs from the default world, each in a single respect.

A world with features takes no longer to simulate than one without. The command line draws them from the seed (`drawn`);
a test names those that it needs."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from enum import StrEnum
from random import Random
from typing import Any

from leeward.policy.document import ClusterPolicies, NodePolicy
from simulation import policy_features
from simulation.fault_rates import Faults
from simulation.fleets import Fleet, GroupPlan, HookPlan
from simulation.long_pods import with_long_pods
from simulation.opted_out import with_opt_outs


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
    SETTLE_AUTO = "settle time by what targets the nodes"  # some of the clusters have a Service with a node port

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
    EVACUATION = "evacuation"  # operators evacuate a zone now and then

    TABLE_AWAY = "the table is away"  # for minutes: DynamoDB refuses every call
    QUEUE_AWAY = "the queue is away"  # for minutes: SQS delivers nothing
    CONCURRENCY_AWAY = "no concurrency is left"  # for minutes: Lambda starts no function
    LATE_MESSAGES = "messages are hours late"
    LONG_PODS = "pods with a grace of an hour and beyond any bound"
    OPTED_OUT = "pods opt out of disruption"  # for good or for a while
    BOOT_DEATHS = "instances end in their boot"
    POLICIES_LOST = "policies are removed and narrowed"
    GROUPS_DELETED = "groups are deleted"
    TEMPLATES_DELETED = "launch templates are deleted"
    LATE_PODS = "pods are bound between two steps"
    LIFTED = "operators lift taints and cordons"
    CANCELED = "maintenance is canceled"
    LIMITS_CHANGE = "MinSize and zones of groups change"
    REFRESHES = "instance refreshes"
    REPLICAS_CHANGE = "an HPA scales workloads"
    OLD_CACHE = "the API server's cache stands still"
    KARPENTER = "Karpenter's nodes beside"
    CLOCKS_CHANGE = "clocks change"  # an hour is skipped or repeated, in which windows and freezes lie
    TOKENS_REFUSED = "tokens are refused"  # sessions are revoked, and clocks are minutes off
    CLUSTER_DELETED = "the cluster is deleted"  # of two clusters the second one
    TWO_VERSIONS = "two versions of Leeward at once"  # during updates of the stack

    TWO_CLUSTERS = "two clusters"  # served by one deployment, each with its own API
    ACCOUNTS = "clusters in several accounts"  # two clusters, of which one is in another account and Region
    WORKERS = "several workers"  # functions handle several records, nodes or clusters in threads


INDEPENDENT: Mapping[Feature, float] = {
    Feature.TOKEN_BUCKETS: 0.1,
    Feature.MANAGED: 0.1,
    Feature.ALIASES: 0.1,
    Feature.SETTLE_AUTO: 0.15,
    Feature.AUTOMATIC: 0.1,
    Feature.ALARMS: 0.15,
    Feature.BLOCKS: 0.1,
    Feature.CONDITIONS: 0.1,
    Feature.WORKERS: 0.5,
    Feature.TWO_CLUSTERS: 0.1,
    Feature.ACCOUNTS: 0.05,
    Feature.ZONAL_SHIFT: 0.1,
    Feature.EVACUATION: 0.08,
    Feature.TABLE_AWAY: 0.06,
    Feature.QUEUE_AWAY: 0.06,
    Feature.CONCURRENCY_AWAY: 0.06,
    Feature.LATE_MESSAGES: 0.06,
    Feature.LONG_PODS: 0.06,
    Feature.OPTED_OUT: 0.1,
    Feature.BOOT_DEATHS: 0.12,
    Feature.POLICIES_LOST: 0.08,
    Feature.GROUPS_DELETED: 0.06,
    Feature.TEMPLATES_DELETED: 0.06,
    Feature.LATE_PODS: 0.08,
    Feature.LIFTED: 0.08,
    Feature.CANCELED: 0.08,
    Feature.LIMITS_CHANGE: 0.06,
    Feature.REFRESHES: 0.06,
    Feature.REPLICAS_CHANGE: 0.08,
    Feature.OLD_CACHE: 0.06,
    Feature.KARPENTER: 0.06,
    Feature.CLOCKS_CHANGE: 0.06,
    Feature.TOKENS_REFUSED: 0.06,
    Feature.CLUSTER_DELETED: 0.04,
    Feature.TWO_VERSIONS: 0.06,
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
COUNTS = (0, 1, 2, 2, 3, 3, 4)  # numbers of weighted features, one entry is drawn
REFUSALS: Mapping[Feature, str] = {
    Feature.LAUNCH_DENIED: "AccessDenied: not authorized to perform autoscaling:LaunchInstances",
    Feature.LAUNCH_UNKNOWN: "UnknownOperation: this botocore has no LaunchInstances",
    Feature.LAUNCH_REFUSED: "ValidationError: the mixed instances policy has mixed purchase options",
}
RATES: Mapping[Feature, Mapping[str, Any]] = {
    Feature.HANGING_API: {"api_hangs_per_hour": 3},
    Feature.SLOW_API: {"api_slow_per_hour": 4},
    Feature.FORBIDDEN: {"forbidden_seconds": 2, "api_outages_per_hour": 3},
    Feature.TOKEN_BUCKETS: {"token_buckets": True},
    Feature.WEBHOOK: {"webhooks_per_hour": 4},
    Feature.TABLE_AWAY: {"table_outages_per_hour": 3},
    Feature.QUEUE_AWAY: {"queue_outages_per_hour": 3},
    Feature.CONCURRENCY_AWAY: {"concurrency_outages_per_hour": 3},
    Feature.LATE_MESSAGES: {"very_late_event": 0.08},
}
"""Rates of faults that a feature sets."""
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
    for feature in sorted(features & RATES.keys()):
        faults = replace(faults, **RATES[feature])
    return faults


def with_fleet(fleet: Fleet, features: frozenset[Feature], random: Random) -> Fleet:
    """Apply the features to groups and policies. Each group and each policy draws from its own random stream."""
    groups = [_group(group, features, Random(f"{random.random()}")) for group in fleet.groups]
    policies = fleet.policies
    for feature in sorted(features & POLICIES.keys()):
        changed = [POLICIES[feature](policy, Random(f"{random.random()}")) for policy in policies.policies]
        policies = replace(policies, policies=tuple(changed))
    if Feature.SETTLE_AUTO in features and random.random() < 0.5:
        fleet = replace(fleet, workloads=(*fleet.workloads, policy_features.NODE_PORT))
    if Feature.LONG_PODS in features:
        fleet = replace(fleet, workloads=with_long_pods(fleet.workloads, Random(f"{random.random()}")))
    if Feature.OPTED_OUT in features:
        fleet = replace(fleet, workloads=with_opt_outs(fleet.workloads, Random(f"{random.random()}/opt-outs")))
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


POLICIES: Mapping[Feature, Callable[[NodePolicy, Random], NodePolicy]] = {
    Feature.FINALIZER: policy_features.finalizer,
    Feature.REPAIR: policy_features.repair,
    Feature.BUDGETS: policy_features.budgets,
    Feature.LONG_GRACE: policy_features.grace,
    Feature.REFUSING: policy_features.refusing,
    Feature.ALARMS: policy_features.alarms,
    Feature.AUTOMATIC: policy_features.automatic,
    Feature.CONDITIONS: policy_features.conditions,
    Feature.SETTLE_AUTO: policy_features.settle_auto,
}
