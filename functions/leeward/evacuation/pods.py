"""Pods that cannot leave a zone: bound to a volume of the zone or of their node, held there by a node selector or an
affinity, refused by the drain, or blocked by a PodDisruptionBudget that never allows an eviction.

Decides from one pod and the subnets in which a replacement of its node may land."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from leeward.budgets.pdb import Forbids, PdbIndex, refusal
from leeward.model.pod import Pod
from leeward.model.subnet import Subnet
from leeward.placement.replacement import leaving_pods
from leeward.placement.restrictions import of_claimed, of_pod
from leeward.policy.document import DrainPolicy

Volumes = Mapping[str, Mapping[str, Any]]  # raw PersistentVolumes by the claim, `placement.restrictions.by_claim`
MOST_NAMED = 5  # zones in a reason


@dataclass(frozen=True, slots=True, kw_only=True)
class StuckPod:
    """Pod that cannot leave, `namespace/name`. `volume`: id of the volume that holds it, empty if none does."""

    pod: str
    reason: str
    volume: str = ""


def stuck_pods(pods: Iterable[Pod], volumes: Volumes, places: Collection[Subnet]) -> tuple[StuckPod, ...]:
    """Return the pods of a node that have no place in these subnets, by name. Pods that end with their node (static
    ones, those of DaemonSets) are none of them.
    """
    movable = leaving_pods(tuple(pods))
    found = (_stuck(pod, volumes, places) for pod in sorted(movable, key=lambda pod: pod.key))
    return tuple(one for one in found if one is not None)


def refused_pods(pods: Iterable[Pod], policy: DrainPolicy) -> tuple[StuckPod, ...]:
    """Return the pods that a drain by this policy refuses to evict, by name."""
    found: list[StuckPod] = []
    for pod in sorted(leaving_pods(tuple(pods)), key=lambda pod: pod.key):
        if not pod.evictable or pod.safe_to_evict:
            continue
        if not policy.evict_unmanaged and pod.owner is None:
            reason = "it has no controller: nothing would start it again (drain.unmanagedPods)"
            found.append(StuckPod(pod=pod.key, reason=reason))
        elif not policy.delete_local_data and pod.empty_dir:
            found.append(StuckPod(pod=pod.key, reason="it keeps data in an emptyDir (drain.localData)"))
    return tuple(found)


def never_evicted(pods: Iterable[Pod], policy: DrainPolicy, index: PdbIndex) -> tuple[StuckPod, ...]:
    """Return the pods whose PodDisruptionBudgets never allow an eviction, by name: no drain would end. None
    where the policy deletes pods in the end, or gives a lone one a second replica first.
    """
    if policy.force or policy.termination_grace_period is not None or policy.surge_single_replicas:
        return ()
    found: list[StuckPod] = []
    for pod in sorted(leaving_pods(tuple(pods)), key=lambda pod: pod.key):
        refused = refusal(pod, index.selecting(pod)) if pod.evictable else None
        if refused is not None and refused.why in {Forbids.NEVER, Forbids.SYNC_FAILED, Forbids.SEVERAL}:
            found.append(StuckPod(pod=pod.key, reason=refused.sentence))
    return tuple(found)


def _stuck(pod: Pod, volumes: Volumes, places: Collection[Subnet]) -> StuckPod | None:
    for claim in pod.claims:
        volume = volumes.get(f"{pod.namespace}/{claim}")
        if volume is None:
            continue
        if (volume.get("spec") or {}).get("local") is not None:
            return StuckPod(pod=pod.key, reason="its local volume is on the node", volume=volume_id(volume))
        restrictions = of_claimed(pod, {f"{pod.namespace}/{claim}": volume})
        if restrictions and not any(all(one.allows(place) for one in restrictions) for place in places):
            return StuckPod(pod=pod.key, reason="its volume is bound to the zone", volume=volume_id(volume))
    if pod.beyond_limit:
        return StuckPod(pod=pod.key, reason=f"it has {pod.beyond_limit}, so that no place for it can be found")
    terms = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": pod.node_terms}}
    own = of_pod(pod.key, {"nodeSelector": pod.node_selector, "affinity": {"nodeAffinity": terms}})
    both = (*own, *of_claimed(pod, volumes))
    if any(all(one.allows(place) for one in both) for place in places):
        return None
    zones = ", ".join(sorted({place.zone for place in places})[:MOST_NAMED]) or "another zone"
    why = " and ".join(one.source for one in both if not any(one.allows(place) for place in places))
    return StuckPod(pod=pod.key, reason=f"not allowed in {zones} by {why or 'its restrictions together'}")


def volume_id(volume: Mapping[str, Any]) -> str:
    """Return the id of a raw PersistentVolume as its driver knows it (`vol-…` of EBS), else its name."""
    spec = volume.get("spec") or {}
    handle = (spec.get("csi") or {}).get("volumeHandle") or (spec.get("awsElasticBlockStore") or {}).get("volumeID")
    return str(handle or volume["metadata"]["name"]).rpartition("/")[2]
