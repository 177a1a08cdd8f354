"""Properties that ministack's CloudFormation drops silently: reserved concurrency and time to live."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from ministack.services import dynamodb, lambda_svc
from ministack.services.cloudformation import provisioners

from local.aws.pins import expect, expect_parameters

_FUNCTION = "AWS::Lambda::Function"
_TABLE = "AWS::DynamoDB::Table"
After = Callable[[str, Mapping[str, Any]], None]


def install() -> None:
    """Wrap creating and updating functions and tables."""
    expect_parameters("ministack", lambda_svc._put_function_concurrency, "func_name", "data")
    expect_parameters("ministack", lambda_svc._delete_function_concurrency, "func_name")
    expect_parameters("ministack", dynamodb._update_ttl, "data")
    for kind, after in ((_FUNCTION, _set_concurrency), (_TABLE, _set_time_to_live)):
        handler = provisioners._RESOURCE_HANDLERS.get(kind, {})
        expect("ministack", {"create", "update"} <= set(handler), f"CloudFormation cannot create and update {kind}")
        handler["create"] = _creating(handler["create"], after)
        handler["update"] = _updating(handler["update"], after)


def _creating(original: Callable[..., Any], after: After) -> Callable[..., Any]:
    @functools.wraps(original)
    def create(logical_id: str, props: Mapping[str, Any], stack_name: str) -> Any:
        created = original(logical_id, props, stack_name)
        after(created[0], props)
        return created

    return create


def _updating(original: Callable[..., Any], after: After) -> Callable[..., Any]:
    @functools.wraps(original)
    def update(
        physical_id: str, old: Any, new: Mapping[str, Any], stack_name: str, logical_id: str | None = None
    ) -> Any:
        updated = original(physical_id, old, new, stack_name, logical_id)
        after(updated[0] if isinstance(updated, tuple) else physical_id, new)
        return updated

    return update


def _set_concurrency(name: str, props: Mapping[str, Any]) -> None:
    reserved = props.get("ReservedConcurrentExecutions")
    if reserved is None:
        lambda_svc._delete_function_concurrency(name)
    else:
        lambda_svc._put_function_concurrency(name, {"ReservedConcurrentExecutions": int(reserved)})


def _set_time_to_live(name: str, props: Mapping[str, Any]) -> None:
    wanted = props.get("TimeToLiveSpecification")
    if wanted:
        enabled = str(wanted.get("Enabled", True)).lower() == "true"
        specification = {"AttributeName": wanted.get("AttributeName", ""), "Enabled": enabled}
        dynamodb._update_ttl({"TableName": name, "TimeToLiveSpecification": specification})
