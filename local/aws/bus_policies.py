"""``AWS::Events::EventBusPolicy`` in CloudFormation, which ministack lacks: a statement of a bus's resource policy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ministack.services import eventbridge
from ministack.services.cloudformation import provisioners

from local.aws.pins import expect

_TYPE = "AWS::Events::EventBusPolicy"
Created = tuple[str, dict[str, str]]


def install() -> None:
    """Register the resource type."""
    expect("ministack", _TYPE not in provisioners._RESOURCE_HANDLERS, f"CloudFormation has {_TYPE} of its own now")
    expect("ministack", hasattr(eventbridge, "_event_bus_policies"), "eventbridge has no _event_bus_policies")
    provisioners._RESOURCE_HANDLERS[_TYPE] = {"create": _create, "update": _update, "delete": _delete}


def may_put(bus: str, account: str) -> bool:
    """Return whether the bus's policy lets the account put events, in the request's account and Region."""
    statements = (eventbridge._event_bus_policies.get(bus) or {}).get("Statement", ())
    root = f"arn:aws:iam::{account}:root"
    return any(
        one.get("Effect") == "Allow"
        and one.get("Action") == "events:PutEvents"
        and (one.get("Principal") or {}).get("AWS") == root
        for one in statements
    )


def _create(_logical_id: str, props: Mapping[str, Any], _stack_name: str) -> Created:
    bus, sid = str(props.get("EventBusName", "default")), str(props["StatementId"])
    policy = eventbridge._event_bus_policies.setdefault(bus, {"Version": "2012-10-17", "Statement": []})
    policy["Statement"] = [one for one in policy["Statement"] if one.get("Sid") != sid]
    policy["Statement"].append({**props["Statement"], "Sid": sid})
    return f"{bus}|{sid}", {}


def _update(
    _physical_id: str, old: Mapping[str, Any], new: Mapping[str, Any], stack_name: str, logical_id: str | None = None
) -> Created:
    _delete("", old)
    return _create(logical_id or "", new, stack_name)


def _delete(_physical_id: str, props: Mapping[str, Any]) -> None:
    eventbridge._remove_permission(
        {"EventBusName": props.get("EventBusName", "default"), "StatementId": props["StatementId"]}
    )
