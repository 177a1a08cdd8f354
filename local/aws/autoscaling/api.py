"""Auto Scaling calls that moto lacks or answers wrongly, as methods added to moto's response class.

Each checks its request as AWS documents it and hands the rest to ``engine`` or to moto.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from moto.autoscaling.exceptions import AutoscalingClientError, ValidationError
from moto.autoscaling.responses import AutoScalingResponse
from moto.core.responses import ActionResult, EmptyResult

from local.aws.autoscaling.engine import Engine, key_of, user_request_cause
from local.aws.autoscaling.hook_calls import HookCalls, hook_from
from local.aws.autoscaling.hooks import GroupKey
from local.aws.autoscaling.launch_instances import LaunchInstances
from local.aws.autoscaling.lookups import group_of, instance_of
from local.aws.autoscaling.refreshes import InstanceRefreshes
from local.aws.autoscaling.resizing import note_resize
from local.aws.pins import expect, replace

Call = Callable[[Any, dict[str, Any]], Any]
_KEPT_ATTRIBUTES = {
    "CapacityRebalance": "capacity_rebalance",
    "MaxInstanceLifetime": "max_instance_lifetime",
    "DefaultInstanceWarmup": "default_instance_warmup",
    "DefaultCooldown": "default_cooldown",
    "TerminationPolicies": "termination_policies",
}


class AlreadyExists(AutoscalingClientError):
    """Error: a group of that name exists."""

    code = "AlreadyExists"


class ResourceInUse(AutoscalingClientError):
    """Error: the group still has instances."""

    code = "ResourceInUse"


class Api:
    """Answers of this emulator; every method gets moto's response object and the parsed parameters."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._launches = LaunchInstances(engine)
        self._refreshes = InstanceRefreshes(engine)

    def install(self) -> None:
        """Add the answers to moto's ``AutoScalingResponse``."""
        expect("moto", hasattr(AutoScalingResponse, "call_action"), "AutoScalingResponse has no call_action")
        hooks = HookCalls(self._engine)
        own: dict[str, Call] = {
            "create_auto_scaling_group": self._create(AutoScalingResponse.create_auto_scaling_group),
            "update_auto_scaling_group": self._update(AutoScalingResponse.update_auto_scaling_group),
            "delete_auto_scaling_group": self.delete_group,
            "set_desired_capacity": self._set_desired(AutoScalingResponse.set_desired_capacity),
            "put_lifecycle_hook": hooks.put,
            "describe_lifecycle_hooks": hooks.describe,
            "delete_lifecycle_hook": hooks.delete,
            "complete_lifecycle_action": hooks.complete,
            "record_lifecycle_action_heartbeat": hooks.heartbeat,
            "launch_instances": self.launch_instances,
            "terminate_instance_in_auto_scaling_group": self.terminate_instance,
            "set_instance_health": self.set_health,
            "describe_scaling_activities": self.describe_activities,
            "start_instance_refresh": self._refreshes.start,
            "cancel_instance_refresh": self._refreshes.cancel,
            "describe_instance_refreshes": self._refreshes.describe,
        }
        replace(AutoScalingResponse, **{name: _method(call) for name, call in own.items()})
        replace(AutoScalingResponse, call_action=_checked(AutoScalingResponse.call_action))

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
                self._engine.hooks.put(key, hook_from(item, None))
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
            group = group_of(response, parameters)
            sizes = {"MinSize": group.min_size, "MaxSize": group.max_size}
            _check_sizes({**sizes, **_sizes(parameters)}, parameters)
            result = original(response)
            _keep_attributes(group, parameters)
            return result

        return update

    def _set_desired(self, original: Callable[[Any], Any]) -> Call:
        def set_desired(response: Any, parameters: dict[str, Any]) -> Any:
            group = group_of(response, parameters)
            wanted = int(parameters["DesiredCapacity"])
            text = f"New SetDesiredCapacity value {wanted} is {{}} {{}} for the AutoScalingGroup."
            if wanted > group.max_size:
                raise ValidationError(text.format("above max value", group.max_size))
            if wanted < group.min_size:
                raise ValidationError(text.format("below min value", group.min_size))
            note_resize(group, group.desired_capacity, wanted)
            return original(response)

        return set_desired

    def delete_group(self, response: Any, parameters: dict[str, Any]) -> Any:
        """Answer DeleteAutoScalingGroup: refused while there are instances, unless forced; then no hook runs."""
        group = group_of(response, parameters)
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

    # -- instances -----------------------------------------------------------------------------------------------

    def launch_instances(self, response: Any, parameters: dict[str, Any]) -> Any:
        """Answer LaunchInstances."""
        group = group_of(response, parameters)
        return ActionResult(self._launches.answer(group, str(parameters.get("ClientToken")), parameters))

    def terminate_instance(self, response: Any, parameters: dict[str, Any]) -> Any:
        """Answer TerminateInstanceInAutoScalingGroup: the instance goes through the hooks; a second call changes
        nothing.
        """
        instance_id = str(parameters.get("InstanceId"))
        decrement = parameters.get("ShouldDecrementDesiredCapacity") is True
        state = instance_of(response, instance_id)
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
        """Answer SetInstanceHealth: the next health check replaces an unhealthy instance."""
        state = instance_of(response, str(parameters.get("InstanceId")))
        state.health_status = str(parameters.get("HealthStatus"))
        return EmptyResult()

    def describe_activities(self, response: Any, parameters: dict[str, Any]) -> Any:
        """Answer DescribeScalingActivities, newest first."""
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
    """Raise ValidationErrors for unknown groups and instances; moto would fail on them with an internal error."""

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


def _sizes(parameters: Mapping[str, Any]) -> dict[str, Any]:
    names = ("MinSize", "MaxSize", "DesiredCapacity")
    return {name: parameters[name] for name in names if parameters.get(name) is not None}


def _check_sizes(sizes: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    low, high = int(sizes.get("MinSize") or 0), int(sizes.get("MaxSize") or 0)
    if low > high:
        raise ValidationError("Max bound must be greater than or equal to min bound")
    wanted = given.get("DesiredCapacity")
    if wanted is not None and not low <= int(wanted) <= high:
        raise ValidationError(
            f"Desired capacity:{wanted} must be between the specified min size:{low} and max size:{high}"
        )


def _keep_attributes(group: Any, parameters: Mapping[str, Any]) -> None:
    for name, attribute in _KEPT_ATTRIBUTES.items():
        if parameters.get(name) is not None:
            setattr(group, attribute, parameters[name])


def _shown(activity: Mapping[str, Any]) -> dict[str, Any]:
    hidden = {"InstanceId", "Place"}
    return {name: value for name, value in activity.items() if name not in hidden}
