"""Policies written back to JSON: whole, for people, and canonical, as they are stored.

Decides the stored spelling: sorted keys, no spaces, defaults left out. Leaving them out keeps the parameter small and
lets an older reader take a document that a newer writer made, as long as it uses no newer key."""

import json
from typing import Any

from leeward.errors import InvalidPolicyError
from leeward.policy.document import (
    DEFAULT_HEADER,
    Budget,
    ClusterPolicies,
    ClusterSettings,
    DesiredTaint,
    DisruptionPolicy,
    GroupSelector,
    NodePolicy,
    NodeRequirement,
    Webhook,
    WebhookFormat,
    Window,
)
from leeward.policy.durations import format_duration, format_spread
from leeward.policy.fields import NEVER
from leeward.policy.parse import API_VERSION, CLUSTER_SETTINGS, NODE_POLICY
from leeward.policy.repair import RepairCondition, RepairPolicy

LARGEST = 8_192  # bytes; a Systems Manager parameter of the advanced tier holds no more (4,096 in the standard tier)
OPT_IN = ("disruption", "repair")  # sections that act by being there, empty ones too
MOST = 99  # documents of one cluster: their order is two digits


def to_json(document: NodePolicy | ClusterSettings) -> dict[str, Any]:
    """Return the whole document with every default written out; parsing it gives the same document."""
    kind = NODE_POLICY if isinstance(document, NodePolicy) else CLUSTER_SETTINGS
    spec = _policy_spec(document) if isinstance(document, NodePolicy) else _settings_spec(document)
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": document.name}, "spec": spec}


def canonical(document: NodePolicy | ClusterSettings) -> str:
    """Return the one spelling of a document: parsing it gives the same document, and equal documents the same text."""
    if isinstance(document, NodePolicy):
        default = to_json(NodePolicy(name="", selector=GroupSelector()))
    else:
        default = to_json(ClusterSettings(name=""))
    whole = to_json(document)
    switched_on: dict[str, Any] = {key: {} for key in OPT_IN if key in whole["spec"]}
    short = {**whole, "spec": {**switched_on, **_without_defaults(whole["spec"], default["spec"])}}
    return json.dumps(short, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def parameters(policies: ClusterPolicies) -> list[tuple[str, str]]:
    """Return `NN-NAME` and canonical JSON of each document, in the order in which policies are tried; settings come
    first, if they differ from the defaults. Raises InvalidPolicyError over 8 KB or 99 documents.
    """
    settings = policies.settings
    named = {f"{number:02d}-{policy.name}": canonical(policy) for number, policy in enumerate(policies.policies, 1)}
    if settings != ClusterSettings(name=settings.name):
        named = {f"00-{settings.name}": canonical(settings), **named}
    if len(policies.policies) > MOST:
        raise InvalidPolicyError(f"policies: found {len(policies.policies)} documents, expected at most {MOST}")
    problems = [
        f"{name}: document: found {size(text)} bytes as canonical JSON, expected at most {LARGEST}"
        for name, text in named.items()
        if size(text) > LARGEST
    ]
    if problems:
        raise InvalidPolicyError("\n".join(problems))
    return list(named.items())


def size(canonical_json: str) -> int:
    """Return the bytes that the parameter takes."""
    return len(canonical_json.encode())


def _without_defaults(value: dict[str, Any], default: dict[str, Any]) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for key, item in value.items():
        if key in default and item == default[key]:
            continue
        nested = isinstance(item, dict) and isinstance(default.get(key), dict)
        kept[key] = _without_defaults(item, default[key]) if nested else item
    return kept


def _policy_spec(policy: NodePolicy) -> dict[str, Any]:
    return {
        "selector": {"groups": list(policy.selector.groups), "tags": dict(policy.selector.tags)},
        "interruption": _interruption(policy),
        "drain": _drain(policy),
        "update": _update(policy),
        "requirements": [_requirement(requirement) for requirement in policy.requirements],
        "node": {
            "labels": dict(policy.node.labels),
            "annotations": dict(policy.node.annotations),
            "taints": [_taint(taint) for taint in policy.node.taints],
            "startupTaints": [_taint(taint) for taint in policy.node.startup_taints],
        },
        **({"disruption": _disruption(policy.disruption)} if policy.disruption.present else {}),
        "finalizer": policy.finalizer,
        **({"repair": _repair(policy.repair)} if policy.repair.enabled else {}),
        "placement": {"cni": dict(policy.cni)},
        "template": {"precedence": policy.template.precedence, "ttl": format_duration(policy.template.ttl)},
        "zones": {"onShift": policy.on_shift.value},
    }


def _settings_spec(settings: ClusterSettings) -> dict[str, Any]:
    return {
        "interruption": settings.interruption,
        "drift": settings.drift,
        "consolidation": settings.consolidation,
        "expiration": settings.expiration,
        "emptiness": settings.emptiness,
        "freeze": [_window(window) for window in settings.freeze],
        "webhook": _webhook(settings.webhook) if settings.webhook else None,
    }


def _webhook(webhook: Webhook) -> dict[str, Any]:
    keys = {"url": webhook.url, "secretArn": webhook.secret_arn, "secretVersion": webhook.secret_version}
    if webhook.format is not WebhookFormat.JSON:
        keys["format"] = webhook.format.value
    if webhook.header != DEFAULT_HEADER:
        keys["header"] = webhook.header
    return {key: value for key, value in keys.items() if value is not None}


def _interruption(policy: NodePolicy) -> dict[str, Any]:
    section = policy.interruption
    interval = section.heartbeat.interval
    return {
        "enabled": section.enabled,
        "rebalanceRecommendation": section.rebalance.value,
        "heartbeat": {
            "interval": "auto" if interval is None else format_duration(interval),
            "until": format_duration(section.heartbeat.until),
        },
        "capacityBlock": {"drainBefore": format_duration(section.drain_block_before)},
        "systemReboot": "wait" if section.waits_for_reboot else "replace",
        "hooks": list(section.hooks),
    }


def _drain(policy: NodePolicy) -> dict[str, Any]:
    section = policy.drain
    grace = section.termination_grace_period
    return {
        "timeout": format_duration(section.timeout),
        "force": section.force,
        "terminationGracePeriod": None if grace is None else format_duration(grace),
        "settle": "auto" if section.settle is None else format_duration(section.settle),
        "deregistrationTimeout": format_duration(section.deregistration_timeout),
        "volumeDetachTimeout": format_duration(section.volume_detach_timeout),
        "unmanagedPods": "evict" if section.evict_unmanaged else "refuse",
        "localData": "delete" if section.delete_local_data else "refuse",
        "singleReplicas": "surge" if section.surge_single_replicas else "evict",
    }


def _update(policy: NodePolicy) -> dict[str, Any]:
    section = policy.update
    maximum = (
        {"maxUnavailable": section.max_unavailable}
        if section.max_unavailable_percentage is None
        else {"maxUnavailablePercentage": section.max_unavailable_percentage}
    )
    return {
        **maximum,
        "strategy": section.strategy,
        "maxSurge": "auto"
        if section.max_surge is None
        else _count_or_share(section.max_surge, percent=section.max_surge_percent),
        "order": section.order,
        "terminate": section.terminate,
        "canary": {"nodes": section.canary.nodes, "bake": format_duration(section.canary.bake)},
        "alarms": list(section.alarms),
        "onAlarm": section.on_alarm.value,
        "auto": None if section.auto is None else {"after": format_duration(section.auto)},
        "windows": [_window(window) for window in section.windows],
        "imageOwners": list(section.image_owners),
    }


def _disruption(section: DisruptionPolicy) -> dict[str, Any]:
    after, expire = section.consolidate_after, section.expire_after
    return {
        "consolidationPolicy": section.consolidation_policy,
        "consolidateAfter": NEVER if after is None else format_duration(after),
        "expireAfter": NEVER if expire is None else format_spread(expire, section.expire_jitter),
        "drift": section.drift,
        "minimumSavings": {"perHour": section.savings_per_hour, "percent": section.savings_percent},
        "cooldown": format_duration(section.cooldown),
        "alarms": list(section.alarms),
        "spotToSpot": {"enabled": section.spot_to_spot, "minimumTypes": section.spot_to_spot_minimum_types},
        "architecture": section.architecture,
        "budgets": [_budget(budget) for budget in section.budgets],
        "doNotDisrupt": section.do_not_disrupt,
    }


def _repair(section: RepairPolicy) -> dict[str, Any]:
    return {
        "notReadyAfter": format_duration(section.not_ready_after),
        "impairedAfter": format_duration(section.impaired_after),
        "maxUnhealthy": _count_or_share(section.max_unhealthy, percent=section.max_unhealthy_percent),
        "conditions": [_condition(condition) for condition in section.conditions],
        "nodeRepairConfig": "import" if section.imports_from_eks else "ignore",
    }


def _condition(condition: RepairCondition) -> dict[str, str]:
    return {
        "type": condition.type,
        "status": condition.status,
        **({"reason": condition.reason} if condition.reason else {}),
        "after": format_duration(condition.after),
        "action": condition.action.value,
    }


def _budget(budget: Budget) -> dict[str, Any]:
    return {
        "nodes": _count_or_share(budget.nodes, percent=budget.percent),
        **({} if budget.window is None else _window(budget.window)),
        **({"reasons": list(budget.reasons)} if budget.reasons else {}),
        **({} if budget.zone is None else {"zone": budget.zone}),
    }


def _window(window: Window) -> dict[str, str]:
    zone = {} if window.time_zone == "UTC" else {"timeZone": window.time_zone}
    return {"schedule": window.schedule, "duration": format_duration(window.duration), **zone}


def _requirement(requirement: NodeRequirement) -> dict[str, Any]:
    return {
        "key": requirement.key,
        "operator": requirement.operator,
        **({"values": list(requirement.values)} if requirement.values else {}),
        **({} if requirement.min_values is None else {"minValues": requirement.min_values}),
    }


def _taint(taint: DesiredTaint) -> dict[str, str]:
    return {"key": taint.key, "effect": taint.effect, **({"value": taint.value} if taint.value else {})}


def _count_or_share(nodes: int, *, percent: bool) -> str:
    return f"{nodes}%" if percent else str(nodes)
