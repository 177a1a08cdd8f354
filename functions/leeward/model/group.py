"""Auto Scaling groups, their instances and their lifecycle hooks."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Self

from leeward.model import well_known
from leeward.model.launch import LaunchSource, LaunchTemplateRef
from leeward.model.lifecycle import IN_SERVICE
from leeward.model.times import as_instant

TERMINATING = "autoscaling:EC2_INSTANCE_TERMINATING"
LAUNCHING = "autoscaling:EC2_INSTANCE_LAUNCHING"
UNITS = "units"  # DesiredCapacityType by which a group counts instances, unless they have weights
AZ_REBALANCE = "AZRebalance"  # process by which the group makes its zones even


class HookResult(StrEnum):
    """Answers to a lifecycle hook."""

    CONTINUE = "CONTINUE"
    ABANDON = "ABANDON"


@dataclass(frozen=True, slots=True, kw_only=True)
class LifecycleHook:
    """Hook of a group. `heartbeat_timeout` in seconds; `default`: its result if no answer arrives in time."""

    name: str
    group: str
    transition: str
    heartbeat_timeout: int = 3600
    target_arn: str | None = None
    metadata: str | None = None
    default: HookResult = HookResult.CONTINUE

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """Parse one element of `describe-lifecycle-hooks`."""
        return cls(
            name=raw["LifecycleHookName"],
            group=raw["AutoScalingGroupName"],
            transition=raw.get("LifecycleTransition", TERMINATING),
            heartbeat_timeout=int(raw.get("HeartbeatTimeout", 3600)),
            target_arn=raw.get("NotificationTargetARN"),
            metadata=raw.get("NotificationMetadata"),
            default=HookResult(raw.get("DefaultResult") or HookResult.ABANDON),
        )


_LEAVES = re.compile(r"(?:Terminating|Detaching) EC2 instance: (i-[0-9a-f]+)")
_ENTERS = re.compile(r"(?:Launching a new|Attaching an existing) EC2 instance: (i-[0-9a-f]+)")
_UNSUCCESSFUL = frozenset({"Failed", "Cancelled"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingActivity:
    """Line of a group's scaling history. `leaves` is the instance that it takes out, `enters` the one that it brings
    in, None for any other activity; `cause` is Auto Scaling's own sentence. `ended`: when it was over, None while it is
    under way; `failed`: why it failed, empty if it did not.
    """

    at: datetime
    cause: str
    leaves: str | None = None
    enters: str | None = None
    ended: datetime | None = None
    failed: str = ""

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """Parse one element of `describe-scaling-activities`. One under way has no end, or one without meaning."""
        said, status = raw.get("Description", ""), raw.get("StatusCode", "")
        leaves, enters = _LEAVES.match(said), _ENTERS.match(said)
        over = int(raw.get("Progress", 100)) >= 100 and raw.get("EndTime")
        return cls(
            at=as_instant(raw["StartTime"]),
            cause=raw.get("Cause", ""),
            leaves=leaves[1] if leaves else None,
            enters=enters[1] if enters else None,
            ended=as_instant(raw["EndTime"]) if over else None,
            failed=(raw.get("StatusMessage") or said or status) if status in _UNSUCCESSFUL else "",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupInstance:
    """Instance as its group lists it; `lifecycle` is the group's state (`model.lifecycle`). `protected`:
    from scale-in, by a person or by the group's default. `configuration`: the launch configuration of its launch,
    empty without one.
    """

    id: str
    zone: str
    lifecycle: str
    healthy: bool = True
    type: str = ""
    template: LaunchTemplateRef | None = None  # source of its launch, always with a number as version
    protected: bool = False
    configuration: str = ""

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """Parse `describe-auto-scaling-groups`' Instances or `describe-auto-scaling-instances`."""
        return cls(
            id=raw["InstanceId"],
            zone=raw.get("AvailabilityZone", ""),
            lifecycle=raw.get("LifecycleState", IN_SERVICE),
            healthy=str(raw.get("HealthStatus", "Healthy")).lower() == "healthy",
            type=raw.get("InstanceType") or "",
            template=LaunchTemplateRef.from_json(raw["LaunchTemplate"]) if raw.get("LaunchTemplate") else None,
            protected=bool(raw.get("ProtectedFromScaleIn", False)),
            configuration=raw.get("LaunchConfigurationName") or "",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupFacts:
    """Facts of an Auto Scaling group that hardly change. `retains`: an instance whose terminate hook is abandoned is
    kept (Terminating:Retained) until a request ends it, instead of being ended. `capacity_units`: why its sizes are no
    instance counts, empty where they are: an instance then counts as several units, and a size that is changed by one
    is not one instance more or less.
    """

    name: str
    tags: Mapping[str, str]
    capacity_rebalance: bool = False
    retains: bool = False
    capacity_units: str = ""
    balancers: tuple[str, ...] = ()  # target groups, load balancers and traffic sources that are attached to it


@dataclass(frozen=True, slots=True, kw_only=True)
class Group(GroupFacts):
    """Auto Scaling group as it is listed. Sizes are instance counts, unless `capacity_units` says otherwise; `subnets`
    empty for a group in EC2-classic zones; `suspended`: names of processes; `max_lifetime` of its instances in seconds,
    0 without one; `propagated`: keys of the tags that its launches get (PropagateAtLaunch).
    """

    minimum: int
    maximum: int
    desired: int
    zones: tuple[str, ...] = ()
    subnets: tuple[str, ...] = ()
    instances: tuple[GroupInstance, ...] = ()
    on_demand_percentage: int | None = None  # of a mixed instances policy, None without one
    on_demand_base: int = 0
    launch_template: bool = True
    launch: LaunchSource = field(default_factory=LaunchSource)
    suspended: tuple[str, ...] = ()
    max_lifetime: int = 0
    propagated: frozenset[str] = frozenset()

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """Parse one element of `describe-auto-scaling-groups`."""
        mixed = raw.get("MixedInstancesPolicy")
        spread = (mixed or {}).get("InstancesDistribution", {})
        return cls(
            name=raw["AutoScalingGroupName"],
            tags={tag["Key"]: tag.get("Value", "") for tag in raw.get("Tags", ())},
            minimum=raw.get("MinSize", 0),
            maximum=raw.get("MaxSize", 0),
            desired=raw.get("DesiredCapacity", 0),
            zones=tuple(raw.get("AvailabilityZones", ())),
            subnets=tuple(name.strip() for name in (raw.get("VPCZoneIdentifier") or "").split(",") if name.strip()),
            instances=tuple(GroupInstance.from_json(instance) for instance in raw.get("Instances", ())),
            capacity_rebalance=bool(raw.get("CapacityRebalance", False)),
            on_demand_percentage=spread.get("OnDemandPercentageAboveBaseCapacity", 100) if mixed else None,
            on_demand_base=spread.get("OnDemandBaseCapacity", 0),
            launch_template=bool(raw.get("LaunchTemplate") or mixed),
            launch=LaunchSource.from_group(raw),
            suspended=tuple(one.get("ProcessName", "") for one in raw.get("SuspendedProcesses") or ()),
            max_lifetime=int(raw.get("MaxInstanceLifetime") or 0),
            retains=_retains(raw.get("InstanceLifecyclePolicy") or {}),
            propagated=frozenset(tag["Key"] for tag in raw.get("Tags", ()) if tag.get("PropagateAtLaunch")),
            capacity_units=_capacity_units(raw),
            balancers=_balancers(raw),
        )

    @property
    def nodegroup(self) -> str | None:
        """EKS managed node group that owns this group, None for a self-managed one."""
        return self.tags.get(well_known.NODEGROUP_TAG)

    @property
    def cluster(self) -> str | None:
        """EKS cluster that its managed node group belongs to, None if no tag of EKS names it."""
        return next((self.tags[key] for key in well_known.EKS_CLUSTER_TAGS if self.tags.get(key)), None)

    @property
    def override_types(self) -> tuple[str, ...]:
        """Instance types that its mixed instances policy names, in its order; none if requirements choose."""
        return tuple(dict.fromkeys(one.instance_type for one in self.launch.overrides if one.instance_type))

    @property
    def running_types(self) -> tuple[str, ...]:
        """Instance types of its members, by name."""
        return tuple(sorted({member.type for member in self.instances if member.type}))

    def protects(self, instance: str) -> bool:
        """Return whether the instance is protected from scale-in."""
        return any(member.protected for member in self.instances if member.id == instance)

    def lifecycle_of(self, instance: str) -> str | None:
        """Return the group's lifecycle state of the instance, None if the group no longer lists it."""
        return next((member.lifecycle for member in self.instances if member.id == instance), None)


def _capacity_units(raw: Mapping[str, Any]) -> str:
    """Parse DesiredCapacityType, and WeightedCapacity of overrides and members; weights of 1 count instances."""
    counted = raw.get("DesiredCapacityType") or UNITS
    if counted != UNITS:
        return f"its sizes count {counted} (DesiredCapacityType)"
    mixed = (raw.get("MixedInstancesPolicy") or {}).get("LaunchTemplate") or {}
    weighted = (*(mixed.get("Overrides") or ()), *raw.get("Instances", ()))
    weights = {(one.get("InstanceType") or "requirements", str(one.get("WeightedCapacity") or 1)) for one in weighted}
    heavy = [f"{name} {weight}" for name, weight in sorted(weights) if weight != "1"]
    return f"its sizes count units of capacity (WeightedCapacity: {', '.join(heavy[:5])})" if heavy else ""


def _retains(policy: Mapping[str, Any]) -> bool:
    """Parse `InstanceLifecyclePolicy.RetentionTriggers.TerminateHookAbandon`; terminate is Auto Scaling's default."""
    return (policy.get("RetentionTriggers") or {}).get("TerminateHookAbandon") == "retain"


def _balancers(raw: Mapping[str, Any]) -> tuple[str, ...]:
    """Parse what sends requests to the group's instances: TrafficSources lists all kinds, in answers since 2023."""
    named = (*(raw.get("TargetGroupARNs") or ()), *(raw.get("LoadBalancerNames") or ()))
    sources = (str(source.get("Identifier", "")) for source in raw.get("TrafficSources") or ())
    return tuple(dict.fromkeys((*named, *sources)))
