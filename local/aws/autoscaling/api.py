"""The Auto Scaling calls that moto lacks or answers wrongly, as methods put onto moto's response class.

Each checks its request as AWS documents it and hands the rest to ``engine`` or to moto.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Mapping
from typing import Any

from moto.autoscaling.exceptions import AutoscalingClientError, ValidationError
from moto.autoscaling.responses import AutoScalingResponse
from moto.core.responses import ActionResult, EmptyResult

from local.aws.autoscaling import messages
from local.aws.autoscaling.engine import Engine, key_of, user_request_cause
from local.aws.autoscaling.hooks import GroupKey, Hook, Result, Transition
from local.aws.autoscaling.launch_instances import LaunchInstances
from local.aws.autoscaling.refreshes import InstanceRefreshes
from local.aws.autoscaling.waits import NoActiveAction
from local.aws.pins import expect

Call = Callable[[Any, dict[str, Any]], Any]
_NO_GROUP_NEEDED = {"CreateAutoScalingGroup", "PutScheduledUpdateGroupAction"}
_KEPT_ATTRIBUTES = {
    "CapacityRebalance": "capacity_rebalance",
    "MaxInstanceLifetime": "max_instance_lifetime",
    "DefaultInstanceWarmup": "default_instance_warmup",
    "DefaultCooldown": "default_cooldown",
    "TerminationPolicies": "termination_policies",
}


class AlreadyExists(AutoscalingClientError):
    """A group of that name exists."""

    code = "AlreadyExists"


class ResourceInUse(AutoscalingClientError):
    """The group still has instances."""

    code = "ResourceInUse"


class Api:
    """Our answers; every method gets moto's response object and the parsed parameters."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._launches = LaunchInstances(engine)
        self._refreshes = InstanceRefreshes()

    def install(self) -> None:
        """Put the answers onto moto's ``AutoScalingResponse``."""
        expect("moto", hasattr(AutoScalingResponse, "call_action"), "AutoScalingResponse has no call_action")
        own: dict[str, Call] = {
            "create_auto_scaling_group": self._create(AutoScalingResponse.create_auto_scaling_group),
            "update_auto_scaling_group": self._update(AutoScalingResponse.update_auto_scaling_group),
            "delete_auto_scaling_group": self.delete_group,
            "set_desired_capacity": self._set_desired(AutoScalingResponse.set_desired_capacity),
            "put_lifecycle_hook": self.put_hook,
            "describe_lifecycle_hooks": self.describe_hooks,
            "delete_lifecycle_hook": self.delete_hook,
            "complete_lifecycle_action": self.complete,
            "record_lifecycle_action_heartbeat": self.heartbeat,
            "launch_instances": self.launch_instances,
            "terminate_instance_in_auto_scaling_group": self.terminate_instance,
            "set_instance_health": self.set_health,
            "describe_scaling_activities": self.describe_activities,
            "start_instance_refresh": self._refreshes.start,
            "cancel_instance_refresh": self._refreshes.cancel,
            "describe_instance_refreshes": self._refreshes.describe,
        }
        for name, call in own.items():
            setattr(AutoScalingResponse, name, _method(call))
        AutoScalingResponse.call_action = _checked(AutoScalingResponse.call_action)  # type: ignore[method-assign]

    # -- groups --------------------------------------------------------------------------------------------------

    def _create(self, original: Callable[[Any], Any]) -> Call:
        def create(response: Any, parameters: dict[str, Any]) -> Any:
            backend = response.autoscaling_backend
            name = str(parameters.get("AutoScalingGroupName"))
            if name in backend.autoscaling_groups:
                raise AlreadyExists("AutoScalingGroup by this name already exists - A group with the name exists.")
            _check_sizes(parameters, parameters)
            key = GroupKey(account=backend.account_id, region=backend.region_name, name=name)
            for item in parameters.get("LifecycleHookSpecificationList") or []:
                self._engine.hooks.put(key, _hook(item, None))
            try:
                result = original(response)
            except Exception:
                self._engine.hooks.forget(key)
                raise
            _keep_attributes(backend.autoscaling_groups[name], parameters)
            return result

        return create

    def _update(self, original: Callable[[Any], Any]) -> Call:
        def update(response: Any, parameters: dict[str, Any]) -> Any:
            group = _group(response, parameters)
            sizes = {"MinSize": group.min_size, "MaxSize": group.max_size}
            _check_sizes({**sizes, **_sizes(parameters)}, parameters)
            result = original(response)
            _keep_attributes(group, parameters)
            return result

        return update

    def _set_desired(self, original: Callable[[Any], Any]) -> Call:
        def set_desired(response: Any, parameters: dict[str, Any]) -> Any:
            group = _group(response, parameters)
            wanted = int(parameters["DesiredCapacity"])
            text = f"New SetDesiredCapacity value {wanted} is {{}} {{}} for the AutoScalingGroup."
            if wanted > group.max_size:
                raise ValidationError(text.format("above max value", group.max_size))
            if wanted < group.min_size:
                raise ValidationError(text.format("below min value", group.min_size))
            return original(response)

        return set_desired

    def delete_group(self, response: Any, parameters: dict[str, Any]) -> Any:
        """DeleteAutoScalingGroup: refused while there are instances, unless forced; then no hook is asked."""
        group = _group(response, parameters)
        if group.instance_states and not parameters.get("ForceDelete"):
            raise ResourceInUse(
                "You cannot delete an AutoScalingGroup while there are instances or pending Spot instance request(s) "
                "still in the group."
            )
        group.desired_capacity = 0
        for state in list(group.instance_states):
            state.instance.terminate()
        group.instance_states.clear()
        response.autoscaling_backend.autoscaling_groups.pop(group.name)
        self._engine.forget(group)
        return EmptyResult()

    # -- hooks ---------------------------------------------------------------------------------------------------

    def put_hook(self, response: Any, parameters: dict[str, Any]) -> Any:
        """PutLifecycleHook: creates or updates; a notification target gets a test message."""
        group = _group(response, parameters)
        existing = self._engine.hooks.get(key_of(group), str(parameters["LifecycleHookName"]))
        hook = _hook(parameters, existing)
        self._engine.hooks.put(key_of(group), hook)
        if hook.target_arn and parameters.get("NotificationTargetARN"):
            messages.test_notification(self._engine.outbox, group, hook.target_arn)
        return EmptyResult()

    def describe_hooks(self, response: Any, parameters: dict[str, Any]) -> Any:
        """DescribeLifecycleHooks."""
        group = _group(response, parameters)
        names = parameters.get("LifecycleHookNames") or []
        hooks = [hook for hook in self._engine.hooks.of(key_of(group)) if not names or hook.name in names]
        return ActionResult({"LifecycleHooks": [_described(group.name, hook) for hook in hooks]})

    def delete_hook(self, response: Any, parameters: dict[str, Any]) -> Any:
        """DeleteLifecycleHook: outstanding actions end first, with ABANDON for launches and CONTINUE otherwise."""
        group = _group(response, parameters)
        name = str(parameters["LifecycleHookName"])
        hook = self._engine.hooks.get(key_of(group), name)
        if hook is None:
            raise ValidationError(f"No Lifecycle Hook found with name: {name}")
        self._engine.hooks.remove(key_of(group), name)
        result = Result.ABANDON if hook.transition is Transition.LAUNCHING else Result.CONTINUE
        for wait in self._engine.waits.held():
            if wait.group == key_of(group) and any(action.hook.name == name for action in wait.actions):
                self._engine.waits.answer(
                    key_of(group), name, instance_id=wait.instance_id, token=None, result=result
                )
        return EmptyResult()

    def complete(self, response: Any, parameters: dict[str, Any]) -> Any:
        """CompleteLifecycleAction, by instance id or token."""
        group = _group(response, parameters)
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
        """RecordLifecycleActionHeartbeat, by instance id or token."""
        group = _group(response, parameters)
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

    # -- instances -----------------------------------------------------------------------------------------------

    def launch_instances(self, response: Any, parameters: dict[str, Any]) -> Any:
        """LaunchInstances."""
        group = _group(response, parameters)
        return ActionResult(self._launches.answer(group, str(parameters.get("ClientToken")), parameters))

    def terminate_instance(self, response: Any, parameters: dict[str, Any]) -> Any:
        """TerminateInstanceInAutoScalingGroup: through the hooks; a second call changes nothing."""
        instance_id = str(parameters.get("InstanceId"))
        decrement = parameters.get("ShouldDecrementDesiredCapacity") is True
        state = _instance(response, instance_id)
        group = state.instance.autoscaling_group
        if state.lifecycle_state.startswith("Terminating"):
            return ActionResult({"Activity": self._latest(group, instance_id)})
        before = group.desired_capacity
        if decrement:
            if before - 1 < group.min_size:
                raise ValidationError(
                    f"Currently, desiredSize equals minSize ({group.min_size}). Terminating instance without "
                    "replacement will violate group's min size constraint. Either set shouldDecrementDesiredCapacity "
                    "flag to false or lower group's min size."
                )
            group.desired_capacity = before - 1
        cause = user_request_cause(instance_id, before, group.desired_capacity)
        activity = self._engine.begin_termination(group, state, cause)
        self._engine.reconcile(group)
        return ActionResult({"Activity": _shown(activity)})

    def set_health(self, response: Any, parameters: dict[str, Any]) -> Any:
        """SetInstanceHealth: the next health check replaces an unhealthy instance."""
        state = _instance(response, str(parameters.get("InstanceId")))
        state.health_status = str(parameters.get("HealthStatus"))
        return EmptyResult()

    def describe_activities(self, response: Any, parameters: dict[str, Any]) -> Any:
        """DescribeScalingActivities, newest first."""
        name = parameters.get("AutoScalingGroupName")
        groups = response.autoscaling_backend.describe_auto_scaling_groups([name] if name else [])
        wanted = parameters.get("ActivityIds") or []
        found = [item for group in groups for item in self._engine.activities.of(key_of(group))]
        kept = [_shown(item) for item in found if not wanted or item["ActivityId"] in wanted]
        return ActionResult({"Activities": kept[: int(parameters.get("MaxRecords") or 100)]})

    def _latest(self, group: Any, instance_id: str) -> dict[str, Any]:
        for item in self._engine.activities.of(key_of(group)):
            if item["InstanceId"] == instance_id:
                return _shown(item)
        raise ValidationError(f"The instance {instance_id} is not part of Auto Scaling group {group.name}.")


def _method(call: Call) -> Callable[[Any], Any]:
    def answer(response: Any) -> Any:
        return call(response, response._get_params())

    return answer


def _checked(original: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Unknown groups and instances become ValidationErrors; moto would fail on them with an internal error."""

    @functools.wraps(original)
    def call_action(response: Any) -> Any:
        try:
            return original(response)
        except (KeyError, StopIteration, IndexError):
            params = response._get_params()
            name = params.get("AutoScalingGroupName") or params.get("InstanceId") or params.get("InstanceIds")
            message = f"AutoScalingGroup name not found - AutoScalingGroup '{name}' not found"
            status, headers, body = response.serialized(ActionResult(ValidationError(message)))
            return status, headers, body

    return call_action


def _group(response: Any, parameters: Mapping[str, Any]) -> Any:
    name = parameters.get("AutoScalingGroupName")
    group = response.autoscaling_backend.autoscaling_groups.get(name)
    if group is None:
        raise ValidationError(f"AutoScalingGroup name not found - AutoScalingGroup '{name}' not found")
    return group


def _instance(response: Any, instance_id: str) -> Any:
    found = response.autoscaling_backend.describe_auto_scaling_instances([instance_id])
    if not found:
        raise ValidationError(f"Instance Id not found - No managed instance found for instance ID: {instance_id}")
    return found[0]


def _named(parameters: Mapping[str, Any]) -> dict[str, str | None]:
    named = {"instance_id": parameters.get("InstanceId"), "token": parameters.get("LifecycleActionToken")}
    if not any(named.values()):
        raise ValidationError("Either InstanceId or LifecycleActionToken must be specified")
    return named


def _sizes(parameters: Mapping[str, Any]) -> dict[str, Any]:
    names = ("MinSize", "MaxSize", "DesiredCapacity")
    return {name: parameters[name] for name in names if parameters.get(name) is not None}


def _check_sizes(sizes: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    low, high = int(sizes.get("MinSize") or 0), int(sizes.get("MaxSize") or 0)
    if low > high:
        raise ValidationError("Max bound must be greater than or equal to min bound")
    wanted = given.get("DesiredCapacity")
    if wanted is not None and not low <= int(wanted) <= high:
        raise ValidationError(f"Desired capacity:{wanted} must be between the specified min size:{low} and max size:{high}")


def _keep_attributes(group: Any, parameters: Mapping[str, Any]) -> None:
    for name, attribute in _KEPT_ATTRIBUTES.items():
        if parameters.get(name) is not None:
            setattr(group, attribute, parameters[name])


def _hook(item: Mapping[str, Any], existing: Hook | None) -> Hook:
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


def _shown(activity: Mapping[str, Any]) -> dict[str, Any]:
    hidden = {"InstanceId", "Place"}
    return {name: value for name, value in activity.items() if name not in hidden}
