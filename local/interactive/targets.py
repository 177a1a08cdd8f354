"""Choice of the node that an event is about.

A chosen node is claimed by a file that only one process can create, so that two events played at the same moment have
different nodes.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from leeward.cli.nearest import did_you_mean
from local.demo import ledger, scenario
from local.interactive.state import CLAIMS
from local.stack import LocalStack

CLAIM_SECONDS = 300  # then a node may be chosen again; by then it is gone, or in service again


class NoTargetError(Exception):
    """Error: no node fits the request; the message says which would."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Node of a group. `available`: in service, Ready, and not terminated by Leeward already."""

    name: str
    instance: str
    group: str
    zone: str
    spot: bool
    available: bool

    @property
    def short(self) -> str:
        """Name without its domain, as the messages have it."""
        return ledger.short(self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Request of the caller. `node`: name, short name or instance id; `spot`: only nodes on spot instances."""

    node: str | None = None
    group: str | None = None
    spot: bool = False


def targets(stack: LocalStack) -> list[Target]:
    """Return the nodes whose instances are members of groups, by group and name."""
    pages = stack.client("autoscaling").get_paginator("describe_auto_scaling_instances").paginate()
    members = {member["InstanceId"]: member for page in pages for member in page["AutoScalingInstances"]}
    spot = _spot_instances(stack)
    found = [
        Target(
            name=str(node["metadata"]["name"]),
            instance=instance,
            group=str(members[instance]["AutoScalingGroupName"]),
            zone=str(members[instance]["AvailabilityZone"]),
            spot=instance in spot,
            available=members[instance]["LifecycleState"] == "InService"
            and scenario.is_ready(node)
            and not ledger.is_tainted(node),
        )
        for instance, node in ledger.nodes(stack).items()
        if instance in members
    ]
    return sorted(found, key=lambda target: (target.group, target.name))


def choose(nodes: Sequence[Target], request: Request, directory: Path) -> Target:
    """Return the named node, or claim an available one that fits. Raises NoTargetError."""
    groups = sorted({target.group for target in nodes})
    if request.group is not None and request.group not in groups:
        hint = did_you_mean(request.group, groups)
        raise NoTargetError(f"GROUP={request.group}: no such group, expected one of {_listed(groups)}{hint}")
    members = [target for target in nodes if request.group in {None, target.group}]
    fitting = [target for target in members if target.spot or not request.spot]
    if request.node is not None:
        named = _named(request.node, nodes)
        if named not in fitting:
            raise NoTargetError(_unfit(named, request, fitting))
        _claim(directory, named)
        return named
    if not fitting:
        where = f"GROUP={request.group}" if request.group else "the cluster"
        raise NoTargetError(f"{where} has no spot instance, and only these get this event")
    for target in fitting:
        if target.available and _claim(directory, target):
            return target
    raise NoTargetError(
        f"all {len(fitting)} nodes that fit are being replaced: repeat this in a minute, or name one with NODE=name"
    )


def release(directory: Path, target: Target) -> None:
    """Make the node available for a choice again."""
    (directory / CLAIMS / target.instance).unlink(missing_ok=True)


def _spot_instances(stack: LocalStack) -> set[str]:
    pages = stack.client("ec2").get_paginator("describe_instances").paginate()
    return {
        str(instance["InstanceId"])
        for page in pages
        for reservation in page["Reservations"]
        for instance in reservation["Instances"]
        if instance.get("InstanceLifecycle") == "spot"
    }


def _named(name: str, nodes: Sequence[Target]) -> Target:
    name = name.removeprefix("node/")
    for target in nodes:
        if name in {target.name, target.short, target.instance}:
            return target
    hint = did_you_mean(name, [target.short for target in nodes])
    raise NoTargetError(f"NODE={name}: no such node, expected one of {_listed([one.short for one in nodes])}{hint}")


def _unfit(named: Target, request: Request, fitting: Sequence[Target]) -> str:
    if request.group not in {None, named.group}:
        return f"NODE={named.short} is of group {named.group}, not of {request.group}: name one of the two"
    return (
        f"NODE={named.short} is no spot instance, and only these get the event: {_listed([t.short for t in fitting])}"
    )


def _claim(directory: Path, target: Target) -> bool:
    """Create the node's claim; return False where another process has done so lately."""
    claim = directory / CLAIMS / target.instance
    try:
        if time.time() - claim.stat().st_mtime > CLAIM_SECONDS:
            claim.unlink(missing_ok=True)
    except FileNotFoundError:
        pass  # no claim, or another process has just replaced an old one
    try:
        claim.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "none at all"
