"""One Auto Scaling group as a scenario acts on it and watches it, whatever stands behind: model, emulator or account.

Only sequences are compared, never times. EC2's words are lower case, Auto Scaling's begin with a capital."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from leeward.model.group import LAUNCHING, TERMINATING, HookResult, LifecycleHook
from leeward.ports.autoscaling import GroupChanges, Groups
from leeward.ports.compute import Instances, Templates

BEFORE_A_WAIT = {"Pending": "Pending:Wait", "Terminating": "Terminating:Wait"}
MOMENTS = {"Pending", "Terminating", "Pending:Proceed", "Terminating:Proceed", "pending", "shutting-down"}


class GroupWorld(Protocol):
    """`groups`, `instances`, `changes` and `templates` are the product's own ports. `exact`: the journal misses no
    state that lasts a moment.

    `short` and `long`: heartbeat time-outs in seconds, one that a scenario waits out and one that never ends in it.
    """

    groups: Groups
    instances: Instances
    changes: GroupChanges
    templates: Templates
    exact: bool
    short: int
    long: int

    def group(self, *, size: int = 1, maximum: int = 4, rebalance: bool = False) -> str:
        """A group of that size in two zones, MinSize 0, without hooks, all of it in service; its name."""
        ...

    def resize(self, group: str, desired: int) -> None:
        """SetDesiredCapacity by another owner."""
        ...

    def keep_at_least(self, group: str, minimum: int) -> None:
        """Another MinSize."""
        ...

    def end(self, instance: str) -> None:
        """TerminateInstances, past the group."""
        ...

    def call_unhealthy(self, instance: str) -> None:
        """SetInstanceHealth."""
        ...

    def recommend_rebalance(self, instance: str) -> None:
        """EC2 sees an elevated risk. Not to be had on an account."""
        ...

    def impair(self, instance: str) -> None:
        """Its system status check fails from now on. Not to be had on an account."""
        ...

    def balance(self) -> None:
        """Auto Scaling looks at the groups' zones. Not to be had on an account."""
        ...

    def journal(self, instance: str) -> Sequence[str]:
        """Every state so far, EC2's and the group's, in their order."""
        ...

    def reported(self, instance: str) -> Sequence[dict[str, Any]]:
        """The events about it that our rules let through, in their order."""
        ...

    def until(self, condition: Callable[[], Any], what: str) -> Any:
        """Let time pass until it is true, and give its value; fails with `what` when that never comes."""
        ...


def members(world: GroupWorld, group: str) -> list[str]:
    """The instances that the group lists and that are not leaving."""
    found = world.groups.describe([group])[group].instances
    return [member.id for member in found if not member.lifecycle.startswith("Terminating")]


def desired(world: GroupWorld, group: str) -> int:
    """Its desired capacity."""
    return world.groups.describe([group])[group].desired


def put_hook(
    world: GroupWorld,
    group: str,
    name: str = "drain",
    *,
    launching: bool = False,
    seconds: int | None = None,
    default: HookResult = HookResult.CONTINUE,
) -> None:
    """A hook that waits long unless reported otherwise."""
    transition = LAUNCHING if launching else TERMINATING
    hook = LifecycleHook(
        name=name, group=group, transition=transition, heartbeat_timeout=seconds or world.long, metadata="leeward"
    )
    world.groups.put_hook(hook, default_result=default)


def newcomer(world: GroupWorld, group: str, *known: str) -> str:
    """The instance that joins the group beside those known."""
    return str(
        world.until(
            lambda: next((one for one in members(world, group) if one not in known), None), f"another one in {group}"
        )
    )


def reaches(world: GroupWorld, instance: str, word: str) -> None:
    """Wait until it is, or has been, in that state."""
    world.until(lambda: word in world.journal(instance), f"{instance} becomes {word}")


def went(world: GroupWorld, instance: str, *expected: str) -> None:
    """Its group's words for it, from the beginning, were exactly these; the last one is waited for."""
    reaches(world, instance, expected[-1])
    seen, wanted = group_path(world, instance), settled(expected, exact=world.exact)
    assert seen == wanted, f"{instance} went {seen}, not {wanted}"


def group_path(world: GroupWorld, instance: str) -> list[str]:
    """The group's words alone."""
    return settled([word for word in world.journal(instance) if not word.islower()], exact=world.exact)


def settled(words: Sequence[str], *, exact: bool) -> list[str]:
    """Without `Pending` and `Terminating` where they only announce the wait that follows; and where moments are not
    seen for sure, without them.
    """
    following = [*words[1:], ""]
    kept = [word for word, after in zip(words, following, strict=True) if BEFORE_A_WAIT.get(word) != after or not after]
    return kept if exact else [word for word in kept if word not in MOMENTS]
