"""Volumes attached to a node, their claims, and those of them that a drain waits for.

A volume moves to another node only when it has left this one: a StatefulSet's pod waits for it in between. Decides from
VolumeAttachments and claims; the attach-detach controller and the driver detach."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from leeward.model.attachment import VolumeAttachment
from leeward.model.pod import Pod
from leeward.termination.drain_plan import DrainPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldVolume:
    """Attachment of the node. `claim`: namespace/name, None if nothing reports it; `users`: the pods there that have
    it, none when they are gone.
    """

    attachment: VolumeAttachment
    claim: str | None
    users: tuple[Pod, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainVolume:
    """Line of a drain's plan. `pod` None: its pod is gone already. `wait`: it leaves before the node may terminate."""

    attachment: str
    pod: Pod | None
    wait: bool


def held_volumes(
    node: str, pods: Iterable[Pod], attachments: Iterable[VolumeAttachment], claims: Mapping[str, str]
) -> tuple[HeldVolume, ...]:
    """Return the attachments of the node, by name. `pods`: those bound to it; `claims`: PersistentVolume ->
    namespace/name of its claim.
    """
    users: dict[str, list[Pod]] = {}
    for pod in sorted(pods, key=lambda pod: pod.key):
        for claim in pod.claims:
            users.setdefault(f"{pod.namespace}/{claim}", []).append(pod)
    there = sorted((one for one in attachments if one.node == node), key=lambda one: one.name)
    return tuple(
        HeldVolume(attachment=one, claim=claims.get(one.volume), users=tuple(users.get(claims.get(one.volume, ""), ())))
        for one in there
    )


def drain_volumes(plan: DrainPlan, held: Sequence[HeldVolume], *, waits: bool) -> tuple[DrainVolume, ...]:
    """Return the volumes of pods that leave, and those whose pods have left. Karpenter's rule: a volume that a staying
    pod uses is not waited for. `waits` False: none is (the instance is gone, or the policy gives volumes no time).
    """
    leaving = {eviction.pod.key for eviction in plan.evict}
    volumes: list[DrainVolume] = []
    for one in held:
        going = waits and all(pod.key in leaving for pod in one.users)
        volumes += [DrainVolume(attachment=one.attachment.name, pod=pod, wait=going) for pod in one.users or (None,)]
    return tuple(volumes)
