"""Instances of one cluster as the bridge reads them from AWS, and the source of that list."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NotRequired, Protocol, TypedDict

from botocore.config import Config

NEVER_JOIN = "local.leeward.dev/never-join"
BOOTS = "local.leeward.dev/boots"  # number of reboots
NEVER_RETURN = "local.leeward.dev/never-return"  # from a reboot
NODE_LABEL = "local.leeward.dev/node-label/"  # + key: labels that EKS gives to the nodes of a managed node group
NODE_TAINT = "local.leeward.dev/node-taint/"  # + key; the value is VALUE:EFFECT
SOURCE_TEMPLATE = "local.leeward.dev/source-template"  # ID:VERSION of the user's template that EKS has copied
_NOT_TERMINATED = ["pending", "running", "stopping", "stopped", "shutting-down"]


class Instance(TypedDict):
    """EC2 instance. `state` is EC2's value, `launchTime` seconds since 1970, `lifecycle` `spot` or None."""

    instanceId: str
    zone: str
    subnetId: str
    instanceType: str
    privateDnsName: str
    state: str
    launchTime: float
    tags: dict[str, str]
    lifecycle: str | None
    imageId: NotRequired[str]


class InstanceSource(Protocol):
    """Source of the bridge's instances. The answer is complete: an instance that is missing from it is terminated."""

    def list_instances(self) -> list[Instance]: ...


class Ec2Instances:
    """Source of the instances tagged for a cluster (`kubernetes.io/cluster/NAME`), by DescribeInstances.

    Terminated ones are not requested: the local EC2 never deletes one, and the list would grow with every poll.
    """

    def __init__(self, cluster_name: str, *, endpoint_url: str | None = None, region: str | None = None) -> None:
        import boto3

        config = Config(connect_timeout=2, read_timeout=10, retries={"max_attempts": 1})
        self._client = boto3.client("ec2", endpoint_url=endpoint_url, region_name=region, config=config)
        self._tag = f"kubernetes.io/cluster/{cluster_name}"

    def list_instances(self) -> list[Instance]:
        """Return the instances. Raises botocore's errors: the bridge keeps its state until the next poll."""
        paginator = self._client.get_paginator("describe_instances")
        wanted = {"tag-key": [self._tag], "instance-state-name": _NOT_TERMINATED}
        pages = paginator.paginate(Filters=[{"Name": name, "Values": values} for name, values in wanted.items()])
        return [
            instance_of(found)
            for page in pages
            for reservation in page["Reservations"]
            for found in reservation["Instances"]
        ]


def instance_of(found: Mapping[str, Any]) -> Instance:
    """Return an element of DescribeInstances as an `Instance`."""
    return Instance(
        instanceId=found["InstanceId"],
        zone=(found.get("Placement") or {}).get("AvailabilityZone", ""),
        subnetId=found.get("SubnetId") or "",
        instanceType=found.get("InstanceType") or "",
        privateDnsName=found.get("PrivateDnsName") or "",
        state=found["State"]["Name"],
        launchTime=found["LaunchTime"].timestamp(),
        tags={tag["Key"]: tag["Value"] for tag in found.get("Tags") or []},
        lifecycle=found.get("InstanceLifecycle"),
        imageId=found.get("ImageId") or "",
    )
