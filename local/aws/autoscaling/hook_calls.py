"""Calls about lifecycle hooks: put, describe, delete, complete, heartbeat. The waiting itself is in ``waits``."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from moto.autoscaling.exceptions import ValidationError
from moto.core.responses import ActionResult, EmptyResult

from local.aws.autoscaling import messages
from local.aws.autoscaling.engine import Engine, key_of
from local.aws.autoscaling.hooks import Hook, Result, Transition
from local.aws.autoscaling.lookups import group_of
from local.aws.autoscaling.waits import NoActiveAction


class HookCalls:
    """Answers of this emulator; every method gets moto's response object and the parsed parameters."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def put(self, response: Any, parameters: dict[str, Any]) -> Any:
        """Answer PutLifecycleHook: create or update; a new notification target gets a test message."""
        group = group_of(response, parameters)
        existing = self._engine.hooks.get(key_of(group), str(parameters["LifecycleHookName"]))
        hook = hook_from(parameters, existing)
        self._engine.hooks.put(key_of(group), hook)
        if hook.target_arn and parameters.get("NotificationTargetARN"):
            messages.test_notification(self._engine.outbox, group, hook.target_arn)
        return EmptyResult()

    def describe(self, response: Any, parameters: dict[str, Any]) -> Any:
        """Answer DescribeLifecycleHooks."""
        group = group_of(response, parameters)
        names = parameters.get("LifecycleHookNames") or []
        hooks = [hook for hook in self._engine.hooks.of(key_of(group)) if not names or hook.name in names]
        return ActionResult({"LifecycleHooks": [_described(group.name, hook) for hook in hooks]})

    def delete(self, response: Any, parameters: dict[str, Any]) -> Any:
        """Answer DeleteLifecycleHook: outstanding actions end first, with ABANDON for launches and CONTINUE
        otherwise.
        """
        group = group_of(response, parameters)
        name = str(parameters["LifecycleHookName"])
        hook = self._engine.hooks.get(key_of(group), name)
        if hook is None:
            raise ValidationError(f"No Lifecycle Hook found with name: {name}")
        self._engine.hooks.remove(key_of(group), name)
        result = Result.ABANDON if hook.transition is Transition.LAUNCHING else Result.CONTINUE
        for wait in self._engine.waits.held():
            if wait.group == key_of(group) and any(action.hook.name == name for action in wait.actions):
                self._engine.waits.answer(key_of(group), name, instance_id=wait.instance_id, token=None, result=result)
        return EmptyResult()

    def complete(self, response: Any, parameters: dict[str, Any]) -> Any:
        """Answer CompleteLifecycleAction, by instance id or token."""
        group = group_of(response, parameters)
        answer = str(parameters.get("LifecycleActionResult"))
        if answer not in set(Result):
            raise ValidationError("LifecycleActionResult must be CONTINUE or ABANDON")
        named = _named(parameters)
        self._or_refuse(
            named,
            lambda: self._engine.waits.answer(
                key_of(group), str(parameters["LifecycleHookName"]), **named, result=Result(answer)
            ),
        )
        return EmptyResult()

    def heartbeat(self, response: Any, parameters: dict[str, Any]) -> Any:
        """Answer RecordLifecycleActionHeartbeat, by instance id or token."""
        group = group_of(response, parameters)
        named = _named(parameters)
        self._or_refuse(
            named,
            lambda: self._engine.waits.heartbeat(
                key_of(group), str(parameters["LifecycleHookName"]), **named, now=time.monotonic()
            ),
        )
        return EmptyResult()

    def _or_refuse(self, named: Mapping[str, str | None], act: Callable[[], None]) -> None:
        try:
            act()
        except NoActiveAction:
            if named["instance_id"]:
                message = f"No active Lifecycle Action found with instance ID {named['instance_id']}"
            else:
                message = f"No active Lifecycle Action found with token {named['token']}"
            raise ValidationError(message) from None


def hook_from(item: Mapping[str, Any], existing: Hook | None) -> Hook:
    """Return a hook as a request describes it, merged over the known one. Raises moto's ``ValidationError``."""
    transition = item.get("LifecycleTransition") or (existing.transition.value if existing else None)
    if transition not in set(Transition):
        raise ValidationError("LifecycleTransition must be one of " + ", ".join(Transition))
    timeout = int(item.get("HeartbeatTimeout") or (existing.heartbeat_timeout if existing else 3600))
    default = item.get("DefaultResult") or (existing.default_result if existing else Result.ABANDON)
    return Hook(
        name=str(item["LifecycleHookName"]),
        transition=Transition(transition),
        heartbeat_timeout=timeout,
        default_result=Result(default),
        target_arn=item.get("NotificationTargetARN") or (existing.target_arn if existing else None),
        role_arn=item.get("RoleARN") or (existing.role_arn if existing else None),
        metadata=item.get("NotificationMetadata") or (existing.metadata if existing else None),
    )


def _described(group: str, hook: Hook) -> dict[str, Any]:
    return {
        "LifecycleHookName": hook.name,
        "AutoScalingGroupName": group,
        "LifecycleTransition": hook.transition.value,
        "NotificationTargetARN": hook.target_arn,
        "RoleARN": hook.role_arn,
        "NotificationMetadata": hook.metadata,
        "HeartbeatTimeout": hook.heartbeat_timeout,
        "GlobalTimeout": hook.global_timeout,
        "DefaultResult": hook.default_result.value,
    }


def _named(parameters: Mapping[str, Any]) -> dict[str, str | None]:
    named = {"instance_id": parameters.get("InstanceId"), "token": parameters.get("LifecycleActionToken")}
    if not any(named.values()):
        raise ValidationError("Either InstanceId or LifecycleActionToken must be specified")
    return named
