"""Updates of the stack, during which execution environments of two versions of Leeward share the table."""

from __future__ import annotations

from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any, cast

from leeward.adapters.aws.record_items import record_of
from leeward.disruption.record import DisruptionRecord
from leeward.model.codec import decode, decode_item, encode
from leeward.model.termination import Cause, CauseKind, Subject, TerminationRecord, execution_name
from leeward.upgrade.record import UpgradeRecord
from simulation.asked import Asked, Kind
from simulation.aws.compute import subnet_of
from simulation.aws.items import delivered, termination_item
from simulation.aws.wire import R, Wire
from simulation.scene import subject

if TYPE_CHECKING:
    from simulation.site import Site
    from simulation.world import World

LASTS, NEWER = (120.0, 420.0), 0.5  # seconds of an update, and the share of the newer environments during one
UNREADABLE = 0.1  # share of a newer environment's records with a word that decides and that the older cannot read
NEW_KIND, FUTURE = "rack_retired", {"since": 7, "of": ["a"]}


class TwoVersions:
    """Updates of the stack; during each, an operator with the newer command line asks for drains."""

    every = 900.0

    def __init__(self, scene: World | Site, random: Random) -> None:
        self._scene, self._random = scene, random
        system = scene.system
        wire = system.claims.wire
        if not isinstance(wire, TwoWires):
            wire = TwoWires(scene, random)
            system.claims.wire = system.upgrades.table.wire = system.disruptions.table.wire = wire
        self._wire = wire

    def play(self) -> None:
        """Begin an update, unless one is under way."""
        lasts = self._wire.update(self._random.uniform(*LASTS))
        for _ in range(2):
            self._scene.timeline.after(self._random.uniform(0, lasts), self._drain, "the newer version drains a node")

    def _drain(self) -> None:
        """Claim an instance for a cause of a kind that the older version does not know."""
        member, now = subject(self._scene, self._random.getrandbits(16)), self._scene.timeline.instant()
        if member is None or not member.joined:
            return
        self._scene.say(f"the newer version drains {member.id} for a cause that the older does not know")
        self._scene.asked.append(Asked(at=now.timestamp(), instance=member.id, kind=Kind.MANUAL))
        cause = Cause(id=f"{NEW_KIND}#{now}", kind=CauseKind.MANUAL, at=now)
        asked = Subject(
            instance=member.id,
            cluster=self._scene.cluster_name,
            group=member.group,
            zone=member.zone,
            subnet=subnet_of(member.zone),
            instance_type=member.type,
            capacity_type=member.described().capacity_type,
            node=member.node,
        )
        record = self._scene.system.claims.claim(asked, cause, now)
        self._scene.started_manually.add(member.id)
        name = execution_name(record.instance, record.attempt)
        self._scene.system.machine.start(name, {"instance": member.id})


class TwoWires(Wire):
    """Items of two versions. Once an update is over, every environment knows what is in them."""

    def __init__(self, scene: World | Site, random: Random) -> None:
        self._scene, self._random = scene, Random(f"{random.random()}/wire")
        self._until, self._versions = 0.0, dict[str, bool]()
        self._newer, self._unreadable = set[str](), set[str]()  # keys

    def update(self, lasts: float) -> float:
        """Begin an update of so many seconds; return for how long the present one still lasts."""
        now = self._scene.timeline.now()
        if now >= self._until:
            self._scene.say(f"an update of the stack lasts {lasts:.0f} s")
            self._until = now + lasts
            for known in (self._versions, self._newer, self._unreadable):
                known.clear()
        return self._until - now

    def written(self, key: str) -> None:
        """Mark what a newer environment writes."""
        if self._scene.timeline.now() < self._until and self._is_newer() and key not in self._newer:
            self._newer.add(key)
            if self._random.random() < UNREADABLE:
                self._unreadable.add(key)

    def parsed(self, key: str, record: R) -> R:
        """Return the record by way of its item, as the calling environment parses it."""
        knows = self._scene.timeline.now() >= self._until or self._is_newer()
        strange = key in self._unreadable and not knows
        if isinstance(record, TerminationRecord):
            item = termination_item(record)
            for id_, raw in item["causes"].items():
                if not knows and id_.startswith(NEW_KIND):
                    raw["kind"] = NEW_KIND
            if strange:
                item["status"] = "suspended"
            parts = () if knows else (item, item["subject"], *item["causes"].values())
            return cast(R, record_of(self._with_future(key, item, parts)))
        assert isinstance(record, UpgradeRecord | DisruptionRecord)
        item = {"pk": key, **encode(record)}
        if strange:
            item["control" if isinstance(record, UpgradeRecord) else "method"] = "hurry"
        inner = (item["target"],) if isinstance(record, UpgradeRecord) else item["commands"]
        item = self._with_future(key, item, () if knows else (item, *inner))
        return cast(R, decode_item(item, partial(decode, type(record))))

    def _with_future(self, key: str, item: dict[str, Any], parts: Any) -> dict[str, Any]:
        if key in self._newer:
            for part in parts:
                part["future"] = FUTURE
        return delivered(item)

    def _is_newer(self) -> bool:
        environment = self._scene.system.environment()
        if environment not in self._versions:
            self._versions[environment] = not environment or self._random.random() < NEWER
        return self._versions[environment]
