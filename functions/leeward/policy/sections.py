"""Keys of `kind: NodePolicy` under `spec`: names, ranges and contradictions, section by section.

Defaults come from the dataclasses in `document.py`; `parse.py` splits whole documents, `disruption_section.py` has
`spec.disruption` with its budgets and windows.

`spec.webhook`: policies are plain parameters and parts of the deployment's template, so a URL that holds a secret is
refused. A URL that EventBridge does not call is refused here, so that `leeward policy validate` and the deployment
agree."""

import re
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from leeward.model.well_known import DO_NOT_DISRUPT, PREFIX
from leeward.policy.disruption_section import COUNT_OR_SHARE, count_or_share, windows
from leeward.policy.document import (
    Canary,
    DesiredNode,
    DesiredTaint,
    DrainPolicy,
    GroupSelector,
    Heartbeat,
    InterruptionPolicy,
    NodeRequirement,
    OnAlarm,
    OnShift,
    Rebalance,
    TemplatePolicy,
    UpdatePolicy,
    Webhook,
    WebhookFormat,
)
from leeward.policy.fields import Section, is_text, shown
from leeward.policy.repair import DEFAULT_CONDITIONS, NO_REPAIR, RepairAction, RepairCondition, RepairPolicy

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
_CHARACTERS = r"(?:%[0-9A-Fa-f]{2}|[A-Za-z0-9_.!~*';/?:@&=+$,()-])"  # of an API destination's InvocationEndpoint
_LOCAL = r"http://(?:127\.0\.0\.1|localhost)[:/]"  # only a local EventBridge reaches it
_URL = re.compile(rf"(?=.{{1,2048}}$)(?:https://(?!/){_CHARACTERS}|{_LOCAL}){_CHARACTERS}*")
_URL_EXPECTED = "a URL that EventBridge calls: https://, at most 2,048 of the characters that a URL has unescaped"
_SECRET = re.compile(r"arn:aws[a-z-]*:secretsmanager:[a-z0-9-]+:[0-9]{12}:secret:[A-Za-z0-9/_+=.@-]+")
_VERSION = re.compile(r"[A-Za-z0-9-]{32,64}")
_HEADER = re.compile(r"(?!(?i:leeward-event)$)[A-Za-z][A-Za-z0-9-]{0,99}")
_SECRET_NAME = re.compile(r"token|secret|passw|pwd|signature|auth|key|credential|jwt|^(sig|code|sas|hmac|pass)$", re.I)
_RANDOM = re.compile(r"(?=.*\d)[A-Za-z0-9+/=_.~-]{20,}")  # as long and mixed as generated values are
_OWN_PLACE = frozenset({WebhookFormat.TEAMS, WebhookFormat.PAGERDUTY})  # of the secret, which is no header
_FIX = "no secret in a URL: put it into Secrets Manager and name it in secretArn"
STATUSES = ("True", "False", "Unknown")
READY_IS_ELSEWHERE = "a condition other than Ready, which notReadyAfter is about"


def selector(spec: Section) -> GroupSelector:
    """Read `spec.selector`. An empty one is refused, because it would select every group."""
    problems_before = len(spec.problems.lines)
    with spec.section("selector") as section:
        groups, tags = section.texts("groups"), section.text_map("tags")
    if not groups and not tags and len(spec.problems.lines) == problems_before:
        spec.refuse("selector", "groups or tags that choose Auto Scaling groups", "an empty selector")
    return GroupSelector(groups=groups, tags=tags)


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


def requirements(spec: Section) -> tuple[NodeRequirement, ...]:
    """Read `spec.requirements`, and check that each operator has the values it takes."""
    return tuple(_requirement(section) for section in spec.sections("requirements") or ())


def _requirement(entered: Section) -> NodeRequirement:
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
        return NodeRequirement(key=key or "", operator=operator, values=values, min_values=minimum)


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


def webhook(spec: Section) -> Webhook | None:
    """Read `spec.webhook`; None when there is none."""
    if not spec.has("webhook"):
        return None
    default = Webhook(url="")
    with spec.section("webhook") as section:
        url = section.read("url", "", _url, _URL_EXPECTED)
        if not section.has("url"):
            section.refuse("url", _URL_EXPECTED)
        elif secret := url and _secret_in(url):
            section.refuse("url", _FIX, secret)
        wanted = WebhookFormat(section.word("format", default.format, [one.value for one in WebhookFormat]))
        arn = section.read("secretArn", None, _matched(_SECRET), "the ARN of a secret in Secrets Manager")
        version = section.read("secretVersion", None, _matched(_VERSION), "the id of a version of the secret")
        header = section.read("header", default.header, _matched(_HEADER), "the name of an HTTP header of your own")
        for key in ("secretVersion", "header"):
            if section.has(key) and not section.has("secretArn"):
                section.refuse(key, "secretArn beside it")
        if wanted is WebhookFormat.PAGERDUTY and not section.has("secretArn"):
            section.refuse("secretArn", "the ARN of a secret with the integration key: format pagerduty needs it")
        if wanted in _OWN_PLACE and section.has("header"):
            section.refuse("header", f"none: format {wanted} has its own place for the secret")
        return Webhook(url=url, format=wanted, secret_arn=arn, secret_version=version, header=header)


def _url(value: Any) -> str:
    if not is_text(value) or not _URL.fullmatch(value):
        raise ValueError("no URL")
    urlsplit(value)  # ValueError for a host that is none
    return value


def _secret_in(url: str) -> str | None:
    """Return which part of the URL looks like a secret, without its value."""
    parts = urlsplit(url)
    if "@" in parts.netloc:
        return "a user or password before the host"
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        if _SECRET_NAME.search(name) or _RANDOM.fullmatch(value):
            return f"a query parameter that looks like a secret ({name})"
    return None


def _matched(pattern: re.Pattern[str]) -> Any:
    def read(value: Any) -> str:
        if not isinstance(value, str) or not pattern.fullmatch(value):
            raise ValueError("no match")
        return value

    return read


def repair(spec: Section) -> RepairPolicy:
    """Read `spec.repair`. Without the section nothing is repaired."""
    if not spec.has("repair"):
        return NO_REPAIR
    default = RepairPolicy()
    with spec.section("repair") as section:
        default_limit = (default.max_unhealthy, default.max_unhealthy_percent)
        limit, percent = section.read("maxUnhealthy", default_limit, count_or_share, COUNT_OR_SHARE)
        return RepairPolicy(
            not_ready_after=section.duration("notReadyAfter", default.not_ready_after),
            impaired_after=section.duration("impairedAfter", default.impaired_after),
            max_unhealthy=limit,
            max_unhealthy_percent=percent,
            conditions=_conditions(section),
            imports_from_eks=section.choice("nodeRepairConfig", default.imports_from_eks, yes="import", no="ignore"),
        )


def _conditions(repair_section: Section) -> tuple[RepairCondition, ...]:
    """Read the list, which replaces the default one; an empty list switches conditions off."""
    entries = repair_section.sections("conditions")
    if entries is None:
        return DEFAULT_CONDITIONS
    conditions: list[RepairCondition] = []
    for entered in entries:
        with entered as section:
            condition = _condition(section)
            if any(_key(condition) == _key(other) for other in conditions):
                section.refuse("type", "each type, status and reason once")
            conditions.append(condition)
    return tuple(conditions)


def _condition(section: Section) -> RepairCondition:
    kind, default = section.text("type", ""), RepairCondition(type="")
    if not section.has("type"):
        section.refuse("type", "a condition's type, such as KernelReady")
    if kind == "Ready":
        section.refuse("type", READY_IS_ELSEWHERE)
    return RepairCondition(
        type=kind,
        status=section.word("status", default.status, STATUSES),
        after=section.duration("after", default.after),
        action=RepairAction(section.word("action", default.action, tuple(RepairAction))),
        reason=section.text("reason", ""),
    )


def _key(condition: RepairCondition) -> tuple[str, str, str]:
    return condition.type, condition.status, condition.reason
