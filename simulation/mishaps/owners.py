"""Owners who change a group beside the product: its MinSize, its zones, its instances by a refresh, and the replicas of
their Deployments."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Any, cast

from local.cluster.objects import name_of, namespace_of
from simulation.aws import activities

if TYPE_CHECKING:
    from simulation.aws.compute import SimGroup
    from simulation.site import Site
    from simulation.world import World

PUT_BACK = (300.0, 1800.0)  # seconds after which MinSize and zones are what they were
LEAVES_EVERY = 45.0  # seconds between two instances that leave a removed zone
REFRESHES_EVERY, REFRESHED = 200.0, 5  # seconds between two instances of a refresh, and the most that it replaces
FASTER = (120.0, 900.0)  # seconds until replicas are what they were
LOOKS_EVERY = 60.0  # seconds between two looks of an HPA, whose period is 15 s


class LimitsChange:
    """MinSize and zones of groups."""

    every = 500.0

    def __init__(self, scene: World | Site, random: Random) -> None:
        self._scene, self._random = scene, random
        self._changed: set[str] = set()

    def play(self) -> None:
        """Change one limit of a group for a while."""
        groups = [
            group
            for group in self._scene.fleet.groups.values()
            if not group.deleted and group.name not in self._changed
            and self._scene.system.managed_updates.of_group(group.name) is None
        ]  # fmt: skip
        if not groups:
            return
        group = self._random.choice(groups)
        self._changed.add(group.name)
        if len(group.plan.zones) > 1 and self._random.random() < 0.5:
            self._remove_zone(group)
        else:
            self._raise_minimum(group)

    def _raise_minimum(self, group: SimGroup) -> None:
        before, group.minimum = group.minimum, self._random.randint(max(group.desired - 2, 0), group.desired)
        self._scene.say(f"MinSize of {group.name} becomes {group.minimum}")
        _claim(group)

        def put_back() -> None:
            _claim(group)
            group.minimum = before if not group.deleted else 0
            self._finish(group, f"MinSize of {group.name} becomes {group.minimum} again")

        self._scene.timeline.after(self._random.uniform(*PUT_BACK), put_back, "an owner puts MinSize back")

    def _remove_zone(self, group: SimGroup) -> None:
        zones = group.plan.zones
        zone = self._random.choice(list(zones))
        group.plan = _with_zones(group, tuple(one for one in zones if one != zone))
        self._scene.say(f"the owner of {group.name} removes {zone} from it")
        leaving = [member for member in group.staying if member.zone == zone]
        for number, member in enumerate(leaving):
            gone = member
            self._scene.timeline.after(
                LEAVES_EVERY * number,
                lambda gone=gone: self._scene.fleet.end_member(gone, activities.BALANCED),  # type: ignore[misc]
                "a removed zone is left",
            )

        def put_back() -> None:
            group.plan = _with_zones(group, tuple(zones))
            self._finish(group, f"the owner of {group.name} adds {zone} to it again")

        self._scene.timeline.after(self._random.uniform(*PUT_BACK), put_back, "an owner adds a zone")

    def _finish(self, group: SimGroup, line: str) -> None:
        self._changed.discard(group.name)
        self._scene.say(line)


class InstanceRefreshes:
    """Instance refreshes of groups: Auto Scaling replaces one instance after the other."""

    every = 1200.0

    def __init__(self, scene: World | Site, random: Random) -> None:
        self._scene, self._random = scene, random

    def play(self) -> None:
        """Begin a refresh of a group with more than one instance."""
        groups = [group for group in self._scene.fleet.groups.values() if len(group.staying) > 1]
        if groups:
            group = self._random.choice(groups)
            self._scene.say(f"the owner of {group.name} starts an instance refresh")
            self._replace(group, [member.id for member in group.staying][:REFRESHED])

    def _replace(self, group: SimGroup, old: list[str]) -> None:
        while old and (old[0] not in group.members or group.members[old[0]].leaving):
            old = old[1:]
        if old and not self._scene.over:
            self._scene.fleet.end_member(group.members[old[0]], activities.REFRESHED)
            rest = old[1:]
            self._scene.timeline.after(REFRESHES_EVERY, lambda: self._replace(group, rest), "an instance refresh")


class Replicas:
    """HorizontalPodAutoscaler of some Deployments."""

    every = 240.0

    def __init__(self, scene: World | Site, random: Random) -> None:
        self._scene, self._random = scene, random
        self._scaled: set[str] = set()
        self._governed: set[str] = set()

    def play(self) -> None:
        """Give a Deployment up to twice as many replicas for a while, or fewer."""
        if not self._governed:
            self._scene.timeline.after(LOOKS_EVERY, self._look, "an HPA looks")
        found = [one for one in self._scene.cluster.store.sorted("deployments") if _path(one) not in self._scaled]
        if not found:
            return
        deployment = self._random.choice(found)
        wanted = self._scene.replicas[_path(deployment)]
        replicas = max(1, round(wanted * self._random.choice((0.5, 1.5, 2.0))))
        self._scaled.add(_path(deployment))
        self._scale(_path(deployment), replicas)

        def put_back() -> None:
            self._scaled.discard(_path(deployment))
            self._scale(_path(deployment), wanted)

        self._scene.timeline.after(self._random.uniform(*FASTER), put_back, "an HPA scales")

    def _scale(self, path: str, replicas: int) -> None:
        space, _, name = path.partition("/")
        self._scene.say(f"an HPA scales {path} to {replicas}")
        self._scene.replicas[path] = replicas
        self._governed.add(path)
        body = {"metadata": {"name": name, "namespace": space}, "spec": {"replicas": replicas}}
        self._scene.cluster.scale("deployments", name, body, space)

    def _look(self) -> None:
        """Scale Deployments up again that others have made smaller, as the controller does at each of its periods."""
        for path in sorted(self._governed):
            space, _, name = path.partition("/")
            found = self._scene.cluster.store.find("deployments", name, space)
            if found is not None and found["spec"].get("replicas", 1) < self._scene.replicas[path]:
                self._scale(path, self._scene.replicas[path])
        self._scene.timeline.after(LOOKS_EVERY, self._look, "an HPA looks")


def _path(deployment: dict[str, Any]) -> str:
    return f"{namespace_of(deployment)}/{name_of(deployment)}"


def _with_zones(group: SimGroup, zones: tuple[str, ...]) -> Any:
    return replace(cast(Any, group.plan), zones=zones)


def _claim(group: SimGroup) -> None:
    """Write off the launches of ours that a MinSize makes the owner's: what it demands has nothing to offset
    (docs/designs/capacity-ledger.md).
    """
    group.book.written_off(group.book.most - (group.desired - group.minimum))
