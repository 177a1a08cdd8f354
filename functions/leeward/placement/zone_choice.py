"""Order among the zones in which a replacement may be launched, by more than cores and addresses.

Decides which zones come first or last; none is dropped, because a node in the wrong zone is better than none."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from leeward.model.group import AZ_REBALANCE, Group
from leeward.model.lifecycle import PRESENT, role_of
from leeward.model.termination import LaunchOption
from leeward.placement.verdict import listed

EVEN = 1  # nodes by which zones of a group may differ without a launch and an end by AZRebalance
_NAMED = 3  # pods in one sentence


@dataclass(frozen=True, slots=True, kw_only=True)
class ZoneRefusals:
    """Pods (`namespace/name`) that have to move and may not run on a new node, by its zone."""

    alone: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # unless other pods of their node come along
    draining: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # while the node that leaves still exists
    gone: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # also when its Node object is deleted


NO_REFUSALS = ZoneRefusals()


def even_zones(group: Group, leaving: str) -> frozenset[str]:
    """Return the zones in which a launch leaves the group's zones within `EVEN` nodes of each other, without the
    instance that leaves. All others cost a second drain: AZRebalance launches where a node is missing, and then ends a
    healthy node elsewhere. None where that process is suspended.
    """
    if AZ_REBALANCE in group.suspended:
        return frozenset()
    members = [one for one in group.instances if one.id != leaving and role_of(one.lifecycle) in PRESENT]
    counts = Counter(dict.fromkeys(group.zones, 0))
    counts.update(one.zone for one in members)

    def is_even(zone: str) -> bool:
        after = {**counts, zone: counts[zone] + 1}.values()
        return max(after) - min(after) <= EVEN

    return frozenset(zone for zone in counts if is_even(zone))


def in_even_zones_first(options: Sequence[LaunchOption], even: frozenset[str]) -> tuple[LaunchOption, ...]:
    """Return the options, those in even zones first. The first one says so where that moved it."""
    ordered = _sorted(options, lambda option: option.zone not in even)
    if ordered == tuple(options):
        return ordered
    why = f"{ordered[0].why}; AZRebalance would move a node otherwise"
    return (replace(ordered[0], why=why), *ordered[1:])


def refusing_last(options: Sequence[LaunchOption], refusals: Mapping[str, tuple[str, ...]]) -> tuple[LaunchOption, ...]:
    """Return the options, those whose zones refuse the fewest pods first."""
    return _sorted(options, lambda option: len(refusals.get(option.zone, ())))


def explained(options: Sequence[LaunchOption], refusals: ZoneRefusals) -> tuple[LaunchOption, ...]:
    """Return the options, each with the pods that may not run there; the first also with the other zones that it was
    preferred to.
    """
    told = [_with_refused(option, refusals) for option in options]
    if told and told[0] is options[0] and (others := [o.zone for o in options if refusals.draining.get(o.zone)]):
        pods = _pods(refusals.draining[others[0]])
        told[0] = replace(told[0], why=f"{told[0].why}; {pods} may not run in {listed(sorted(others))}")
    return tuple(told)


def _with_refused(option: LaunchOption, refusals: ZoneRefusals) -> LaunchOption:
    if pods := refusals.gone.get(option.zone):
        return replace(option, why=f"{option.why}; {_pods(pods)} may not run there")
    if pods := refusals.draining.get(option.zone):
        return replace(option, why=f"{option.why}; {_pods(pods)} may run there only when the old node is gone")
    if pods := refusals.alone.get(option.zone):
        return replace(option, why=f"{option.why}; {_pods(pods)} may run there only if others of the node do")
    return option


def _pods(names: Sequence[str]) -> str:
    more = [f"{len(names) - _NAMED} more"] if len(names) > _NAMED else []
    return f"{'pod' if len(names) == 1 else 'pods'} {listed([*names[:_NAMED], *more])}"


def _sorted(options: Sequence[LaunchOption], rank: Callable[[LaunchOption], int]) -> tuple[LaunchOption, ...]:
    return tuple(sorted(options, key=rank))
