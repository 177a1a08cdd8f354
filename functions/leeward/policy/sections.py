"""Keys of `kind: NodePolicy` under `spec`: names, ranges and contradictions, section by section.

Defaults come from the dataclasses in `document.py`; `parse.py` splits whole documents, `disruption_section.py` has
`spec.disruption` with its budgets and windows, `repair_section.py` has `spec.repair`."""

import re
from datetime import timedelta
from typing import Any

from leeward.model.well_known import DO_NOT_DISRUPT, PREFIX
from leeward.policy.disruption_section import count_or_share, windows
from leeward.policy.document import (
    Canary,
    DesiredNode,
    DesiredTaint,
    DrainPolicy,
    Heartbeat,
    InterruptionPolicy,
    OnAlarm,
    OnShift,
    Rebalance,
    Requirement,
    Selector,
    TemplatePolicy,
    UpdatePolicy,
)
from leeward.policy.fields import Section, is_text, shown

CNI_VARIABLES = (  # variables that decide how many IPs a node takes, and whether they can be counted
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
STRATEGIES = ("DEFAULT", "MINIMAL", "INCREMENTAL")
ORDERS = ("waves", "random", "zone", "age")
TERMINATE = ("last", "first")
PRECEDENCES = ("asg-tags", "eks-api")
OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
TAINT_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
AUTO_AFTER = timedelta(hours=72)  # of an image, for others to find what is wrong with it
_SECOND = timedelta(seconds=1)
_ACCOUNT = re.compile(r"[0-9]{12}")


def selector(spec: Section) -> Selector:
    """Read `spec.selector`. An empty one is refused, because it would select every group."""
    problems_before = len(spec.problems.lines)
    with spec.section("selector") as section:
        groups, tags = section.texts("groups"), section.text_map("tags")
    if not groups and not tags and len(spec.problems.lines) == problems_before:
        spec.refuse("selector", "groups or tags that choose Auto Scaling groups", "an empty selector")
    return Selector(groups=groups, tags=tags)


def interruption(spec: Section) -> InterruptionPolicy:
    """Read `spec.interruption`."""
    default = InterruptionPolicy()
    with spec.section("interruption") as section:
        return InterruptionPolicy(
            enabled=section.boolean("enabled", default.enabled),
            rebalance=Rebalance(section.word("rebalanceRecommendation", default.rebalance, tuple(Rebalance))),
            heartbeat=_heartbeat(section),
            hooks=section.texts("hooks"),
            drain_block_before=_capacity_block(section, default),
            waits_for_reboot=section.choice("systemReboot", default.waits_for_reboot, yes="wait", no="replace"),
        )


def _capacity_block(interruption_section: Section, default: InterruptionPolicy) -> timedelta:
    with interruption_section.section("capacityBlock") as section:
        return section.duration("drainBefore", default.drain_block_before, timedelta(), timedelta(hours=24))


def _heartbeat(interruption_section: Section) -> Heartbeat:
    """Read the heartbeat. An interval above half of the time-out of Leeward's hooks is refused: one lost heartbeat
    would end a hook.
    """
    with interruption_section.section("heartbeat") as section:
        heartbeat = Heartbeat(
            interval=section.duration_or("interval", None, "auto", 30 * _SECOND, 3600 * _SECOND),
            until=section.duration("until", Heartbeat().until, 60 * _SECOND, 172_800 * _SECOND),
        )
        longest = heartbeat.timeout / 2
        if heartbeat.interval is not None and heartbeat.interval > longest:
            section.refuse("interval", f"auto, or at most {longest.total_seconds():g}s: half of our hooks' time-out")
        return heartbeat


def drain(spec: Section) -> DrainPolicy:
    """Read `spec.drain`."""
    default = DrainPolicy()
    with spec.section("drain") as section:
        return DrainPolicy(
            timeout=section.duration("timeout", default.timeout),
            force=section.boolean("force", default.force),
            termination_grace_period=section.duration("terminationGracePeriod", None),
            settle=section.duration_or("settle", default.settle, "auto", timedelta()),
            deregistration_timeout=section.duration("deregistrationTimeout", default.deregistration_timeout),
            volume_detach_timeout=section.duration("volumeDetachTimeout", default.volume_detach_timeout),
            evict_unmanaged=section.choice("unmanagedPods", default.evict_unmanaged, yes="evict", no="refuse"),
            delete_local_data=section.choice("localData", default.delete_local_data, yes="delete", no="refuse"),
            surge_single_replicas=section.choice(
                "singleReplicas", default.surge_single_replicas, yes="surge", no="evict"
            ),
        )


def update(spec: Section) -> UpdatePolicy:
    """Read `spec.update`. At most one of `maxUnavailable` and `maxUnavailablePercentage` may be set."""
    default = UpdatePolicy()
    with spec.section("update") as section:
        percentage = section.integer("maxUnavailablePercentage", None, 1, 100)
        count = section.integer("maxUnavailable", default.max_unavailable, 1, 100)
        if section.has("maxUnavailablePercentage") and section.has("maxUnavailable"):
            section.refuse("maxUnavailablePercentage", "only one of maxUnavailable and maxUnavailablePercentage")
        surge, percent = section.read("maxSurge", (None, False), _surge, "auto, or a number of nodes or a share from 1")
        strategy = section.word("strategy", default.strategy, STRATEGIES)
        if surge is not None and strategy == "MINIMAL":
            section.refuse("maxSurge", "auto: strategy MINIMAL launches no node ahead")
        return UpdatePolicy(
            max_unavailable=None if section.has("maxUnavailablePercentage") else count,
            max_unavailable_percentage=percentage,
            strategy=strategy,
            max_surge=surge,
            max_surge_percent=percent,
            order=section.word("order", default.order, ORDERS),
            terminate=section.word("terminate", default.terminate, TERMINATE),
            canary=_canary(section),
            alarms=section.texts("alarms"),
            on_alarm=OnAlarm(section.word("onAlarm", default.on_alarm, tuple(OnAlarm))),
            auto=_auto(section),
            windows=windows(section, "windows"),
            image_owners=section.read("imageOwners", (), _accounts, "a list of accounts: twelve digits each, as text"),
        )


def _accounts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(entry, str) and _ACCOUNT.fullmatch(entry) for entry in value):
        raise ValueError("no list of accounts")
    return tuple(dict.fromkeys(value))


def _surge(value: Any) -> tuple[int | None, bool]:
    """Parse `maxSurge` as (nodes or percentage, whether it is a percentage); `auto` is (None, False)."""
    if value == "auto":
        return None, False
    number, percent = count_or_share(value)
    if not number:
        raise ValueError("a surge of 0 is spelled strategy: MINIMAL")
    return number, percent


def _auto(update_section: Section) -> timedelta | None:
    """Read `auto`: None without the section; `{}` is its default."""
    if not update_section.has("auto"):
        return None
    with update_section.section("auto") as section:
        return section.duration("after", AUTO_AFTER)


def _canary(update_section: Section) -> Canary:
    with update_section.section("canary") as section:
        return Canary(
            nodes=section.integer("nodes", Canary().nodes, 0),
            bake=section.duration("bake", Canary().bake),
        )


def requirements(spec: Section) -> tuple[Requirement, ...]:
    """Read `spec.requirements`, and check that each operator has the values it takes."""
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
    """Read `spec.node`, with which drift compares the nodes."""
    with spec.section("node") as section:
        own = [key for key in section.text_map("annotations") if key.startswith(PREFIX) and key != DO_NOT_DISRUPT]
        if own:
            section.refuse("annotations", f"no keys below {PREFIX} but {DO_NOT_DISRUPT}", ", ".join(own))
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


def cni(spec: Section) -> dict[str, str]:
    """Read `spec.placement.cni`: variables of the aws-node DaemonSet, as text. Placement reads them as the CNI does."""
    expected = "text, a whole number, or true or false"
    with spec.section("placement") as placement, placement.section("cni") as section:
        values = {name: section.read(name, None, _variable, expected) for name in CNI_VARIABLES}
    return {name: value for name, value in values.items() if value is not None}


def on_shift(spec: Section) -> OnShift:
    """Read `spec.zones.onShift`."""
    with spec.section("zones") as section:
        return OnShift(section.word("onShift", OnShift.HOLD, tuple(OnShift)))


def template(spec: Section) -> TemplatePolicy:
    """Read `spec.template`."""
    default = TemplatePolicy()
    with spec.section("template") as section:
        return TemplatePolicy(
            precedence=section.word("precedence", default.precedence, PRECEDENCES),
            ttl=section.duration("ttl", default.ttl),
        )


def _any_text(value: Any) -> str:
    if not is_text(value):
        raise ValueError("no text")
    return value


def _variable(value: Any) -> str:
    if isinstance(value, bool | int):
        return shown(value)
    return _any_text(value)
