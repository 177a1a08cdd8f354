"""Workloads whose pods have a grace period of an hour and more, up to the greatest number that the API accepts."""

from collections.abc import Iterable
from copy import deepcopy
from random import Random

from local.cluster.objects import Obj
from local.cluster.settings import IGNORE_SIGTERM

HOUR, GREATEST = 3600, 2**63 - 1
SHARE = 0.2  # of the Deployments


def with_long_pods(workloads: Iterable[Obj], random: Random) -> tuple[Obj, ...]:
    """Return the workloads, some Deployments with long grace periods. Half of those with an hour use all of it; the
    others stop at SIGTERM.
    """
    return tuple(_long(workload, random) if workload["kind"] == "Deployment" else workload for workload in workloads)


def _long(workload: Obj, random: Random) -> Obj:
    grace, ignores = random.choice((HOUR, HOUR, 2 * HOUR, GREATEST)), random.random() < 0.5
    if random.random() >= SHARE or workload["metadata"].get("namespace") == "kube-system":
        return workload
    changed = deepcopy(workload)
    template = changed["spec"]["template"]
    template["spec"]["terminationGracePeriodSeconds"] = grace
    notes = template["metadata"].setdefault("annotations", {})
    notes.pop(IGNORE_SIGTERM, None)
    if ignores and grace == HOUR:
        notes[IGNORE_SIGTERM] = "true"
    return changed
