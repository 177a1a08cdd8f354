"""The keys of `kind: NodePolicy` under `spec`: names, ranges, aliases and contradictions, section by section.

Defaults come from the dataclasses in `document.py`; `documents` as a whole are taken apart in `parse.py`."""

import re
from datetime import timedelta
from typing import Any

from leeward.policy.document import (
    Budget,
    Canary,
    DesiredNode,
    DesiredTaint,
    DisruptionPolicy,
    DrainPolicy,
    Heartbeat,
    InterruptionPolicy,
    Reason,
    Rebalance,
    RepairPolicy,
    Requirement,
    Selector,
    TemplatePolicy,
    UpdatePolicy,
    Window,
)
from leeward.policy.fields import NEVER, Problems, Section, shown, whole_number
from leeward.policy.schedule import parse_schedule, zone

CNI_VARIABLES = (  # what decides how many IPs a node takes, and whether that can be counted at all
    "WARM_ENI_TARGET",
    "WARM_IP_TARGET",
    "MINIMUM_IP_TARGET",
    "MAX_ENI",
    "WARM_PREFIX_TARGET",
    "AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG",
    "ENABLE_POD_ENI",
    "ENABLE_PREFIX_DELEGATION",
    "ENABLE_IPv4",
    "ENABLE_IPv6",
    "ENABLE_SUBNET_DISCOVERY",
)
CONSOLIDATION_POLICIES = ("WhenEmptyOrUnderutilized", "WhenEmpty", NEVER)
STRATEGIES = ("DEFAULT", "MINIMAL", "INCREMENTAL")
ORDERS = ("waves", "random", "zone", "age")
TERMINATE = ("last", "first")
PRECEDENCES = ("asg-tags", "eks-api")
OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
TAINT_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
SECOND = timedelta(seconds=1)
COUNT_OR_SHARE = "a count such as 5 or a share such as 10%, at most 100%"
_COUNT_OR_SHARE = re.compile(r"(\d{1,9})(%?)", re.ASCII)


def selector(spec: Section) -> Selector:
    """Which groups the policy is for; an empty selector would take every group, so it is refused."""
    with spec.section("selector") as section:
        groups, tags = section.texts("groups"), section.text_map("tags")
        if not section.has("groups") and not section.has("tags"):
            spec.refuse("selector", "groups or tags that choose Auto Scaling groups", "an empty selector")
        elif not groups and not tags:
            spec.refuse("selector", "at least one group or tag that can be read", "an empty selector")
        return Selector(groups=groups, tags=tags)


def interruption(spec: Section) -> InterruptionPolicy:
    """`spec.interruption`."""
    default = InterruptionPolicy()
    with spec.section("interruption") as section:
        return InterruptionPolicy(
            enabled=section.boolean("enabled", default.enabled),
            rebalance=Rebalance(section.word("rebalanceRecommendation", default.rebalance, tuple(Rebalance))),
            heartbeat=_heartbeat(section),
            hooks=section.texts("hooks"),
        )


def _heartbeat(interruption_section: Section) -> Heartbeat:
    with interruption_section.section("heartbeat") as section:
        return Heartbeat(
            interval=section.duration_or("interval", None, "auto", 30 * SECOND, 3600 * SECOND),
            until=section.duration("until", Heartbeat().until, 60 * SECOND, 172_800 * SECOND),
        )


def drain(spec: Section) -> DrainPolicy:
    """`spec.drain`."""
    default = DrainPolicy()
    with spec.section("drain") as section:
        return DrainPolicy(
            timeout=section.duration("timeout", default.timeout),
            force=section.boolean("force", default.force),
            termination_grace_period=section.duration("terminationGracePeriod", None),
            settle=section.duration("settle", default.settle),
            deregistration_timeout=section.duration("deregistrationTimeout", default.deregistration_timeout),
            volume_detach_timeout=section.duration("volumeDetachTimeout", default.volume_detach_timeout),
            evict_unmanaged=section.choice("unmanagedPods", default.evict_unmanaged, yes="evict", no="refuse"),
            delete_local_data=section.choice("localData", default.delete_local_data, yes="delete", no="refuse"),
            surge_single_replicas=section.choice(
                "singleReplicas", default.surge_single_replicas, yes="surge", no="evict"
            ),
        )


def update(spec: Section) -> UpdatePolicy:
    """`spec.update`; of the two maxima at most one may be set."""
    default = UpdatePolicy()
    with spec.section("update") as section:
        percentage = section.integer("maxUnavailablePercentage", None, 1, 100)
        count = section.integer("maxUnavailable", default.max_unavailable, 1, 100)
        if section.has("maxUnavailablePercentage") and section.has("maxUnavailable"):
            section.refuse("maxUnavailablePercentage", "only one of maxUnavailable and maxUnavailablePercentage")
        return UpdatePolicy(
            max_unavailable=None if section.has("maxUnavailablePercentage") else count,
            max_unavailable_percentage=percentage,
            strategy=section.word("strategy", default.strategy, STRATEGIES),
            order=section.word("order", default.order, ORDERS),
            terminate=section.word("terminate", default.terminate, TERMINATE),
            canary=_canary(section),
            windows=windows(section, "windows"),
        )


def _canary(update_section: Section) -> Canary:
    with update_section.section("canary") as section:
        return Canary(
            nodes=section.integer("nodes", Canary().nodes, 0),
            bake=section.duration("bake", Canary().bake),
            alarms=section.texts("alarms"),
        )


def requirements(spec: Section) -> tuple[Requirement, ...]:
    """`spec.requirements`, with what each operator asks of its values."""
    return tuple(_requirement(section) for section in spec.sections("requirements") or ())


def _requirement(entered: Section) -> Requirement:
    with entered as section:
        key = section.text("key", None)
        if not section.has("key"):
            section.refuse("key", "a node label's key")
        operator = section.word("operator", "Exists", OPERATORS)
        if not section.has("operator"):
            section.refuse("operator", f"one of {', '.join(OPERATORS)}")
        values = section.texts("values")
        minimum = section.integer("minValues", None, 1, 50)
        _check_values(section, operator, values)
        if minimum is not None and (operator not in {"In", "Exists"} or (operator == "In" and minimum > len(values))):
            section.refuse("minValues", "with operator In at most as many as values, or operator Exists")
        return Requirement(key=key or "", operator=operator, values=values, min_values=minimum)


def _check_values(section: Section, operator: str, values: tuple[str, ...]) -> None:
    if operator in {"Exists", "DoesNotExist"} and values:
        section.refuse("values", f"no values with operator {operator}")
    if operator in {"In", "NotIn"} and not values:
        section.refuse("values", f"at least one value with operator {operator}")
    if operator in {"Gt", "Lt"} and (len(values) != 1 or not re.fullmatch(r"\d{1,18}", values[0], re.ASCII)):
        section.refuse("values", f'one whole number in quotes with operator {operator}, such as ["4"]')


def node(spec: Section) -> DesiredNode:
    """`spec.node`, what drift compares with."""
    with spec.section("node") as section:
        return DesiredNode(
            labels=section.text_map("labels"),
            annotations=section.text_map("annotations"),
            taints=_taints(section, "taints"),
            startup_taints=_taints(section, "startupTaints"),
        )


def _taints(node_section: Section, key: str) -> tuple[DesiredTaint, ...]:
    taints: list[DesiredTaint] = []
    for entered in node_section.sections(key) or ():
        with entered as section:
            if not section.has("key"):
                section.refuse("key", "a taint's key")
            if not section.has("effect"):
                section.refuse("effect", f"one of {', '.join(TAINT_EFFECTS)}")
            taint = DesiredTaint(
                key=section.text("key", ""),
                value=section.read("value", "", _any_text, "text (in quotes, where YAML reads another type)"),
                effect=section.word("effect", TAINT_EFFECTS[0], TAINT_EFFECTS),
            )
            if any((taint.key, taint.effect) == (other.key, other.effect) for other in taints):
                section.refuse("key", "each pair of key and effect once")
            taints.append(taint)
    return tuple(taints)


def disruption(spec: Section) -> DisruptionPolicy:
    """`spec.disruption`, with Karpenter's older names in seconds."""
    default = DisruptionPolicy()
    with spec.section("disruption") as section:
        policy = section.word("consolidationPolicy", default.consolidation_policy, CONSOLIDATION_POLICIES)
        after = _with_alias(section, "consolidateAfter", "ttlSecondsAfterEmpty", default.consolidate_after, 0)
        expire = _with_alias(section, "expireAfter", "ttlSecondsUntilExpired", default.expire_after, 1)
        if policy == NEVER and section.has("ttlSecondsAfterEmpty"):
            section.refuse("ttlSecondsAfterEmpty", "nothing, as consolidationPolicy Never keeps empty nodes")
        per_hour, percent = _minimum_savings(section, default)
        spot, types = _spot_to_spot(section, default)
        return DisruptionPolicy(
            consolidation_policy=policy,
            consolidate_after=after,
            expire_after=expire,
            drift=section.boolean("drift", default.drift),
            savings_per_hour=per_hour,
            savings_percent=percent,
            cooldown=section.duration("cooldown", default.cooldown),
            spot_to_spot=spot,
            spot_to_spot_minimum_types=types,
            budgets=_budgets(section, default.budgets),
            do_not_disrupt=section.boolean("doNotDisrupt", default.do_not_disrupt),
        )


def _with_alias(section: Section, key: str, alias: str, default: timedelta | None, low: int) -> timedelta | None:
    """A duration or Never, or its older name in whole seconds; both at once contradict each other."""
    after = section.duration_or(key, default, NEVER, low * SECOND)
    seconds = section.integer(alias, None, low, 9_000_000_000)
    if section.has(key) and section.has(alias):
        section.refuse(alias, f"only one of {key} and {alias}")
    return after if seconds is None else seconds * SECOND


def _minimum_savings(disruption_section: Section, default: DisruptionPolicy) -> tuple[float, float]:
    with disruption_section.section("minimumSavings") as section:
        return (
            section.number("perHour", default.savings_per_hour, 0),
            section.number("percent", default.savings_percent, 0, 100),
        )


def _spot_to_spot(disruption_section: Section, default: DisruptionPolicy) -> tuple[bool, int]:
    with disruption_section.section("spotToSpot") as section:
        return (
            section.boolean("enabled", default.spot_to_spot),
            section.integer("minimumTypes", default.spot_to_spot_minimum_types, 1),
        )


def _budgets(disruption_section: Section, default: tuple[Budget, ...]) -> tuple[Budget, ...]:
    sections = disruption_section.sections("budgets")
    return default if sections is None else tuple(_budget(section) for section in sections)


def _budget(entered: Section) -> Budget:
    with entered as section:
        nodes, percent = section.read("nodes", (0, False), count_or_share, COUNT_OR_SHARE)
        if not section.has("nodes"):
            section.refuse("nodes", COUNT_OR_SHARE)
        return Budget(
            nodes=nodes,
            percent=percent,
            window=_window(section, needed=False),
            reasons=section.texts("reasons", tuple(Reason)),
            zone=section.text("zone", None),
        )


def windows(section: Section, key: str) -> tuple[Window, ...]:
    """A list of spans of time, each with schedule and duration."""
    found: list[Window] = []
    for entered in section.sections(key) or ():
        with entered as item:
            window = _window(item, needed=True)
            found += [window] if window else []
    return tuple(found)


def _window(section: Section, *, needed: bool) -> Window | None:
    """`schedule` and `duration` belong together; `timeZone` goes with them."""
    cron_line = 'a cron line of five fields such as "0 9 * * mon-fri", or a macro such as @daily'
    schedule = section.read("schedule", None, parse_schedule, cron_line)
    duration = section.duration("duration", None, timedelta(microseconds=1))
    time_zone = section.read("timeZone", "UTC", _zone_name, "an IANA time zone such as Europe/Berlin")
    has_schedule, has_duration = section.has("schedule"), section.has("duration")
    if has_duration and not has_schedule:
        section.refuse("schedule", f"{cron_line}: duration needs a schedule")
    elif has_schedule and not has_duration:
        section.refuse("duration", "a duration such as 8h: schedule needs a duration")
    elif needed and not has_schedule:
        section.refuse("schedule", cron_line)
        section.refuse("duration", "a duration such as 8h")
    elif section.has("timeZone") and not has_schedule:
        section.refuse("timeZone", "none without schedule and duration")
    if schedule is None or duration is None:
        return None
    return Window(schedule=schedule, duration=duration, time_zone=time_zone)


def repair(spec: Section) -> RepairPolicy:
    """`spec.repair`."""
    default = RepairPolicy()
    with spec.section("repair") as section:
        share = (default.max_unhealthy, default.max_unhealthy_percent)
        nodes, percent = section.read("maxUnhealthy", share, count_or_share, COUNT_OR_SHARE)
        return RepairPolicy(
            enabled=section.boolean("enabled", default.enabled),
            not_ready_after=section.duration("notReadyAfter", default.not_ready_after),
            impaired_after=section.duration("impairedAfter", default.impaired_after),
            max_unhealthy=nodes,
            max_unhealthy_percent=percent,
        )


def cni(spec: Section) -> dict[str, str]:
    """`spec.placement.cni`: variables of the aws-node DaemonSet. Their values are judged as the CNI judges them."""
    expected = "text, a whole number, or true or false"
    with spec.section("placement") as placement, placement.section("cni") as section:
        values = {name: section.read(name, None, _variable, expected) for name in CNI_VARIABLES}
    return {name: value for name, value in values.items() if value is not None}


def template(spec: Section) -> TemplatePolicy:
    """`spec.template`."""
    default = TemplatePolicy()
    with spec.section("template") as section:
        return TemplatePolicy(
            precedence=section.word("precedence", default.precedence, PRECEDENCES),
            ttl=section.duration("ttl", default.ttl),
        )


def count_or_share(value: Any) -> tuple[int, bool]:
    """`5`, `"5"` or `"10%"` as (number, whether it is a share). Raises ValueError."""
    if not isinstance(value, str):
        return whole_number(value, 0, 999_999_999), False
    match = _COUNT_OR_SHARE.fullmatch(value)
    if match is None or (match[2] and int(match[1]) > 100):
        raise ValueError("neither a count nor a share")
    return int(match[1]), bool(match[2])


def _zone_name(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("no text")
    zone(value)
    return value


def _any_text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("no text")
    return value


def _variable(value: Any) -> str:
    if isinstance(value, bool | int):
        return shown(value)
    return _any_text(value)
