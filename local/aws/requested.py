"""Resources and condition keys of a recorded call, as IAM evaluates them: ARNs, the table's leading keys, tags.

Covers the calls that Leeward's functions make on resources with an ARN. Every other call is on `*`, which no policy
that names a resource allows. Tags are read when the call is made: the resource may be gone later.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, unquote

from local.aws.calls import Call

TagsOf = Callable[[str, str], Mapping[str, str]]  # (group or template, name or id) -> tags


@dataclass(frozen=True, slots=True, kw_only=True)
class Requested:
    """One resource of a call. `context`: condition key -> values."""

    resource: str = "*"
    context: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return it as the control API shows it."""
        return {"resource": self.resource, "context": {key: list(values) for key, values in self.context.items()}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """Account and Region of the local AWS, and the tags of its resources."""

    account: str
    region: str
    tags_of: TagsOf

    def arn(self, service: str, resource: str) -> str:
        """Return the ARN of a resource of this account and Region."""
        return f"arn:aws:{service}:{self.region}:{self.account}:{resource}"


def requested(call: Call, path: str, query: str, body: bytes, home: Home) -> tuple[Requested, ...]:
    """Return the resources of a call; one is `*` where it names none."""
    found = _BY_SERVICE.get(call.service)
    resources = tuple(found(call, _parameters(call, body, query), path, home)) if found else ()
    return resources or (Requested(),)


def _parameters(call: Call, body: bytes, query: str) -> Mapping[str, Any]:
    """Return the parameters of a JSON call, else those of a form or of the query."""
    text = body.decode("utf-8", "replace")
    if call.protocol not in ("query", "ec2") and text[:1] == "{":
        found: Mapping[str, Any] = json.loads(text)
        return found
    return {name: values[0] for name, values in parse_qs(text or query).items()}


def _table(call: Call, given: Mapping[str, Any], _path: str, home: Home) -> Iterator[Requested]:
    if call.action == "BatchGetItem":
        for table, asked in given["RequestItems"].items():
            yield _items(home, table, *(key["pk"]["S"] for key in asked["Keys"]))
    elif call.action == "Query":
        values = (value["S"] for value in given["ExpressionAttributeValues"].values())
        yield _items(home, f"{given['TableName']}/index/{given['IndexName']}", *values)
    elif "Key" in given or "Item" in given:
        yield _items(home, given["TableName"], (given.get("Key") or given["Item"])["pk"]["S"])


def _items(home: Home, table: str, *keys: str) -> Requested:
    return Requested(resource=home.arn("dynamodb", f"table/{table}"), context={"dynamodb:LeadingKeys": keys})


def _group(call: Call, given: Mapping[str, Any], _path: str, home: Home) -> Iterator[Requested]:
    if call.action.startswith("Describe"):
        return
    named = given.get("AutoScalingGroupName") or given.get("InstanceId", "")
    resource = home.arn("autoscaling", f"autoScalingGroup:id:autoScalingGroupName/{named}")
    yield Requested(resource=resource, context=_tagged(home.tags_of("group", named)))


def _template(call: Call, given: Mapping[str, Any], _path: str, home: Home) -> Iterator[Requested]:
    if call.action == "CreateLaunchTemplateVersion":
        named = given.get("LaunchTemplateId") or given.get("LaunchTemplateName", "")
        resource = home.arn("ec2", f"launch-template/{named}")
        yield Requested(resource=resource, context=_tagged(home.tags_of("template", named)))


def _tagged(tags: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    return {f"aws:ResourceTag/{key}": (value,) for key, value in tags.items()}


def _role(_call: Call, given: Mapping[str, Any], _path: str, _home: Home) -> Iterator[Requested]:
    if "RoleArn" in given:
        yield Requested(resource=given["RoleArn"])


def _execution(_call: Call, given: Mapping[str, Any], _path: str, _home: Home) -> Iterator[Requested]:
    arn = given.get("stateMachineArn") or given.get("executionArn")
    if arn:
        yield Requested(resource=arn)


def _queue(_call: Call, given: Mapping[str, Any], _path: str, home: Home) -> Iterator[Requested]:
    if "QueueUrl" in given:
        yield Requested(resource=home.arn("sqs", given["QueueUrl"].rpartition("/")[2]))


def _parameter(_call: Call, given: Mapping[str, Any], _path: str, home: Home) -> Iterator[Requested]:
    for name in (given.get("Path") or given.get("Name"), *given.get("Names", ())):
        if name and name.startswith("/aws/service/"):
            yield Requested(resource=f"arn:aws:ssm:{home.region}::parameter{name}")
        elif name:
            yield Requested(resource=home.arn("ssm", f"parameter{name}"))


def _cluster(_call: Call, given: Mapping[str, Any], path: str, home: Home) -> Iterator[Requested]:
    _, _, *named = (unquote(part) for part in path.split("/"))
    if not named:  # ListClusters
        return
    cluster, *rest = named
    group = rest[1] if rest[:1] == ["node-groups"] else given.get("nodegroupName", "")
    yield Requested(resource=home.arn("eks", f"nodegroup/{cluster}/{group}/id" if group else f"cluster/{cluster}"))


def _managed_resource(_call: Call, _given: Mapping[str, Any], path: str, _home: Home) -> Iterator[Requested]:
    arn = unquote(path.rpartition("/")[2])
    yield Requested(context={"arc-zonal-shift:ResourceIdentifier": (arn,)})


def _bus(_call: Call, given: Mapping[str, Any], _path: str, home: Home) -> Iterator[Requested]:
    put = {(entry.get("EventBusName") or "default", str(entry.get("Source"))) for entry in given.get("Entries", ())}
    for bus, source in sorted(put):
        yield Requested(resource=home.arn("events", f"event-bus/{bus}"), context={"events:source": (source,)})


_BY_SERVICE: Mapping[str, Callable[[Call, Mapping[str, Any], str, Home], Iterator[Requested]]] = {
    "dynamodb": _table,
    "autoscaling": _group,
    "ec2": _template,
    "sts": _role,
    "states": _execution,
    "sqs": _queue,
    "ssm": _parameter,
    "eks": _cluster,
    "events": _bus,
    "arc-zonal-shift": _managed_resource,
}
