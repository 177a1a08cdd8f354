"""Nouns with defaults: `a_node(ready=False)` says only what the test is about."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from leeward.model import well_known
from leeward.model.group import TERMINATING, Group, GroupInstance, LifecycleHook
from leeward.model.instance import CapacityType, Instance
from leeward.model.node import Node, Taint
from leeward.model.pause import NOT_PAUSED, Pause, Pauses, PauseScope
from leeward.model.subnet import Subnet
from leeward.model.termination import Subject
from leeward.model.zonal_shift import ShiftKind, ZonalShift, ZonalShifts
from leeward.policy.document import (
    ClusterPolicies,
    ClusterSettings,
    GroupSelector,
    Heartbeat,
    InterruptionPolicy,
    NodePolicy,
    Rebalance,
)
from simulation.aws.recovery import zone_id_of

DEPLOYMENT = "111122223333-us-east-1"
CLUSTER = "blue"
GROUP = "web-a"
ZONE = "us-east-1a"
LAUNCHED = datetime(2026, 3, 1, 8, 0, tzinfo=UTC)


def an_instance(
    id_: str = "i-0abc",
    *,
    state: str = "running",
    group: str | None = GROUP,
    cluster: str | None = CLUSTER,
    spot: bool = True,
) -> Instance:
    tags = {well_known.GROUP_TAG: group} if group else {}
    if cluster:
        tags[well_known.CLUSTER_TAG_PREFIX + cluster] = "owned"
    return Instance(
        id=id_,
        state=state,
        type="m5.large",
        zone=ZONE,
        subnet="subnet-a",
        capacity_type=CapacityType.SPOT if spot else CapacityType.ON_DEMAND,
        tags=tags,
        launched=LAUNCHED,
    )


def a_node(instance: str = "i-0abc", *, ready: bool = True, taints: tuple[Taint, ...] = ()) -> Node:
    return Node(
        name=f"node-{instance}",
        uid=f"uid-{instance}",
        resource_version="1",
        provider_id=f"aws:///{ZONE}/{instance}",
        labels={well_known.ZONE_LABEL: ZONE, well_known.INSTANCE_TYPE_LABEL: "m5.large"},
        annotations={},
        taints=taints,
        unschedulable=False,
        ready=ready,
        deleting=False,
        created=LAUNCHED,
    )


def a_group(
    name: str = GROUP,
    *members: str,
    cluster: str | None = CLUSTER,
    lifecycle: str = "InService",
    maximum: int = 10,
    capacity_rebalance: bool = False,
) -> Group:
    return Group(
        name=name,
        tags={well_known.CLUSTER_TAG_PREFIX + cluster: "owned"} if cluster else {},
        minimum=0,
        maximum=maximum,
        desired=len(members),
        zones=(ZONE,),
        subnets=("subnet-a",),
        instances=tuple(GroupInstance(id=member, zone=ZONE, lifecycle=lifecycle) for member in members),
        capacity_rebalance=capacity_rebalance,
    )


def a_subnet(
    id_: str = "subnet-a", *, zone: str = ZONE, free: int = 200, tags: Mapping[str, str] | None = None
) -> Subnet:
    zone_id = zone_id_of(zone)
    return Subnet(id=id_, zone=zone, cidr="10.0.0.0/24", free_ips=free, vpc="vpc-a", tags=tags or {}, zone_id=zone_id)


PUT_BY_SYNC = int(Heartbeat().timeout.total_seconds())  # HeartbeatTimeout of the hooks that sync puts, by default


def our_hook(group: str = GROUP, *, transition: str = TERMINATING, heartbeat_timeout: int = 300) -> LifecycleHook:
    return LifecycleHook(
        name=well_known.TERMINATE_HOOK,
        group=group,
        transition=transition,
        heartbeat_timeout=heartbeat_timeout,
        metadata=well_known.HOOK_MARK,
    )


def a_policy(
    name: str = "web",
    *groups: str,
    rebalance: Rebalance = Rebalance.REPLACE,
    enabled: bool = True,
    hooks: Iterable[str] = (),
) -> NodePolicy:
    return NodePolicy(
        name=name,
        selector=GroupSelector(groups=groups or ("web-*",)),
        interruption=InterruptionPolicy(enabled=enabled, rebalance=rebalance, hooks=tuple(hooks)),
    )


def policies(*of: NodePolicy, cluster: str = CLUSTER, paused: str = "", interruption: bool = True) -> ClusterPolicies:
    """`paused`: the scope of a pause of the whole cluster, empty for none."""
    settings = ClusterSettings(name=cluster, interruption=interruption)
    pauses = Pauses(cluster=cluster, pauses=(a_pause(scope=PauseScope(paused)),)) if paused else NOT_PAUSED
    return ClusterPolicies(settings=settings, policies=of or (a_policy(),), pauses=pauses)


def a_pause(**more: Any) -> Pause:
    """A pause of a whole cluster for a game day."""
    by, since = "arn:aws:iam::111122223333:user/ana", datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
    return Pause(**{"by": by, "why": "game day", "since": since, "announced": since, **more})


def pausing(written: ClusterPolicies, scope: str = "voluntary", group: str = "") -> ClusterPolicies:
    """The same policies with the cluster, or one group, paused."""
    pauses = Pauses(cluster=written.settings.name, pauses=(a_pause(scope=PauseScope(scope), group=group),))
    return replace(written, pauses=pauses)


def shifted(*zones: str, kind: ShiftKind = ShiftKind.AUTOSHIFT) -> ZonalShifts:
    """Zonal shifts away from these zones."""
    return ZonalShifts(
        shifts=tuple(ZonalShift(zone_id=f"id-of-{zone}", zone=zone, kind=kind, since=LAUNCHED) for zone in zones)
    )


def a_subject(instance: str = "i-0abc", *, node: str | None = "node-i-0abc", group: str | None = GROUP) -> Subject:
    return Subject(
        instance=instance,
        cluster=CLUSTER,
        group=group,
        zone=ZONE,
        subnet="subnet-a",
        instance_type="m5.large",
        capacity_type=CapacityType.SPOT,
        node=node,
    )
