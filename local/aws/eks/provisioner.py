"""``AWS::EKS::AccessEntry`` in CloudFormation, which ministack lacks: it is kept in the same store as the API's
calls.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ministack.services.cloudformation import provisioners

from local.aws.eks.access_entries import AccessEntries, AccessEntryError
from local.aws.pins import expect, expect_parameters

_TYPE = "AWS::EKS::AccessEntry"
Created = tuple[str, dict[str, str]]


def install(entries: AccessEntries) -> None:
    """Register the resource type."""
    expect_parameters(
        "ministack", provisioners._provision_resource, "resource_type", "logical_id", "props", "stack_name"
    )
    expect("ministack", _TYPE not in provisioners._RESOURCE_HANDLERS, f"CloudFormation has {_TYPE} of its own now")

    def create(_logical_id: str, props: Mapping[str, Any], _stack_name: str) -> Created:
        try:
            entry = entries.create(str(props["ClusterName"]), _as_call(props))
        except AccessEntryError as refused:
            raise ValueError(f"{_TYPE}: {refused}") from refused
        return _identity(entry)

    def update(physical_id: str, old: Mapping[str, Any], new: Mapping[str, Any], stack_name: str) -> Created:
        if any(old.get(name) != new.get(name) for name in ("ClusterName", "PrincipalArn", "Type")):
            created = create("", new, stack_name)
            delete(physical_id, old)
            return created
        return _identity(entries.update(str(new["ClusterName"]), str(new["PrincipalArn"]), _as_call(new)))

    def delete(_physical_id: str, props: Mapping[str, Any]) -> None:
        try:
            entries.delete(str(props["ClusterName"]), str(props["PrincipalArn"]))
        except AccessEntryError:
            return  # already deleted, with its cluster or manually: the requested state

    provisioners._RESOURCE_HANDLERS[_TYPE] = {"create": create, "update": update, "delete": delete}


def _as_call(props: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "principalArn": props.get("PrincipalArn"),
        "kubernetesGroups": props.get("KubernetesGroups") or [],
        "username": props.get("Username"),
        "type": props.get("Type"),
        "tags": {tag["Key"]: tag["Value"] for tag in props.get("Tags") or []},
    }


def _identity(entry: Mapping[str, Any]) -> Created:
    physical = f"{entry['principalArn']}|{entry['clusterName']}"
    return physical, {"AccessEntryArn": str(entry["accessEntryArn"])}
