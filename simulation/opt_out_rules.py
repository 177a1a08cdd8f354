"""Rule about pods that opt out of disruption: no run evicts them or deletes them.

Interruptions, manual drains and upgrades do not ask the opt-outs, nor does the offset of one of their launches
(docs/concepts.md)."""

import re
from collections.abc import Iterator, Mapping

from simulation.facts import News, group_of
from simulation.unasked_nodes import Unasked
from simulation.view import WorldView

OPT_OUTS: Mapping[str, tuple[str, ...]] = {
    "karpenter.sh/do-not-disrupt": ("true",),
    "leeward.dev/do-not-disrupt": ("true",),
    "karpenter.sh/do-not-evict": ("true",),
    "cluster-autoscaler.kubernetes.io/safe-to-evict": ("false", "on-completion"),
}
WITH_A_TIME = ("karpenter.sh/do-not-disrupt", "leeward.dev/do-not-disrupt")
TIME = re.compile(r"(\d+)([smh])")
UNITS = {"s": 1, "m": 60, "h": 3600}


class OptOuts:
    """Evictions and deletions of one run."""

    def __init__(self, unasked: Unasked) -> None:
        self._unasked = unasked
        self._new = News().of

    def check(self, view: WorldView) -> Iterator[str]:
        """Yield such pods that have left a node of a disruption run."""
        for eviction in self._new("evictions", view.evictions):
            pod = eviction.pod
            age = view.now - pod.started.timestamp() if pod.started is not None else 0.0
            key = opt_out(pod.annotations, age)
            if key and self._is_voluntary(eviction.pod.node, eviction.instance, view):
                yield f"{eviction.pod.key} on {eviction.instance} says {key}"

    def _is_voluntary(self, name: str, instance: str, view: WorldView) -> bool:
        """Return whether a run alone can have asked for the node. A terminationGracePeriod overrides the opt-outs for
        the methods that end with the node in any case.
        """
        node, group = self._unasked.under.get(name), group_of(view, instance)
        if node is None or group is None or not view.disrupting or view.rolls(group.name):
            return False
        causes = view.known_causes(instance)
        if causes and all(cause.startswith("surplus") for cause in causes):
            return False
        policy = view.policies.policy_of(group)
        overrides = policy is None or policy.drain.termination_grace_period is not None
        return not overrides and not self._unasked.is_urgent(node, view)


def opt_out(annotations: Mapping[str, str], age: float) -> str:
    """Return the annotation by which a pod opts out so many seconds after its start, empty where it does not."""
    for key, values in OPT_OUTS.items():
        said = annotations.get(key, "")
        time = TIME.fullmatch(said) if key in WITH_A_TIME else None
        if said in values or (time is not None and age < int(time[1]) * UNITS[time[2]]):
            return f"{key}: {said}"
    return ""
