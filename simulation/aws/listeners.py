"""Listeners for what becomes of instances: the cluster, the event bus, the invariants, the story."""

from collections.abc import Callable
from dataclasses import dataclass

from simulation.asked import Asked
from simulation.aws.compute import SimInstance
from simulation.aws.events import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class Listeners:
    """Callbacks of a fleet. `changed` is called after every change that an observation of the world would show."""

    joined: Callable[[SimInstance], None]
    ended: Callable[[SimInstance], None]
    emit: Callable[[Event], None]
    changed: Callable[[], None]
    said: Callable[[str], None]
    asked: Callable[[Asked], None] = lambda _: None
    down: Callable[[SimInstance], None] = lambda _: None
    up: Callable[[SimInstance, bool], None] = lambda *_: None  # true: what ailed it is gone
