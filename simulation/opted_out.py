"""Workloads whose pods opt out of disruption: for good or for a while from their start."""

from collections.abc import Iterable, Mapping
from copy import deepcopy
from random import Random

from local.cluster.objects import Obj

SHARE = 0.15  # of the Deployments and StatefulSets
ANNOTATIONS: tuple[Mapping[str, str], ...] = (
    {"karpenter.sh/do-not-disrupt": "true"},
    {"karpenter.sh/do-not-disrupt": "45m"},
    {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"},
    {"leeward.dev/do-not-disrupt": "true"},
    {"leeward.dev/do-not-disrupt": "20m"},
    {"leeward.dev/do-not-disrupt": "soon"},  # neither true nor a duration: it is ignored
)


def with_opt_outs(workloads: Iterable[Obj], random: Random) -> tuple[Obj, ...]:
    """Return the workloads, some of which opt out."""
    return tuple(_opted_out(workload, random) for workload in workloads)


def _opted_out(workload: Obj, random: Random) -> Obj:
    says, chosen = random.choice(ANNOTATIONS), random.random() < SHARE
    if not chosen or workload["kind"] not in {"Deployment", "StatefulSet"}:
        return workload
    changed = deepcopy(workload)
    changed["spec"]["template"]["metadata"].setdefault("annotations", {}).update(says)
    return changed
