"""EC2 instances that take a moment to boot and to shut down, release their address, and send their state changes to
EventBridge.

moto starts and ends instances at once and keeps a dead instance's network interface. This module does not decide which
instance starts or ends.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from moto.ec2.models import EC2Backend
from moto.ec2.models.instances import Instance, InstanceState

from local.aws.journal import Journal
from local.aws.outbox import Event, Outbox
from local.aws.pins import expect, expect_parameters, replace
from local.aws.timeline import Timeline

_PENDING = ("pending", 0)
_RUNNING = ("running", 16)
_SHUTTING_DOWN = ("shutting-down", 32)
_TERMINATED = ("terminated", 48)
LIVE_STATES = frozenset({"pending", "running"})


@dataclass(slots=True, kw_only=True)
class Pace:
    """Seconds that an instance takes to boot and to shut down; they may be changed at any time."""

    boot: float = 0.2
    shutdown: float = 1.0


def install(outbox: Outbox, timeline: Timeline, journal: Journal, pace: Pace) -> None:
    """Patch moto's ``run_instances`` and ``Instance.terminate``."""
    expect_parameters("moto", Instance.terminate, "self")
    expect_parameters("moto", EC2Backend.terminate_instances, "self", "instance_ids")
    expect("moto", hasattr(EC2Backend, "run_instances"), "EC2Backend has no run_instances")
    states = _States(outbox, timeline, journal, pace)
    replace(EC2Backend, run_instances=states.around_run(EC2Backend.run_instances))
    replace(Instance, terminate=states.around_terminate(Instance.terminate))


class _States:
    """State changes of instances over time."""

    def __init__(self, outbox: Outbox, timeline: Timeline, journal: Journal, pace: Pace) -> None:
        self._outbox = outbox
        self._timeline = timeline
        self._journal = journal
        self._pace = pace

    def around_run(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def run_instances(backend: Any, *args: Any, **kwargs: Any) -> Any:
            reservation = original(backend, *args, **kwargs)
            for instance in reservation.instances:
                self._enter(instance, _PENDING)
                self._timeline.after(self._pace.boot, functools.partial(self._booted, instance))
            return reservation

        return run_instances

    def around_terminate(self, original: Callable[[Any], Any]) -> Callable[[Any], Any]:
        @functools.wraps(original)
        def terminate(instance: Any) -> Any:
            if instance.state not in ("shutting-down", "terminated"):
                previous = original(instance)
                _give_addresses_back(instance)
                self._enter(instance, _SHUTTING_DOWN)
                self._timeline.after(self._pace.shutdown, functools.partial(self._enter, instance, _TERMINATED))
                return previous
            return InstanceState(instance.state, instance.state_code)

        return terminate

    def _booted(self, instance: Any) -> None:
        if instance.state == "pending":
            self._enter(instance, _RUNNING)

    def _enter(self, instance: Any, state: tuple[str, int]) -> None:
        instance._state.name, instance._state.code = state
        self._journal.note(instance.id, state[0])
        backend = instance.ec2_backend
        arn = f"arn:aws:ec2:{backend.region_name}:{backend.account_id}:instance/{instance.id}"
        self._outbox.emit(
            Event(
                source="aws.ec2",
                detail_type="EC2 Instance State-change Notification",
                detail={"instance-id": instance.id, "state": state[0]},
                account=backend.account_id,
                region=backend.region_name,
                resources=(arn,),
            )
        )


def _give_addresses_back(instance: Any) -> None:
    backend = instance.ec2_backend
    for interface in list(instance.nics.values()):
        interface.subnet.del_subnet_ip(interface.private_ip_address)
        backend.enis.pop(interface.id, None)
