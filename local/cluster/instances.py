"""What the bridge sees of AWS: the instances of one cluster, and where that list comes from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NotRequired, Protocol, TypedDict

from botocore.config import Config

NEVER_JOIN = "local.leeward.dev/never-join"
NODE_LABEL = "local.leeward.dev/node-label/"  # + key: what EKS bootstraps the nodes of a managed node group with
NODE_TAINT = "local.leeward.dev/node-taint/"  # + key; the value is VALUE:EFFECT
SOURCE_TEMPLATE = "local.leeward.dev/source-template"  # ID:VERSION of the user's template that EKS has copied
_NOT_TERMINATED = ["pending", "running", "stopping", "stopped", "shutting-down"]


class Instance(TypedDict):
    """One EC2 instance. `state` is EC2's word, `launchTime` seconds since 1970, `lifecycle` `spot` or None."""

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
    """Where the bridge asks. The answer is complete: an instance that is missing from it is gone."""

    def list_instances(self) -> list[Instance]: ...


class Ec2Instances:
    """The instances tagged for a cluster (`kubernetes.io/cluster/NAME`), by DescribeInstances.

    Terminated ones are not asked for: the local EC2 never forgets one, and with every poll the list would cost more."""

    def __init__(self, cluster_name: str, *, endpoint_url: str | None = None, region: str | None = None) -> None:
        import boto3

        config = Config(connect_timeout=2, read_timeout=10, retries={"max_attempts": 1})
        self._client = boto3.client("ec2", endpoint_url=endpoint_url, region_name=region, config=config)
        self._tag = f"kubernetes.io/cluster/{cluster_name}"

    def list_instances(self) -> list[Instance]:
        """Raises botocore's errors: the bridge keeps what it knows until the next poll."""
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
    """An element of DescribeInstances, in the bridge's words."""
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
