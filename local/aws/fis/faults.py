"""Effects of the actions: spot interruptions by EC2, zonal shifts by ARC, and waiting."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from moto.ec2.models import ec2_backends
from moto.ec2.models.availability_zones_and_regions import RegionsAndZonesBackend

from local.aws.autoscaling.engine import Engine
from local.aws.autoscaling.patches import recommend_rebalance
from local.aws.autoscaling.rebalancing import RECOMMENDATION
from local.aws.ec2 import LIVE_STATES
from local.aws.fis.actions import INTERRUPT, NOTICE, SHIFT, duration
from local.aws.fis.errors import ActionFailed
from local.aws.fis.experiments import Fault
from local.aws.outbox import Event, Outbox
from local.aws.settings import Settings
from local.aws.timeline import Timeline
from local.aws.zonal_shifts import ZonalShifts

WARNING = "EC2 Spot Instance Interruption Warning"


class Causes:
    """Parts of the local AWS that an action acts on."""

    def __init__(
        self, settings: Settings, outbox: Outbox, timeline: Timeline, engine: Engine, zonal_shifts: ZonalShifts
    ) -> None:
        self.settings, self.outbox, self.timeline = settings, outbox, timeline
        self.engine, self.zonal_shifts = engine, zonal_shifts

    def fault(self, action: Mapping[str, Any], targets: Mapping[str, Sequence[str]]) -> Fault:
        """Return the effect of an action on the resources."""
        parameters = action.get("parameters") or {}
        match action["actionId"]:
            case known if known == INTERRUPT:
                return Interruptions(self, targets["SpotInstances"], duration(parameters["durationBeforeInterruption"]))
            case known if known == SHIFT:
                return Shift(self, targets["ManagedResources"], parameters)
            case _:
                return Wait(duration(parameters["duration"]))


class Wait:
    """Nothing, for a while."""

    def __init__(self, lasts: timedelta) -> None:
        self._lasts = lasts

    def begin(self) -> timedelta:
        """Return the duration."""
        return self._lasts

    def end(self, *, stopped: bool) -> None:
        """Do nothing."""


class Interruptions:
    """Interruptions of spot instances: the recommendation at once, the notice two minutes before EC2 takes them.

    The action is done as soon as EC2 knows: nothing ends when the experiment does.
    """

    def __init__(self, causes: Causes, arns: Sequence[str], before: timedelta) -> None:
        self._causes, self._before = causes, before
        self._instances = [arn.rpartition("/")[2] for arn in arns]

    def begin(self) -> timedelta:
        """Schedule what EC2 does."""
        after = self._causes.timeline.after
        for instance in self._instances:
            after(0.0, functools.partial(self._recommend, instance))
            after((self._before - NOTICE).total_seconds(), functools.partial(self._warn, instance))
            after(self._before.total_seconds(), functools.partial(self._interrupt, instance))
        return timedelta(0)

    def end(self, *, stopped: bool) -> None:
        """Do nothing: an interruption is not taken back."""

    def _alive(self, instance: str) -> Any | None:
        """Return the instance while EC2 can take it, None when it has ended before that."""
        settings = self._causes.settings
        found = ec2_backends[settings.account][settings.region].get_instance_by_id(instance)
        return found if found is not None and found.state in LIVE_STATES else None

    def _recommend(self, instance: str) -> None:
        if self._alive(instance) is not None:
            settings = self._causes.settings
            where = f"{settings.region}:{settings.account}"
            self._emit(RECOMMENDATION, instance, where, {"instance-id": instance})
            recommend_rebalance(self._causes.engine, instance)

    def _warn(self, instance: str) -> None:
        alive = self._alive(instance)
        if alive is not None:
            detail = {"instance-id": instance, "instance-action": "terminate"}
            self._emit(WARNING, instance, alive.placement.zone, detail)

    def _interrupt(self, instance: str) -> None:
        alive = self._alive(instance)
        if alive is not None:
            alive.terminate()

    def _emit(self, kind: str, instance: str, where: str, detail: Mapping[str, Any]) -> None:
        settings = self._causes.settings
        self._causes.outbox.emit(
            Event(
                source="aws.ec2",
                detail_type=kind,
                detail=detail,
                account=settings.account,
                region=settings.region,
                resources=(f"arn:aws:ec2:{where}:instance/{instance}",),
            )
        )


class Shift:
    """Zonal autoshift of clusters, for the duration of the action."""

    def __init__(self, causes: Causes, arns: Sequence[str], parameters: Mapping[str, str]) -> None:
        self._shifts = causes.zonal_shifts
        self._lasts, self._zone = duration(parameters["duration"]), self._zone_id(causes.settings.region, parameters)
        status = parameters.get("zonalAutoshiftStatus", "ENABLED")
        types = parameters.get("managedResourceTypes", "EKS").split(",")
        clusters = [arn.rpartition(":cluster/")[2] for arn in arns if ":cluster/" in arn and "EKS" in types]
        self._clusters = [name for name in clusters if status in {"ANY", self._shifts.autoshift(name)}]
        self._begun: list[str] = []

    @staticmethod
    def _zone_id(region: str, parameters: Mapping[str, str]) -> str:
        named = parameters["availabilityZoneIdentifier"]
        zones = RegionsAndZonesBackend.zones[region]
        found = next((zone.zone_id for zone in zones if named in {zone.name, zone.zone_id}), None)
        if found is None:
            raise ActionFailed("InvalidParameter", f"There is no zone {named} in {region}")
        return str(found)

    def begin(self) -> timedelta:
        """Begin the shifts. Raises ActionFailed where no resource is enabled, or one is shifted already."""
        if not self._clusters:
            raise ActionFailed("InvalidTarget", "No target resource has the autoshift status and type of the action")
        shifted = [name for name in self._clusters if self._shifts.in_effect(name) is not None]
        if shifted:
            raise ActionFailed("ConflictException", f"There is a zonal shift for {', '.join(shifted)}")
        for cluster in self._clusters:
            self._shifts.begin(cluster, self._zone, kind="FIS_EXPERIMENT", lasts=self._lasts)
            self._begun.append(cluster)
        return self._lasts

    def end(self, *, stopped: bool) -> None:
        """End them, with the event of a shift that is canceled where the experiment is stopped."""
        for cluster in self._begun:
            self._shifts.end(cluster, canceled=stopped)
