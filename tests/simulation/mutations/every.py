"""Every broken build, and the three that each version of the project tries in `make test`."""

import tomllib
from hashlib import sha256
from pathlib import Path

from tests.simulation.mutations.build import Mutation
from tests.simulation.mutations.capacity import OF_CAPACITY
from tests.simulation.mutations.draining import OF_DRAINS
from tests.simulation.mutations.sweeping import OF_SWEEPS

EVERY: tuple[Mutation, ...] = (*OF_DRAINS, *OF_CAPACITY, *OF_SWEEPS)
VERSION = tomllib.loads(Path("pyproject.toml").read_text())["project"]["version"]


def chosen(version: str = VERSION, number: int = 3) -> tuple[Mutation, ...]:
    """Others with each version; the same on every machine."""
    return tuple(sorted(EVERY, key=lambda mutation: sha256(f"{version} {mutation.name}".encode()).digest())[:number])
