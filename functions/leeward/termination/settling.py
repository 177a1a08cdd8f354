"""Settling of a node: what a drain waits for besides pods. Before the first eviction its load balancers deregister it.
After the last pod it stays for its settle time, then until the targets at its addresses and its volumes are free.

Settle time: with `drain.settle: auto` it is nothing where no load balancer can send requests to the node, and the
default wherever that is not certain: the group's own target groups, Services that are reached through nodes, and
targets that are still registered each call for it.

Targets: the label that excludes the node makes the controller that registered it (AWS Load Balancer Controller, the
cloud provider) deregister it. Nothing is deregistered here, because that controller would put it back.

Volumes: one can be attached to another node only after it is detached from this one; until then, the StatefulSet's pod
that uses it waits. Kubernetes detaches an unmounted volume in some seconds. A volume of an instance that is gone is
detached only after six minutes, unless the Node is tainted out of service. A missing permission to read them delays a
node by that wait, and no longer. docs/designs/draining.md has the reasons."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import ceil

from leeward.errors import AccessDeniedError, AwsUnreachableError, LeewardError, RetryableError, TerminalError
from leeward.model import well_known
from leeward.model.attachment import VolumeAttachment, claims_of
from leeward.model.group import GroupFacts
from leeward.model.load_balancing import LoadBalancerTarget, Service, TargetKind
from leeward.model.node import Node, Taint
from leeward.model.pod import Pod
from leeward.model.times import format_instant
from leeward.policy.document import SETTLES, DrainPolicy
from leeward.ports.clock import Clock
from leeward.ports.kubernetes import Kubernetes, Listed
from leeward.termination import deadlines
from leeward.termination.drain_plan import DrainPlan
from leeward.termination.situation import DrainContext, Situation

NOT_AWAITED = "DeregistrationNotAwaited"  # reason of an Event
UNREACHED = "unreached"  # a key in the record's times
UNREACHED_FOR = timedelta(seconds=30)  # about three calls with their retries
ENDPOINT = "an interface endpoint for elasticloadbalancing, or a NAT gateway (docs/deploy.md)"
OUT_OF_SERVICE = Taint(key=well_known.OUT_OF_SERVICE_TAINT, effect="NoExecute", value="nodeshutdown")
SURE = "terminated"  # EC2's state of an instance that cannot write any more; `shutting-down` still might


def settle_time(
    policy: DrainPolicy, group: GroupFacts | None, services: Callable[[], Sequence[Service] | None]
) -> timedelta:
    """Return how long a node of the group stays empty before it ends. `services`: of the cluster, read only with `auto`
    and where the group itself has no load balancer; None, or a LeewardError, where they are not known.
    """
    if policy.settle is not None:
        return policy.settle
    if group is None or group.balancers:
        return SETTLES
    try:
        known = services()
    except LeewardError:
        return SETTLES
    return SETTLES if known is None or any(service.on_nodes for service in known) else timedelta()


def services_of(kubernetes: Kubernetes) -> Sequence[Service]:
    """Return the cluster's Services. Raises what the port raises."""
    return kubernetes.read(Listed.SERVICES, Service.from_json)


def settle_of_node(drain: DrainContext) -> timedelta:
    """Return the settle time of an instance whose pods have left. One that is registered by its id is reached although
    nothing in the cluster says so; the answer is the one that the wait for its addresses uses as well.
    """
    instance = drain.situation.instance
    settle = settle_time(drain.policy, drain.situation.group, lambda: services_of(drain.kubernetes))
    if settle or drain.policy.settle is not None or instance is None:
        return settle
    try:
        targets = drain.ports.load_balancers.targets(drain.record.subject.cluster, instance)
    except LeewardError:
        return SETTLES
    return SETTLES if any(target.kind is TargetKind.INSTANCE for target in targets) else settle


@dataclass(frozen=True, slots=True, kw_only=True)
class Awaited:
    """Conditions that a node waits for, one sentence each, and the latest time."""

    what: tuple[str, ...]
    until: datetime

    @property
    def sentences(self) -> tuple[str, ...]:
        """Sentences for people."""
        return tuple(f"{sentence}, until {format_instant(self.until)}" for sentence in self.what)


def targets_before_eviction(drain: DrainContext, node: Node) -> Awaited | None:
    """Return the targets that stand for the node itself (by instance id): requests arrive through it for pods anywhere,
    and those under way go on until it is deregistered. None: evict. Targets that were waited for once are not read
    again.
    """
    record, situation, now = drain.record, drain.situation, drain.ports.clock.now()
    if "evicting" in record.times:
        return None
    until = deadlines.deregistered_by(record, drain.policy, drain.started, now, ours_hold=situation.ours_hold)
    running = situation.instance is not None and situation.instance.state == "running"
    if until is None or now >= until or not running:
        return None
    return _read_targets(drain, node, until, lambda target: target.kind is TargetKind.INSTANCE)


def targets_before_end(drain: DrainContext, node: Node) -> Awaited | None:
    """Return the targets at the node's addresses that are still draining: their pods are gone, and while requests may
    be sent to an address no other pod should get it. A pod that stays keeps its target, which is not waited for.
    """
    until = _held_by(drain, drain.policy.deregistration_timeout)
    if drain.ports.clock.now() >= until:
        return None
    return _read_targets(drain, node, until, lambda target: target.kind is TargetKind.IP and target.draining)


def _held_by(drain: DrainContext, span: timedelta) -> datetime:
    """Return until when the empty node is held for work under way at it, at most `span` from its last pod's end."""
    now, ours_hold = drain.ports.clock.now(), drain.situation.ours_hold
    return deadlines.held_by(drain.record, drain.policy, span, drain.started, now, ours_hold=ours_hold)


def _read_targets(
    drain: DrainContext, node: Node, until: datetime, counts: Callable[[LoadBalancerTarget], bool]
) -> Awaited | None:
    """Read the targets that count. Load balancers that answer with an error are read again until the time is over. A
    missing permission, or an API that is not reached for half a minute, must not make every drain wait for nothing: an
    Event reports it, and the drain continues.
    """
    instance = drain.situation.instance
    if instance is None:
        return None
    try:
        targets = drain.ports.load_balancers.targets(drain.record.subject.cluster, instance)
    except AwsUnreachableError as error:
        since = _unreached_since(drain)
        if drain.ports.clock.now() - since < UNREACHED_FOR:
            return Awaited(
                what=(f"the load balancers are not reached: {error}",), until=min(until, since + UNREACHED_FOR)
            )
        _give_notice(drain, node, f"{error}; in a VPC a drain needs {ENDPOINT}")
        return None
    except RetryableError as error:
        return Awaited(what=(f"the load balancers do not answer: {error}",), until=until)
    except TerminalError as error:
        _give_notice(drain, node, str(error))
        return None
    names = tuple(sorted(target.named for target in targets if counts(target)))
    return Awaited(what=names, until=until) if names else None


def _unreached_since(drain: DrainContext) -> datetime:
    """Return when the API was first not reached in this termination, written once."""
    record, since = drain.record, drain.record.times.get(UNREACHED)
    if since is None:
        since = drain.ports.clock.now()
        drain.ports.claims.note_attempt(record.instance, record.attempt, times={UNREACHED: since})
    return since


def _give_notice(drain: DrainContext, node: Node, reason: str) -> None:
    message, now = f"load balancers are not waited for: {reason}"[:1000], drain.ports.clock.now()
    drain.kubernetes.event(node, reason=NOT_AWAITED, message=message, warning=True, now=now)


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldVolume:
    """Volume attached to the node."""

    attachment: VolumeAttachment
    claim: str | None  # namespace/name, None if it is unknown
    users: tuple[Pod, ...]  # pods of the node that use the claim, empty when they have ended


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainVolume:
    """Volume in a drain's plan."""

    attachment: str  # name of the VolumeAttachment
    pod: Pod | None  # a user, None if all have ended
    wait: bool  # it has to be detached before the node is terminated


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


def volumes_before_end(drain: DrainContext, node: Node, plan: DrainPlan) -> Awaited | None:
    """Return the volumes of pods that have left, until drain.volumeDetachTimeout from the last pod's end or the
    deadline. None on a node that is not Ready: no kubelet there unmounts them, and they are free soonest when the
    instance has ended.
    """
    until = _held_by(drain, drain.policy.volume_detach_timeout)
    if drain.ports.clock.now() >= until or not node.ready:
        return None
    try:
        attached = [attachment for attachment in drain.kubernetes.attachments() if attachment.node == node.name]
    except AccessDeniedError as error:
        return Awaited(what=(f"volumes may still be attached: {error}",), until=until)
    if not attached:
        return None
    pods = [left.pod for left in plan.leave]
    held = held_volumes(node.name, pods, attached, claims_of(drain.kubernetes.volumes()))
    waits = {line.attachment for line in drain_volumes(plan, held, waits=True) if line.wait}
    sentences = [_volume_sentence(volume) for volume in held if volume.attachment.name in waits]
    return Awaited(what=tuple(sentences), until=until) if sentences else None


def volumes_before_removal(situation: Situation, node: Node, kubernetes: Kubernetes, clock: Clock) -> str | None:
    """Return the reason that keeps the Node of an instance that EC2 ends: its attachments. Once EC2 reports it
    terminated or no longer knows it, taint the node out of service, so that they are detached at once; without the Node
    no controller could do so, and it would take six minutes. None: remove it.
    """
    ended = situation.record.times.get("terminated", clock.now())
    if clock.now() >= ended + situation.policy.drain.volume_detach_timeout:
        return None
    seconds = ceil(situation.policy.drain.volume_detach_timeout.total_seconds())
    try:
        attached = [attachment.name for attachment in kubernetes.attachments() if attachment.node == node.name]
    except AccessDeniedError as error:
        return f"volumes may still be attached to {node.name}, waited for at most {seconds} s: {error}"
    if not attached:
        return None
    if situation.instance is None or situation.instance.state == SURE:
        kubernetes.taint(node, OUT_OF_SERVICE, unschedulable=False)
    return f"still attached to {node.name}, waited for at most {seconds} s: {', '.join(attached)}"


def _volume_sentence(held: HeldVolume) -> str:
    whose = f" of {held.claim}" if held.claim else ""
    error = f" ({held.attachment.error})" if held.attachment.error else ""
    return f"volume {held.attachment.volume or held.attachment.name}{whose} is still attached{error}"
