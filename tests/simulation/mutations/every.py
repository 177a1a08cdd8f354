"""Every broken build that seeds catch, and the few of both forms that each version tries in `make test`."""

from hashlib import sha256

from leeward import __version__
from tests.simulation.mutations.accounts import OF_ACCOUNTS
from tests.simulation.mutations.build import Mutation
from tests.simulation.mutations.capacity import OF_CAPACITY
from tests.simulation.mutations.clusters import OF_CLUSTERS
from tests.simulation.mutations.disrupting import OF_DISRUPTION
from tests.simulation.mutations.draining import OF_DRAINS
from tests.simulation.mutations.ending import OF_ENDS
from tests.simulation.mutations.imaging import OF_ALIASES
from tests.simulation.mutations.managing import OF_MANAGED_GROUPS
from tests.simulation.mutations.notifying import OF_NOTIFICATIONS
from tests.simulation.mutations.plant import Planted
from tests.simulation.mutations.planted import PLANTED
from tests.simulation.mutations.reconciling import OF_RECONCILER
from tests.simulation.mutations.shifting import OF_SHIFTS
from tests.simulation.mutations.upgrading import OF_UPGRADES

EVERY: tuple[Mutation, ...] = (
    *OF_DRAINS,
    *OF_CAPACITY,
    *OF_RECONCILER,
    *OF_UPGRADES,
    *OF_ENDS,
    *OF_DISRUPTION,
    *OF_MANAGED_GROUPS,
    *OF_ALIASES,
    *OF_CLUSTERS,
    *OF_ACCOUNTS,
    *OF_SHIFTS,
    *OF_NOTIFICATIONS,
)
VERSION = __version__


def chosen(version: str = VERSION, number: int = 3) -> tuple[Mutation, ...]:
    """Others with each version; the same on every machine."""
    return tuple(sorted(EVERY, key=lambda mutation: _lot(version, mutation.name))[:number])


def chosen_planted(version: str = VERSION, number: int = 2) -> tuple[Planted, ...]:
    """The same of the second form."""
    return tuple(sorted(PLANTED, key=lambda build: _lot(version, build.name))[:number])


def _lot(version: str, name: str) -> bytes:
    return sha256(f"{version} {name}".encode()).digest()
