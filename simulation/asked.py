"""Requests about instances, recorded by the simulated AWS and by the operators of the world when they happened.

The rules read from here when EC2 takes an instance and which requests delete pods. Nothing of it comes from the
product."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """Source of a request that an instance terminates."""

    SPOT = "spot"
    RESERVATION = "capacity reservation"  # is taken back, and the instance with it
    BLOCK = "capacity block"  # ends, and the instance with it
    REBALANCE = "rebalance"
    MAINTENANCE = "maintenance"
    MANUAL = "manual"
    ILL = "ill"  # its kubelet has fallen silent
    LIFTED = "lifted"  # an operator has lifted its taint or cordon: no request that it terminates


WARNINGS = frozenset({Kind.SPOT, Kind.RESERVATION})  # two minutes ahead, and never cancelled


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One request. `at` in seconds since 1970. `key` names an event that may be announced again; `takes`: when EC2
    takes it; `deletes`: a manual drain whose flags let pods be deleted past their budgets, or give them another grace;
    `keeps`: one that leaves the instance in service, cordoned; `refuses_unmanaged`, `refuses_local`: one whose flags
    refuse pods without a controller, or with local data.
    """

    at: float
    instance: str
    kind: Kind
    key: str = ""
    takes: float | None = None
    deletes: bool = False
    keeps: bool = False
    refuses_unmanaged: bool = False
    refuses_local: bool = False
    called_off: bool = False  # the event is cancelled


class AskedOf:
    """All requests, by instance. Fed with a journal as it grows."""

    def __init__(self) -> None:
        self._by_instance: dict[str, list[Asked]] = {}
        self._seen = 0

    def read(self, journal: Sequence[Asked]) -> None:
        """Add the new entries."""
        if len(journal) > self._seen:
            for asked in journal[self._seen :]:
                self._by_instance.setdefault(asked.instance, []).append(asked)
            self._seen = len(journal)

    def of(self, instance: str) -> Sequence[Asked]:
        """Return the requests about the instance, in the order of time."""
        return self._by_instance.get(instance, ())

    def is_warned(self, instance: str) -> bool:
        """Return whether EC2 has warned that it takes the instance two minutes later."""
        return any(asked.kind in WARNINGS for asked in self.of(instance))

    def taken_at(self, instance: str, now: float) -> float | None:
        """Return the earliest moment for which EC2 has announced to take the instance; None without one. A maintenance
        date counts while it stands, and `HANDLED_WITHIN` longer: the message that moved it may still be under way.
        """
        return min(self._dates(instance, now), default=None)

    def _dates(self, instance: str, now: float) -> Iterator[float]:
        latest: dict[str, Asked] = {}
        for asked in self.of(instance):
            if asked.called_off:
                before = latest.pop(asked.key, None)
                if before is not None and before.takes is not None and now - asked.at < HANDLED_WITHIN:
                    yield before.takes
            if asked.takes is None:
                continue
            if asked.kind in WARNINGS:
                yield asked.takes
                continue
            before = latest.get(asked.key)
            if before is not None and before.takes is not None and now - asked.at < HANDLED_WITHIN:
                yield before.takes
            latest[asked.key] = asked
        yield from (one.takes for one in latest.values() if one.takes is not None and now < one.takes + PASSED)


HANDLED_WITHIN = 600.0  # seconds: until a message that was sent has been handled, with all its faults
PASSED = 60.0  # an instance that runs so long after its date was not taken
