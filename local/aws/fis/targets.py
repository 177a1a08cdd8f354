"""Resources of an experiment's targets, looked up when it starts: running spot instances and managed resources.

AWS FIS selects by the output of the service's own API (FIS user guide, "Targets for AWS FIS"); so does this module,
through a client of this AWS. The caller therefore holds no lock and is not the event loop.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import boto3
from botocore.exceptions import ClientError

from local.aws.fis.actions import SPOT_INSTANCE
from local.aws.fis.errors import ActionFailed

MOST_BY_TAG = 5  # spot instances of one action, where the target has no ARNs: AWS FIS's default quota


def resolved(target: Mapping[str, Any], region: str) -> Sequence[str]:
    """Return the ARNs that a target selects. Raises ActionFailed where it selects none, or too many."""
    spot = target["resourceType"] == SPOT_INSTANCE
    found = _spot_instances(target, region) if spot else _managed_resources(target, region)
    selected = _selected(sorted(found), target["selectionMode"])
    if not selected:
        raise ActionFailed("InvalidTarget", "Target resolution returned empty set.")
    if spot and not target.get("resourceArns") and len(selected) > MOST_BY_TAG:
        message = f"Target resolution returned {len(selected)} resources, {MOST_BY_TAG} at most."
        raise ActionFailed("QuotaExceeded", message)
    return selected


def _spot_instances(target: Mapping[str, Any], region: str) -> Iterator[str]:
    arns = {arn.rpartition("/")[2]: arn for arn in target.get("resourceArns") or ()}
    tags = [{"Name": f"tag:{key}", "Values": [value]} for key, value in (target.get("resourceTags") or {}).items()]
    running = {"Name": "instance-state-name", "Values": ["running"]}
    by_id = [{"Name": "instance-id", "Values": sorted(arns)}] if arns else []
    pages = boto3.client("ec2", region_name=region).get_paginator("describe_instances")
    for page in pages.paginate(Filters=[*tags, *by_id, running]):
        for reservation in page["Reservations"]:
            for instance in reservation["Instances"]:
                if instance.get("InstanceLifecycle") == "spot" and _passes(instance, target.get("filters") or ()):
                    arn = f"arn:aws:ec2:{region}:{reservation['OwnerId']}:instance/{instance['InstanceId']}"
                    yield arns.get(instance["InstanceId"], arn)


def _managed_resources(target: Mapping[str, Any], region: str) -> Iterator[str]:
    """Return the ARNs that ARC knows; it has no tags."""
    client = boto3.client("arc-zonal-shift", region_name=region)
    for arn in target.get("resourceArns") or ():
        try:
            resource = client.get_managed_resource(resourceIdentifier=arn)
        except ClientError as error:
            if error.response["Error"]["Code"] != "ResourceNotFoundException":
                raise
        else:
            yield resource["arn"]


def _passes(described: Mapping[str, Any], filters: Iterable[Mapping[str, Any]]) -> bool:
    return all(set(_at(described, one["path"].split("."))) & set(one["values"]) for one in filters)


def _at(value: Any, path: Sequence[str]) -> Iterator[str]:
    """Return each value at a path such as `Placement.AvailabilityZone`; a list has those of its elements."""
    if isinstance(value, list):
        for one in value:
            yield from _at(one, path)
    elif not path:
        yield str(value)
    elif isinstance(value, Mapping) and path[0] in value:
        yield from _at(value[path[0]], path[1:])


def _selected(found: Sequence[str], mode: str) -> Sequence[str]:
    """Apply a selection mode; a percentage is rounded down, and what is selected is random."""
    word, _, number = mode.rstrip(")").partition("(")
    if word == "ALL":
        return found
    count = int(number) if word == "COUNT" else len(found) * int(number) // 100
    return sorted(random.sample(list(found), min(count, len(found))))
