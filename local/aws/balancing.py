"""Load balancers of moto, with targets that drain.

moto forgets a target the moment it is deregistered. Here it is reported as `draining` for its group's deregistration
delay, in real seconds, and only then removed. Which node is deregistered is not decided here.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Mapping
from typing import Any

from moto.elbv2.models import ELBv2Backend, FakeHealthStatus, FakeTargetGroup

from local.aws.pins import expect, expect_parameters, replace

DELAY = "deregistration_delay.timeout_seconds"


def install(clock: Callable[[], float] = time.monotonic) -> None:
    """Patch deregistering and describing targets."""
    expect_parameters("moto", FakeTargetGroup.deregister, "self", "targets")
    expect_parameters("moto", ELBv2Backend.describe_target_health, "self", "target_group_arn", "targets")
    expect("moto", "attributes" in FakeTargetGroup.__init__.__code__.co_names, "target groups have no attributes")
    drains = _Drains(clock)
    replace(FakeTargetGroup, deregister=drains.around_deregister(FakeTargetGroup.deregister))
    replace(ELBv2Backend, describe_target_health=drains.around_describe(ELBv2Backend.describe_target_health))


class _Drains:
    """(ARN, target id) -> end of its draining, and its port."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._draining: dict[tuple[str, str], tuple[float, str]] = {}

    def around_deregister(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def deregister(group: Any, targets: list[Mapping[str, Any]]) -> None:
            ports = {target["Id"]: group.targets.get(target["Id"], {}).get("Port", group.port) for target in targets}
            original(group, targets)
            until = self._clock() + float(group.attributes[DELAY])
            for name, port in ports.items():
                self._draining[group.arn, name] = (until, str(port))

        return deregister

    def around_describe(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def describe_target_health(backend: Any, target_group_arn: str, targets: list[Mapping[str, Any]]) -> Any:
            found = original(backend, target_group_arn, targets)
            asked = {target["Id"] for target in targets}
            there = {one.instance_id for one in found if one.status != "unused"}
            drains = [one for one in self._of(target_group_arn) if one.instance_id not in there]
            wanted = [one for one in drains if not asked or one.instance_id in asked]
            names = {one.instance_id for one in wanted}
            return [*(one for one in found if one.instance_id not in names), *wanted]

        return describe_target_health

    def _of(self, arn: str) -> list[FakeHealthStatus]:
        now = self._clock()
        self._draining = {key: entry for key, entry in self._draining.items() if entry[0] > now}
        return [
            FakeHealthStatus(
                name,
                port,
                "traffic-port",
                "draining",
                "Target.DeregistrationInProgress",
                "Target deregistration is in progress",
            )
            for (group, name), (_, port) in self._draining.items()
            if group == arn
        ]
