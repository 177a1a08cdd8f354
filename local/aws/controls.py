"""Routes of the control API that belong to no other module.

| route | body, or what it gives |
|---|---|
| GET health | endpoint and region |
| POST events | an event as EventBridge delivers it; time, id, resources, region and account optional; gives the id |
| POST, DELETE faults | service, action?, code, status, message?, times (null: until deleted), function? |
| POST, DELETE capacity | zone?, subnet?, type?, market?, code?, times?: launches that match are refused |
| GET, DELETE calls | per function, how often it made which AWS call |
| GET requests | each different request of a function: action, resource, condition keys |
| GET hooks | the instances that lifecycle hooks hold |
| GET journal/INSTANCE | every state it was in, EC2's in lower case and its group's, in their order |
| POST balance | every group looks at its zones now, as AZRebalance does from time to time |
| PUT pace | boot, shutdown: seconds that instances take from now on |
| GET, PUT time-scale | factor: real seconds per second of state machine waits and time-outs |
| POST, GET, DELETE lambda/kill | function, afterSeconds, times: invocations whose process is killed |
| PUT health-check | hooksForDeadInstances: whether an instance that died runs its terminate hooks |
| PUT instances/ID | launchedSecondsAgo: EC2 reports that launch time from now on |
| PUT status-checks/ID | impaired: system, instance, attached-ebs; secondsAgo?; in ``status_checks`` |
| PUT scheduled-events/ID | code, inSeconds, description?: EC2's event of an instance; in ``status_checks`` |
| PUT capacity-blocks/ID | ends, instances, warns?: a Capacity Block, which ends them; in ``capacity_blocks`` |
| PUT quotas | by code: service quotas of EC2; in ``quotas`` |
| PUT subnets/ID | freeIps: what others who use the subnet leave free; null: they leave it; in ``subnets`` |
| PUT accounts, POST forwarded | in ``accounts`` |
| PUT, DELETE zonal-shifts/CLUSTER | awayFrom: a zone id; shiftType?, seconds?, silent?; in ``zonal_shifts`` |
| PUT eks/NAME, GET access-entries?cluster=NAME | in ``eks.clusters`` |
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

from moto.ec2.models import ec2_backends

from local.aws.autoscaling.engine import Engine
from local.aws.autoscaling.patches import HealthSwitch, balance_zones, recommend_rebalance
from local.aws.autoscaling.rebalancing import RECOMMENDATION
from local.aws.autoscaling.shape import Shortage
from local.aws.control import BadRequest, Control, Request
from local.aws.faults import Fault, Faults
from local.aws.lambdas.kills import Kills
from local.aws.moto_backend import model_lock
from local.aws.outbox import Event, Outbox
from local.aws.recording import Recording
from local.aws.settings import Settings
from local.aws.stepfunctions.clock import ScaledClock


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """Parts of the emulator that the control API changes."""

    settings: Settings
    outbox: Outbox
    engine: Engine
    health: HealthSwitch
    faults: Faults
    recording: Recording
    clock: ScaledClock
    kills: Kills


def add_routes(control: Control, parts: Parts) -> None:
    """Register every route of this module."""
    settings, engine, kills = parts.settings, parts.engine, parts.kills
    faults, recording, clock = parts.faults, parts.recording, parts.clock
    control.add("GET", "health", lambda _: {"endpoint": settings.endpoint, "region": settings.region})
    control.add("POST", "events", lambda request: _event(parts, request))
    control.add("POST", "faults", lambda request: faults.add(Fault(**request.body)))
    control.add("DELETE", "faults", lambda _: faults.clear())
    control.add("POST", "capacity", lambda request: _shortage(engine, request))
    control.add("DELETE", "capacity", lambda _: engine.shortages.clear())
    control.add("GET", "calls", lambda _: recording.by_function())
    control.add("GET", "requests", lambda _: recording.requests())
    control.add("DELETE", "calls", lambda _: recording.clear())
    control.add("POST", "balance", lambda _: _balance(engine))
    control.add("PUT", "pace", lambda request: _pace(engine, request))
    control.add("GET", "time-scale", lambda _: {"factor": clock.factor})
    control.add("PUT", "time-scale", lambda request: clock.set_factor(float(request.body["factor"])))
    control.add("POST", "lambda/kill", lambda request: _kill(kills, request))
    control.add("GET", "lambda/kill", lambda _: kills.remaining())
    control.add("DELETE", "lambda/kill", lambda _: kills.clear())
    control.add("PUT", "instances/{id}", lambda request: _launched(settings, request))
    control.add("GET", "hooks", lambda _: _held(engine))
    control.add("GET", "journal/{instance}", lambda request: _journal(engine, request))
    control.add("PUT", "health-check", lambda request: _health(parts.health, request))


def _event(parts: Parts, request: Request) -> dict[str, str]:
    body, settings = request.body, parts.settings
    if not isinstance(body.get("detail"), dict) or not body.get("source") or not body.get("detail-type"):
        raise BadRequest('an event needs "source", "detail-type" and an object "detail"')
    time = datetime.fromisoformat(body["time"].replace("Z", "+00:00")) if body.get("time") else datetime.now(UTC)
    event = Event(
        source=body["source"],
        detail_type=body["detail-type"],
        detail=body["detail"],
        account=str(body.get("account") or settings.account),
        region=str(body.get("region") or settings.region),
        resources=tuple(body.get("resources") or ()),
        id=str(body.get("id") or uuid4()),
        time=time,
        bus=(settings.account, settings.region),
    )
    parts.outbox.emit(event)
    if event.detail_type == RECOMMENDATION:
        with model_lock:
            recommend_rebalance(parts.engine, str(event.detail.get("instance-id")))
    return {"id": event.id}


def _balance(engine: Engine) -> None:
    with model_lock:
        balance_zones(engine)


def _pace(engine: Engine, request: Request) -> None:
    engine.pace.boot, engine.pace.shutdown = float(request.body["boot"]), float(request.body["shutdown"])


def _shortage(engine: Engine, request: Request) -> None:
    names = {"zone": "zone", "subnet": "subnet", "type": "instance_type", "market": "market"}
    given = {names.get(name, name): value for name, value in request.body.items()}
    with model_lock:
        engine.shortages.add(Shortage(**given))


def _launched(settings: Settings, request: Request) -> None:
    ago = timedelta(seconds=float(request.body["launchedSecondsAgo"]))
    with model_lock:
        backend = ec2_backends[settings.account][settings.region]
        backend.get_instance(request.path["id"]).launch_time = datetime.now(UTC).replace(tzinfo=None) - ago


def _kill(kills: Kills, request: Request) -> None:
    body = request.body
    kills.arm(str(body["function"]), float(body.get("afterSeconds", 0.5)), int(body.get("times", 1)))


def _health(health: HealthSwitch, request: Request) -> None:
    health.hooks_for_dead = bool(request.body["hooksForDeadInstances"])


def _journal(engine: Engine, request: Request) -> list[str]:
    with model_lock:
        return engine.journal.of(request.path["instance"])


def _held(engine: Engine) -> list[dict[str, Any]]:
    with model_lock:
        return [
            {
                "instance": wait.instance_id,
                "group": wait.group.name,
                "transition": wait.transition.value,
                "hooks": [action.hook.name for action in wait.actions],
            }
            for wait in engine.waits.held()
        ]
