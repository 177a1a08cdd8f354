"""Volumes attached to a node, their claims, and those of them that a drain waits for.

A volume can be attached to another node only after it is detached from this one; until then, the StatefulSet's pod that
uses it waits. Decides from VolumeAttachments and claims; the attach-detach controller and the CSI driver detach."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from leeward.model.attachment import VolumeAttachment
from leeward.model.pod import Pod
from leeward.termination.drain_plan import DrainPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldVolume:
    """Volume attached to the node. `claim`: namespace/name, None if it is unknown; `users`: pods of the node that use
    the claim, empty when they have ended.
    """

    attachment: VolumeAttachment
    claim: str | None
    users: tuple[Pod, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainVolume:
    """Volume in a drain's plan. `attachment`: name of the VolumeAttachment; `pod`: a user, None if all have ended;
    `wait`: it has to be detached before the node is terminated.
    """

    attachment: str
    pod: Pod | None
    wait: bool


def held_volumes(
    node: str, pods: Iterable[Pod], attachments: Iterable[VolumeAttachment], claims: Mapping[str, str]
) -> tuple[HeldVolume, ...]:
    """Return the volumes attached to the node, sorted by the name of the VolumeAttachment. `pods`: those of the node;
    `claims`: PersistentVolume -> namespace/name of its claim.
    """
    users: dict[str, list[Pod]] = {}
    for pod in sorted(pods, key=lambda pod: pod.key):
        for claim in pod.claims:
            users.setdefault(f"{pod.namespace}/{claim}", []).append(pod)
    attached = sorted((entry for entry in attachments if entry.node == node), key=lambda entry: entry.name)
    return tuple(
        HeldVolume(attachment=entry, claim=claim, users=tuple(users.get(claim or "", ())))
        for entry, claim in ((entry, claims.get(entry.volume)) for entry in attached)
    )


def drain_volumes(plan: DrainPlan, held: Sequence[HeldVolume], *, waits: bool) -> tuple[DrainVolume, ...]:
    """Return one entry for each held volume and pod that uses it. A volume is waited for unless a pod that stays uses
    it (Karpenter's rule). `waits` False: none is (the instance is gone, or the policy gives volumes no time).
    """
    evicted = {eviction.pod.key for eviction in plan.evict}
    volumes: list[DrainVolume] = []
    for volume in held:
        wait, users = waits and all(pod.key in evicted for pod in volume.users), volume.users or (None,)
        volumes += [DrainVolume(attachment=volume.attachment.name, pod=pod, wait=wait) for pod in users]
    return tuple(volumes)
