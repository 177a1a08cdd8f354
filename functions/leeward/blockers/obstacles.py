"""Obstacles to the eviction of pods that no budget holds, as the drain under way has recorded them: an admission
webhook, a policy or the API server itself refuses the eviction or fails. No object of the cluster shows that."""

from collections.abc import Iterator
from typing import assert_never

from leeward.blockers import commands
from leeward.blockers.blocker import Blocker, Kind, owner_of
from leeward.blockers.inputs import NodeInputs
from leeward.model.blocked import BlockedLine, Obstacle, Stage
from leeward.model.pod import Pod
from leeward.policy.document import DrainPolicy
from leeward.termination.drain_plan import force_delete_at

KINDS = {Stage.WEBHOOK: Kind.WEBHOOK, Stage.POLICY: Kind.ADMISSION_POLICY, Stage.SERVER: Kind.EVICTION_FAILS}
CONFIGURATIONS = "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations"


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
