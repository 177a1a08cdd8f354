"""Policies that are removed, or narrowed so that a group is not selected any more, while terminations, upgrades and
runs of their groups are under way. Most are deployed again later."""

from __future__ import annotations

from dataclasses import replace
from fnmatch import fnmatchcase
from random import Random
from typing import TYPE_CHECKING

from leeward.policy.document import GroupSelector, NodePolicy

if TYPE_CHECKING:
    from simulation.site import Site
    from simulation.world import World

AWAY = (120.0, 2400.0)  # seconds until the policy is as it was
FOR_GOOD = 0.25  # share of those that stay away


class LostPolicies:
    """Policies of a cluster. One is away at a time, apart from those that stay away."""

    every = 800.0

    def __init__(self, scene: World | Site, random: Random) -> None:
        self._scene, self._random = scene, random
        self._away = False

    def play(self) -> None:
        """Remove a policy, or narrow its selector; one policy at least is left as it is."""
        written = self._scene.policies
        if self._away or len(written.policies) < 2:
            return
        policy = self._random.choice(written.policies)
        narrower = self._narrowed(policy) if self._random.random() < 0.5 else None
        at = written.policies.index(policy)
        changed = (*written.policies[:at], *((narrower,) if narrower else ()), *written.policies[at + 1 :])
        what = "is removed" if narrower is None else f"selects {', '.join(narrower.selector.groups)} alone"
        self._scene.say(f"policy {policy.name} {what}")
        self._scene.rewrite(replace(written, policies=changed))
        if self._random.random() >= FOR_GOOD:
            self._away = True
            pause = self._random.uniform(*AWAY)
            self._scene.timeline.after(pause, lambda: self._put_back(policy), "a policy is deployed again")

    def _narrowed(self, policy: NodePolicy) -> NodePolicy | None:
        """Return the policy without one of its groups; None where it has one group alone."""
        groups = [
            name
            for name in self._scene.fleet.groups
            if any(fnmatchcase(name, pattern) for pattern in policy.selector.groups)
        ]
        if len(groups) < 2:
            return None
        groups.remove(self._random.choice(groups))
        return replace(policy, selector=GroupSelector(groups=tuple(groups)))

    def _put_back(self, policy: NodePolicy) -> None:
        self._away = False
        written = self._scene.policies
        others = tuple(one for one in written.policies if one.name != policy.name)
        self._scene.say(f"policy {policy.name} is deployed again")
        self._scene.rewrite(replace(written, policies=(*others, policy)))
