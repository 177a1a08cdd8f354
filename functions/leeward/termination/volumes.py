"""Which volumes are at a node, whose they are, and which of them a drain waits for.

A volume goes to another node only when it has left this one: a StatefulSet's pod waits for it meanwhile. Decides from
VolumeAttachments and claims; detaching is the attach-detach controller's and the driver's business."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from leeward.model.attachment import VolumeAttachment
from leeward.model.pod import Pod
from leeward.termination.drain_plan import DrainPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldVolume:
    """An attachment of the node. `claim`: namespace/name, None where nothing tells; `users`: the pods there that have
    it, none when they are gone.
    """

    attachment: VolumeAttachment
    claim: str | None
    users: tuple[Pod, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainVolume:
    """One line of a drain's plan. `pod` None: its pod is gone already. `wait`: it leaves before the node may go."""

    attachment: str
    pod: Pod | None
    wait: bool


def held_volumes(
    node: str, pods: Iterable[Pod], attachments: Iterable[VolumeAttachment], claims: Mapping[str, str]
) -> tuple[HeldVolume, ...]:
    """Of the node, by name. `pods`: those bound to it; `claims`: PersistentVolume -> namespace/name of its claim."""
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
    """The volumes of pods that leave, and those whose pods have left. Karpenter's rule: a volume that a pod uses which
    stays is not waited for. `waits` False: nothing is (the instance is gone, or the policy gives volumes no time).
    """
    leaving = {eviction.pod.key for eviction in plan.evict}
    found: list[DrainVolume] = []
    for one in held:
        going = waits and all(pod.key in leaving for pod in one.users)
        found += [DrainVolume(attachment=one.attachment.name, pod=pod, wait=going) for pod in one.users or (None,)]
    return tuple(found)
