"""Blockers of one node, collected and ordered.

Decides which sources of blockers apply; `pods.py` decides what pods report.

Blockers of the node itself: attached volumes, hooks that hold its instance, opt-outs of the node and its policy, and
an upgrade or a run of ours that protects a new node from scale-down: it is half empty until its pods come.

Obstacles to the eviction of pods that no budget holds, as the drain under way has recorded them: an admission
webhook, a policy or the API server itself refuses the eviction or fails. No object of the cluster shows that."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import assert_never

from leeward.blockers import commands
from leeward.blockers.blocker import Blocker, BlockerKind, owner_of
from leeward.blockers.inputs import NodeInputs, ProtectionOwner, WaitingHook
from leeward.blockers.pods import of_plan, of_pods
from leeward.disruption.do_not_disrupt import DO_NOT_CONSOLIDATE, OptOut, node_opt_outs
from leeward.model.blocked import BlockedLine, Obstacle, Stage
from leeward.model.node import Node
from leeward.model.node_owners import FOREIGN_TAINTS, forgotten_taints
from leeward.model.pod import Pod
from leeward.model.times import format_instant
from leeward.model.well_known import KEPT_FOR, OF_DISRUPTION, SCALE_DOWN_DISABLED
from leeward.policy.document import DrainPolicy
from leeward.termination.drain_plan import DrainTerms, force_delete_at, plan_drain, with_surges
from leeward.termination.settling import HeldVolume

BLOCKED_BY_OPT_OUT = {
    DO_NOT_CONSOLIDATE: (BlockerKind.NODE_DO_NOT_CONSOLIDATE, "consolidation"),
    SCALE_DOWN_DISABLED: (BlockerKind.NODE_SCALE_DOWN_DISABLED, "consolidation and emptiness"),
}
PAUSED = "paused"  # `leeward.upgrade.status.Phase`, which imports the blockers and so cannot be imported here
KINDS = {
    Stage.WEBHOOK: BlockerKind.WEBHOOK,
    Stage.POLICY: BlockerKind.ADMISSION_POLICY,
    Stage.SERVER: BlockerKind.EVICTION_FAILS,
}
CONFIGURATIONS = "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations"


def of_volumes(inputs: NodeInputs, policy: DrainPolicy, now: datetime) -> Iterator[Blocker]:
    """Yield volumes still attached although no running pod of the node uses them, or that are being detached."""
    for held in inputs.volumes:
        used = [pod for pod in held.users if not pod.finished]
        unknown = held.claim is None and any(pod.claims for pod in inputs.pods if not pod.finished)
        left_behind = held.attachment.attached and not used and not unknown
        if held.attachment.deletion is not None or left_behind:
            yield _attached(held, inputs, policy.volume_detach_timeout, now)


def of_hooks(inputs: NodeInputs) -> Iterator[Blocker]:
    """Yield lifecycle hooks that keep the instance in Terminating:Wait, ours and those of others."""
    for waiting in inputs.hooks:
        yield _held_back(waiting, inputs)


def of_opt_outs(inputs: NodeInputs) -> Iterator[Blocker]:
    """Yield the opt-outs: the node's annotations and its policy's `disruption.doNotDisrupt`."""
    owner = f"AutoScalingGroup/{inputs.group}" if inputs.group else f"Node/{inputs.node.name}"
    for opt_out in node_opt_outs(inputs.node):
        if opt_out.key == SCALE_DOWN_DISABLED and inputs.protection_owner is not None:
            yield of_protection(opt_out, inputs.protection_owner, inputs)
            continue
        kind, what = BLOCKED_BY_OPT_OUT.get(opt_out.key, (BlockerKind.NODE_DO_NOT_DISRUPT, "every voluntary method"))
        yield Blocker(
            node=inputs.node.name,
            pod=None,
            owner=owner,
            kind=kind,
            object=f"annotation {opt_out.key}={opt_out.value}",
            until=None,
            fix=f"it holds up {what}: {commands.unannotate(f'node {inputs.node.name}', opt_out.key)}",
        )
    policy = inputs.policy
    if policy is not None and policy.disruption.do_not_disrupt:
        yield Blocker(
            node=inputs.node.name,
            pod=None,
            owner=f"NodePolicy/{policy.name}",
            kind=BlockerKind.POLICY_DO_NOT_DISRUPT,
            object=f"policy {policy.name}: disruption.doNotDisrupt",
            until=None,
            fix=f"it holds up every voluntary method: set disruption.doNotDisrupt: false in policy {policy.name}",
        )


def of_foreign_taints(node: Node, now: datetime) -> Iterator[Blocker]:
    """Yield the taints that another controller has left behind on the node: pods stay away from it, and no budget
    counts it as disrupted any more.
    """
    for key, since in sorted(forgotten_taints(node, now).items()):
        yield Blocker(
            node=node.name,
            pod=None,
            owner=f"Controller/{FOREIGN_TAINTS[key]}",
            kind=BlockerKind.FOREIGN_TAINT,
            object=f"taint {key}",
            until=None,
            fix=(
                f"{FOREIGN_TAINTS[key]} put it there at {format_instant(since)} and has not removed the node since: "
                f"{commands.untaint(node.name, key)}"
            ),
            since=since,
        )


def _attached(held: HeldVolume, inputs: NodeInputs, time_out: timedelta, now: datetime) -> Blocker:
    attachment = held.attachment
    waiting = _waiting_for(held, inputs)
    since = attachment.deletion or inputs.detaching_since or now
    says = f", the driver says: {attachment.error}" if attachment.error else ""
    stage = "is being detached" if attachment.deletion else "is still attached although its pod is gone"
    waits = f" and {waiting.key} waits for it" if waiting else ""
    volume = attachment.volume or "an inline volume"
    return Blocker(
        node=inputs.node.name,
        pod=waiting.key if waiting else None,
        owner=_volume_owner(held, waiting),
        kind=BlockerKind.VOLUME_ATTACHED,
        object=f"volumeattachment {attachment.name}",
        until=since + time_out,
        fix=(
            f"{volume} {stage}{waits}{says}: kubectl describe volumeattachment {attachment.name} and the log of the "
            f"CSI controller say why; where the instance is gone for good, kubectl taint node {inputs.node.name} "
            "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute lets it go; a drain waits no longer than "
            "drain.volumeDetachTimeout"
        ),
    )


def _waiting_for(held: HeldVolume, inputs: NodeInputs) -> Pod | None:
    """Return the pod elsewhere that has the same claim, else the finished one of this node."""
    there = [pod for pod in inputs.pods_elsewhere if held.claim in {f"{pod.namespace}/{name}" for name in pod.claims}]
    return next(iter(sorted(there, key=lambda pod: pod.key)), None) or next(iter(held.users), None)


def _volume_owner(held: HeldVolume, waiting: Pod | None) -> str:
    if waiting is not None:
        return owner_of(waiting)
    if held.claim is not None:
        return f"PersistentVolumeClaim/{held.claim.split('/', 1)[1]}"
    return f"PersistentVolume/{held.attachment.volume}" if held.attachment.volume else f"Node/{held.attachment.node}"


def _held_back(waiting: WaitingHook, inputs: NodeInputs) -> Blocker:
    hook = waiting.hook
    answer = (
        f"aws autoscaling complete-lifecycle-action --auto-scaling-group-name {hook.group} --lifecycle-hook-name "
        f"{hook.name} --instance-id {inputs.node.instance_id} --lifecycle-action-result CONTINUE"
    )
    when = "" if waiting.exact else " at the latest (when it began to wait is unknown)"
    if waiting.ours:
        who = f"Leeward heartbeats it while the node drains and answers it then; if nothing does, it runs out{when}"
    else:
        who = f"it is not ours, so its own team answers it; unanswered it runs out{when}"
    return Blocker(
        node=inputs.node.name,
        pod=None,
        owner=f"AutoScalingGroup/{hook.group}",
        kind=BlockerKind.LIFECYCLE_HOOK,
        object=f"hook {hook.group}/{hook.name}",
        until=waiting.until,
        fix=f"{who}: {answer}",
    )


def of_protection(opt_out: OptOut, owner: ProtectionOwner, inputs: NodeInputs) -> Blocker:
    """Return the blocker of annotation `scale-down-disabled`, added by the run that `leeward.dev/kept-for` names."""
    _, of_disruption, number = owner.name.partition(OF_DISRUPTION)
    what = f"disruption run {number}" if of_disruption else f"the upgrade of {owner.name}"
    fix = _of_disruption(owner) if of_disruption else _of_upgrade(owner)
    return Blocker(
        node=inputs.node.name,
        pod=None,
        owner=f"Disruption/{number}" if of_disruption else f"Upgrade/{owner.name}",
        kind=BlockerKind.NODE_SCALE_DOWN_DISABLED,
        object=f"annotation {opt_out.key}={opt_out.value}, for {what}",
        until=owner.until,
        fix=f"it holds up consolidation and emptiness for {what}: {_left_behind(owner, inputs) or fix}",
    )


def _left_behind(owner: ProtectionOwner, inputs: NodeInputs) -> str:
    if owner.execution != "":
        return ""
    remove = commands.unannotate(f"node {inputs.node.name}", SCALE_DOWN_DISABLED)
    return f"no execution works on that any more, so the minute reconciler removes it; manually: {remove} {KEPT_FOR}-"


def _of_upgrade(owner: ProtectionOwner) -> str:
    """Return one clause with its command."""
    group, look = owner.name, f"leeward upgrade status {owner.name}"
    if owner.execution is None:
        return f"it comes off when that has ended; {look} --cluster NAME shows when that should be"
    where = f"execution {owner.execution} is {owner.phase}"
    if owner.until is not None:
        return f"{where}, and it comes off when that has ended, by estimate then ({look})"
    if owner.phase == PAUSED:
        return f"{where}: leeward upgrade resume {group} lets it go on, leeward upgrade abort {group} ends it"
    return f"{where}, and {look} shows when it continues; it comes off when the upgrade has ended"


def _of_disruption(owner: ProtectionOwner) -> str:
    if owner.execution is None:
        return "it comes off when that has ended; leeward blockers --cluster NAME shows what it waits for"
    where = f"execution {owner.execution}"
    if not owner.terminating:
        return f"{where} waits for the new nodes to be Ready; it comes off when that has ended"
    names = ", ".join(owner.terminating)
    looks = ", ".join(f"leeward blockers {name}" for name in owner.terminating[:3])
    return f"{where} waits until {names} are gone ({looks} says what holds them); then it comes off"


def of_record(inputs: NodeInputs, policy: DrainPolicy) -> Iterator[Blocker]:
    """Yield one blocker for each pod still present whose line in the record names an obstacle."""
    pods = {pod.key: pod for pod in inputs.pods if pod.deletion is None}
    for line in map(BlockedLine.read, inputs.blocked_by):
        pod, obstacle = pods.get(line.pod or ""), line.obstacle
        if pod is not None and obstacle is not None:
            yield _blocker(pod, obstacle, inputs, policy)


def _blocker(pod: Pod, obstacle: Obstacle, inputs: NodeInputs, policy: DrainPolicy) -> Blocker:
    ends = (force_delete_at(pod, inputs.deadline, policy), inputs.drain_ends)
    owner, what = _named(pod, obstacle)
    return Blocker(
        node=inputs.node.name,
        pod=pod.key,
        owner=owner,
        kind=KINDS[obstacle.stage],
        object=what,
        until=min((moment for moment in ends if moment), default=None),
        fix=_fix_for(pod, obstacle),
    )


def _named(pod: Pod, obstacle: Obstacle) -> tuple[str, str]:
    match obstacle.stage:
        case Stage.WEBHOOK:
            return f"Webhook/{obstacle.name}", f"webhook {obstacle.name}"
        case Stage.POLICY:
            return f"ValidatingAdmissionPolicy/{obstacle.name}", f"validatingadmissionpolicy {obstacle.name}"
        case Stage.SERVER:
            return owner_of(pod), f"{obstacle.name} of pod {pod.key}"
        case never:
            assert_never(never)


def _fix_for(pod: Pod, obstacle: Obstacle) -> str:
    name, said = obstacle.name, obstacle.said
    match obstacle.stage:
        case Stage.WEBHOOK if obstacle.denies:
            return (
                f"admission webhook {name} denies its eviction ({said}): do what it asks for, or let it leave out the "
                f"namespace {pod.namespace} ({CONFIGURATIONS} -o yaml shows which configuration has it)"
            )
        case Stage.WEBHOOK:
            return (
                f"admission webhook {name} fails, so the API server evicts no pod that it guards ({said}): bring its "
                f"service back, or edit its configuration ({CONFIGURATIONS} -o yaml shows which): failurePolicy: "
                f"Ignore, or a namespaceSelector without {pod.namespace}"
            )
        case Stage.POLICY:
            return (
                f"policy {name} denies its eviction ({said}): kubectl get validatingadmissionpolicy {name} -o yaml "
                f"shows what it asks for; its binding can leave out the namespace {pod.namespace}"
            )
        case Stage.SERVER:
            return (
                f"its {name} does not go through ({said}): {commands.describe(pod)} and the API server's log say why; "
                "the drain asks again by itself"
            )
        case never:
            assert_never(never)


def blockers(inputs: NodeInputs, now: datetime) -> tuple[Blocker, ...]:
    """Return everything that holds up the termination of the node, by pod; blockers without a pod come last.

    Pods are judged by the drain that would begin now under the policy, with the record's drain options where there is
    one. A pod blocks if that drain cannot evict it; where `singleReplicas: surge` adds a second replica, if it cannot
    evict it even then. An obstacle that a drain under way has recorded blocks as well. Daemon pods and static pods
    block no drain, as in kubectl.
    """
    policy = inputs.policy.drain if inputs.policy else DrainPolicy()
    collected = [*of_volumes(inputs, policy, now), *of_hooks(inputs), *of_opt_outs(inputs)]
    collected += of_foreign_taints(inputs.node, now)
    if not inputs.instance_ended:
        collected += [*_planned(inputs, policy, now), *of_record(inputs, policy), *of_pods(inputs, now)]
    return tuple(sorted(collected, key=lambda b: (b.pod is None, b.pod or "", b.kind.value, b.object)))


def _planned(inputs: NodeInputs, policy: DrainPolicy, now: datetime) -> Iterator[Blocker]:
    plan = plan_drain(
        node=inputs.node,
        pods=inputs.pods,
        budgets=inputs.budgets,
        daemon_sets=inputs.daemon_sets,
        terms=DrainTerms(policy=policy, now=now, deadline=inputs.deadline, options=inputs.options),
    )
    return of_plan(with_surges(plan, inputs.surged, inputs.budgets), inputs)
