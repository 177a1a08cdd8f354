"""Last observation of its instance on AWS by a termination: it is passed in the record from step to step.

`leeward.termination.situation` alone decides which of it a step may use, and for how long."""

from dataclasses import dataclass
from datetime import datetime

from leeward.model.group import GroupFacts, LifecycleHook

GONE = "terminated"  # also for an instance that EC2 no longer knows


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenInstance:
    """Answer of EC2 at one moment. `member`: its tag names an Auto Scaling group; `networks`: the addresses of its
    interfaces, as `model.instance.Instance` has them.
    """

    at: datetime
    state: str
    member: bool = True
    networks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenGroup:
    """Answer of Auto Scaling at one moment. `facts` None: there is no such group; `lifecycle`: its state of the
    instance, None if it holds it no longer; `hooks`: all terminate hooks of the group. Sizes and other members are left
    out: steps that depend on them read them.
    """

    at: datetime
    facts: GroupFacts | None
    lifecycle: str | None
    hooks: tuple[LifecycleHook, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """Both observations, each with its own moment; None if not read yet."""

    instance: SeenInstance | None = None
    group: SeenGroup | None = None
