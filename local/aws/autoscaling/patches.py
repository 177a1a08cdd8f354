"""Patches by which moto's Auto Scaling models call our engine instead of their own code."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from moto.autoscaling.models import (
    AutoScalingBackend,
    FakeAutoScalingGroup,
    InstanceState,
    autoscaling_backends,
)

from local.aws.autoscaling import rebalancing
from local.aws.autoscaling.api import Api
from local.aws.autoscaling.engine import Engine
from local.aws.autoscaling.resizing import note_update
from local.aws.pins import expect, expect_parameters, replace

HEALTH_SECONDS = 1.0
HOOK_SECONDS = 0.1


@dataclass(slots=True)
class HealthSwitch:
    """Switch: True if an instance that died on its own still goes through its terminate hooks, as on AWS."""

    hooks_for_dead: bool = False


def install(engine: Engine, health: HealthSwitch) -> None:
    """Patch capacity changes, EC2's notice of a terminated instance and the launch template shown for an instance."""
    expect_parameters("moto", FakeAutoScalingGroup.set_desired_capacity, "self", "new_capacity")
    expect_parameters("moto", AutoScalingBackend.notify_terminate_instances, "self", "instance_ids")
    expect("moto", isinstance(InstanceState.launch_template, property), "InstanceState.launch_template is no property")

    def set_desired_capacity(group: Any, new_capacity: int | None) -> None:
        group.desired_capacity = group.min_size if new_capacity is None else new_capacity
        engine.reconcile(group)

    def notify_terminate_instances(_backend: Any, _instance_ids: list[str]) -> None:
        """Do nothing: the health check notices terminated instances, as on AWS."""

    replace(
        FakeAutoScalingGroup,
        update=_keeping(FakeAutoScalingGroup.update),
        set_desired_capacity=set_desired_capacity,
    )
    replace(AutoScalingBackend, notify_terminate_instances=notify_terminate_instances)
    replace(InstanceState, launch_template=property(_launched_from))
    Api(engine).install()
    engine.timeline.every(HOOK_SECONDS, engine.expire_hooks)
    engine.timeline.every(HEALTH_SECONDS, lambda: _check_groups(engine, health))


def recommend_rebalance(engine: Engine, instance_id: str) -> None:
    """Recommend a rebalance: EC2 sees an elevated risk for an instance, and its group may act on that. The caller holds
    the model's lock.
    """
    for group in _groups():
        at_risk = rebalancing.wanted(group, instance_id)
        if at_risk is not None:
            engine.replace_early(group, at_risk)


def balance_zones(engine: Engine) -> None:
    """Run AZRebalance at a moment of the caller's choice. The caller holds the model's lock."""
    for group in _groups():
        engine.balance_zones(group)


def _check_groups(engine: Engine, health: HealthSwitch) -> None:
    for group in _groups():
        engine.check_health(group, hooks_for_dead=health.hooks_for_dead)


def _groups() -> list[Any]:
    backends = [backend for account in list(autoscaling_backends.values()) for backend in list(account.values())]
    return [group for backend in backends for group in list(backend.autoscaling_groups.values())]


def _keeping(original: Callable[..., None]) -> Callable[..., None]:
    """Return an update that keeps properties it does not name; moto drops the mixed instances policy, and counts
    terminating instances when it fits the desired capacity into new bounds."""

    @functools.wraps(original)
    def update(group: Any, **given: Any) -> None:
        low = group.min_size if given["min_size"] is None else given["min_size"]
        high = group.max_size if given["max_size"] is None else given["max_size"]
        if given["desired_capacity"] is None:
            given["desired_capacity"] = min(max(group.desired_capacity, low), high)
        note_update(group, (low, high), given["desired_capacity"])
        if given["launch_template"] or given["mixed_instances_policy"]:
            group.launch_config = group.launch_configuration_name = None
        if given["mixed_instances_policy"]:
            vars(group).pop("provided_launch_template_version", None)
        elif not given["launch_template"] and not given["launch_config_name"]:
            given["mixed_instances_policy"] = _as_given(group.mixed_instances_policy)
        original(group, **given)

    return update


def _as_given(policy: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return a stored policy as a request may carry it: the template named by its id alone."""
    if not policy:
        return None
    copied = copy.deepcopy(policy)
    copied["LaunchTemplate"]["LaunchTemplateSpecification"].pop("LaunchTemplateName", None)
    return copied


def _launched_from(state: Any) -> dict[str, Any] | None:
    """Return the template version that the instance was launched from; moto shows the template's default version."""
    return getattr(state.instance, "launched_from", None)
