"""Any valid policy, for properties."""

from dataclasses import replace
from datetime import timedelta

from hypothesis import strategies as st

from leeward.policy.document import (
    NO_DISRUPTION,
    Budget,
    Canary,
    ClusterSettings,
    DesiredNode,
    DesiredTaint,
    DisruptionPolicy,
    DisruptionReason,
    DrainPolicy,
    GroupSelector,
    Heartbeat,
    InterruptionPolicy,
    NodePolicy,
    NodeRequirement,
    OnAlarm,
    Rebalance,
    TemplatePolicy,
    UpdatePolicy,
    Webhook,
    WebhookFormat,
    Window,
)
from leeward.policy.parse import refers
from leeward.policy.repair import NO_REPAIR, RepairAction, RepairCondition, RepairPolicy
from leeward.policy.sections import CNI_VARIABLES


def free_text(min_size=0, max_size=5):
    """Text without the opening of a reference, which every document refuses."""
    return st.text(min_size=min_size, max_size=max_size).filter(lambda text: not refers(text))


texts = free_text(1, 8)
lists = st.lists(texts, max_size=3, unique=True).map(tuple)
maps = st.dictionaries(texts, free_text(), max_size=3)
names = st.from_regex(r"[a-z0-9]([a-z0-9.-]{0,10}[a-z0-9])?", fullmatch=True)


def durations(low=0, high=10**9):
    return st.integers(low * 1000, high * 1000).map(lambda ms: timedelta(milliseconds=ms))


windows = st.builds(
    Window,
    schedule=st.sampled_from(["0 9 * * mon-fri", "@daily", "*/5 1-3 * jan,feb *", "0 0 L * *"]),
    duration=durations(1),
    time_zone=st.sampled_from(["UTC", "Europe/Berlin", "America/New_York"]),
)
window_lists = st.lists(windows, max_size=2).map(tuple)
shares = st.one_of(st.tuples(st.integers(0, 100), st.just(True)), st.tuples(st.integers(0, 999), st.just(False)))
taints = st.lists(
    st.builds(
        DesiredTaint,
        key=texts,
        effect=st.sampled_from(["NoSchedule", "PreferNoSchedule", "NoExecute"]),
        value=free_text(0, 4),
    ),
    max_size=3,
    unique_by=lambda taint: (taint.key, taint.effect),
).map(tuple)


@st.composite
def budgets(draw):
    nodes, percent = draw(shares)
    return Budget(
        nodes=nodes,
        percent=percent,
        window=draw(st.none() | windows),
        reasons=tuple(draw(st.lists(st.sampled_from([reason.value for reason in DisruptionReason]), unique=True))),
        zone=draw(st.none() | texts),
    )


@st.composite
def requirements(draw):
    operator = draw(st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]))
    some = st.lists(texts, min_size=1, max_size=3, unique=True)
    number = st.integers(0, 10**6).map(lambda n: [str(n)])
    values = draw({"In": some, "NotIn": some, "Gt": number, "Lt": number}.get(operator, st.just([])))
    minimum = draw(st.none() | st.integers(1, len(values))) if operator == "In" else None
    return NodeRequirement(key=draw(texts), operator=operator, values=tuple(values), min_values=minimum)


@st.composite
def updates(draw):
    percentage = draw(st.none() | st.integers(1, 100))
    return UpdatePolicy(
        max_unavailable=draw(st.integers(1, 100)) if percentage is None else None,
        max_unavailable_percentage=percentage,
        strategy=draw(st.sampled_from(["DEFAULT", "MINIMAL", "INCREMENTAL"])),
        order=draw(st.sampled_from(["waves", "random", "zone", "age"])),
        terminate=draw(st.sampled_from(["last", "first"])),
        canary=draw(st.builds(Canary, nodes=st.integers(0, 9), bake=durations())),
        alarms=draw(lists),
        on_alarm=draw(st.sampled_from(OnAlarm)),
        auto=draw(st.none() | durations()),
        windows=draw(window_lists),
    )


conditions = st.lists(
    st.builds(
        RepairCondition,
        type=free_text(1, 4).filter(lambda name: name != "Ready"),
        status=st.sampled_from(["True", "False", "Unknown"]),
        after=durations(),
        action=st.sampled_from(list(RepairAction)),
        reason=free_text(0, 4),
    ),
    max_size=3,
    unique_by=lambda condition: (condition.type, condition.status, condition.reason),
).map(tuple)


@st.composite
def repairs(draw):
    nodes, percent = draw(shares)
    present, ready, impaired = draw(st.tuples(st.booleans(), durations(), durations()))
    if not present:
        return NO_REPAIR
    return RepairPolicy(
        not_ready_after=ready,
        impaired_after=impaired,
        max_unhealthy=nodes,
        conditions=draw(conditions),
        imports_from_eks=draw(st.booleans()),
        max_unhealthy_percent=percent,
    )


selectors = st.builds(GroupSelector, groups=lists, tags=maps).filter(lambda selector: selector.groups or selector.tags)
interruptions = st.builds(
    InterruptionPolicy,
    enabled=st.booleans(),
    rebalance=st.sampled_from(Rebalance),
    waits_for_reboot=st.booleans(),
    heartbeat=st.builds(Heartbeat, interval=st.none() | durations(30, 3600), until=durations(60, 172_800)).filter(
        lambda heartbeat: heartbeat.interval is None or heartbeat.interval <= heartbeat.timeout / 2
    ),
    hooks=lists,
)
drains = st.builds(
    DrainPolicy,
    timeout=durations(),
    force=st.booleans(),
    termination_grace_period=st.none() | durations(),
    settle=st.none() | durations(),
    deregistration_timeout=durations(),
    volume_detach_timeout=durations(),
    evict_unmanaged=st.booleans(),
    delete_local_data=st.booleans(),
    surge_single_replicas=st.booleans(),
)
disruptions = st.builds(
    DisruptionPolicy,
    consolidation_policy=st.sampled_from(["WhenEmptyOrUnderutilized", "WhenEmpty", "Balanced", "Never"]),
    consolidate_after=st.none() | durations(),
    expire_after=st.none() | durations(1),
    expire_jitter=st.integers(0, 50),
    drift=st.booleans(),
    savings_per_hour=st.floats(0, 100),
    savings_percent=st.floats(0, 100),
    cooldown=durations(),
    alarms=lists,
    spot_to_spot=st.booleans(),
    spot_to_spot_minimum_types=st.integers(1, 99),
    budgets=st.lists(budgets(), max_size=3).map(tuple),
    do_not_disrupt=st.booleans(),
).map(lambda rules: rules if rules.expire_after else replace(rules, expire_jitter=0)) | st.just(NO_DISRUPTION)


def node_policies():
    return st.builds(
        NodePolicy,
        name=names,
        selector=selectors,
        interruption=interruptions,
        drain=drains,
        update=updates(),
        requirements=st.lists(requirements(), max_size=2).map(tuple),
        node=st.builds(DesiredNode, labels=maps, annotations=maps, taints=taints, startup_taints=taints),
        disruption=disruptions,
        finalizer=st.booleans(),
        repair=repairs(),
        cni=st.dictionaries(st.sampled_from(CNI_VARIABLES), free_text(0, 4), max_size=3),
        template=st.builds(TemplatePolicy, precedence=st.sampled_from(["asg-tags", "eks-api"]), ttl=durations()),
    )


def cluster_settings():
    return st.builds(
        ClusterSettings,
        name=st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_-]{0,12}", fullmatch=True),
        interruption=st.booleans(),
        drift=st.booleans(),
        consolidation=st.booleans(),
        expiration=st.booleans(),
        emptiness=st.booleans(),
        freeze=window_lists,
        webhook=st.none()
        | st.builds(
            Webhook,
            url=st.just("https://hooks.example.com/T1"),
            format=st.sampled_from([WebhookFormat.JSON, WebhookFormat.SLACK]),
            secret_arn=st.just("arn:aws:secretsmanager:eu-west-1:111122223333:secret:hook-AbCdEf"),
            secret_version=st.none() | st.just("EXAMPLE1-90ab-cdef-fedc-ba987EXAMPLE"),
            header=st.sampled_from(["Leeward-Secret", "Authorization"]),
        )
        | st.just(Webhook(url="https://hooks.example.com/T1")),
    )
