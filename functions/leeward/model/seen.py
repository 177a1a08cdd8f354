"""Last observation of its instance on AWS by a termination: it is passed in the record from step to step.

`leeward.termination.situation` alone decides which of it a step may use, and for how long."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

from leeward.model.group import GroupFacts, HookResult, LifecycleHook
from leeward.model.times import format_instant, parse_instant

GONE = "terminated"  # also for an instance that EC2 no longer knows


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenInstance:
    """Answer of EC2 at one moment. `member`: its tag names an Auto Scaling group; `networks`: the addresses of its
    interfaces, as `model.instance.Instance` has them.
    """

    at: datetime
    state: str
    member: bool = True
    networks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenGroup:
    """Answer of Auto Scaling at one moment. `facts` None: there is no such group; `lifecycle`: its state of the
    instance, None if it holds it no longer; `hooks`: all terminate hooks of the group. Sizes and other members are left
    out: steps that depend on them read them.
    """

    at: datetime
    facts: GroupFacts | None
    lifecycle: str | None
    hooks: tuple[LifecycleHook, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """Both observations, each with its own moment; None if not read yet."""

    instance: SeenInstance | None = None
    group: SeenGroup | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the document for the table; absent stands for None."""
        parts: dict[str, Any] = {}
        if self.instance is not None:
            one = self.instance
            parts["instance"] = {
                "at": format_instant(one.at),
                "state": one.state,
                "member": one.member,
                "networks": list(one.networks),
            }
        if self.group is not None:
            parts["group"] = _group_item(self.group)
        return parts

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """Parse the output of `to_json`."""
        instance, group = raw.get("instance"), raw.get("group")
        return cls(
            instance=SeenInstance(
                at=parse_instant(instance["at"]),
                state=instance["state"],
                member=bool(instance["member"]),
                networks=tuple(instance["networks"]),
            )
            if instance
            else None,
            group=_group_of(group) if group else None,
        )


def _group_item(group: SeenGroup) -> dict[str, Any]:
    item: dict[str, Any] = {"at": format_instant(group.at), "hooks": [_hook_item(hook) for hook in group.hooks]}
    if group.lifecycle is not None:
        item["lifecycle"] = group.lifecycle
    if group.facts is not None:
        item["name"], item["tags"] = group.facts.name, dict(group.facts.tags)
        item["capacityRebalance"], item["retains"] = group.facts.capacity_rebalance, group.facts.retains
        item |= {"capacityUnits": group.facts.capacity_units} if group.facts.capacity_units else {}
        item |= {"balancers": list(group.facts.balancers)} if group.facts.balancers else {}
    return item


def _group_of(raw: Mapping[str, Any]) -> SeenGroup:
    facts = GroupFacts(
        name=raw.get("name", ""),
        tags=dict(raw.get("tags", {})),
        capacity_rebalance=bool(raw.get("capacityRebalance", False)),
        retains=bool(raw.get("retains", False)),
        capacity_units=raw.get("capacityUnits", ""),
        balancers=tuple(raw.get("balancers", ())),
    )
    return SeenGroup(
        at=parse_instant(raw["at"]),
        facts=facts if facts.name else None,
        lifecycle=raw.get("lifecycle"),
        hooks=tuple(_hook_of(hook) for hook in raw["hooks"]),
    )


def _hook_item(hook: LifecycleHook) -> dict[str, Any]:
    item = {
        "name": hook.name,
        "group": hook.group,
        "transition": hook.transition,
        "timeout": hook.heartbeat_timeout,
        "default": hook.default.value,
        "target": hook.target_arn,
        "metadata": hook.metadata,
    }
    return {name: value for name, value in item.items() if value is not None}


def _hook_of(raw: Mapping[str, Any]) -> LifecycleHook:
    return LifecycleHook(
        name=raw["name"],
        group=raw["group"],
        transition=raw["transition"],
        heartbeat_timeout=int(raw["timeout"]),
        default=HookResult(raw["default"]),
        target_arn=raw.get("target"),
        metadata=raw.get("metadata"),
    )
