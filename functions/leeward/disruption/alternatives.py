"""Alternatives that a plan shows for nodes that stay: groups that refuse a pod, and cheaper types of the own group.

A group is listed that would be cheaper, or is the node's own, and whose nodes refuse a pod that would have to move
there: a taint, another operating system or architecture, and labels that a pod selects do not depend on capacity, and
most have a fix. They are read from the template, without a try.

A cheaper type is an estimate, for each node that consolidation has considered and keeps: the cheapest known type of its
architecture that holds what its pods request, if its group launched that type. It moves no pod and decides nothing. A
node of a type is EC2's figures, less what is kept back on the group's own node."""

from collections.abc import Collection
from dataclasses import dataclass, replace

from leeward.disruption.candidates import Candidate
from leeward.disruption.command import DisruptionPlan, MethodName
from leeward.disruption.planning_state import PlanningState
from leeward.disruption.savings import reason_not_worth, saved
from leeward.disruption.targets import LaunchTarget, targets
from leeward.model.instance_type import InstanceType
from leeward.model.quantity import CPU, MEMORY
from leeward.node_template.build import ExpectedNode
from leeward.node_template.labels import ARCH, LABEL
from leeward.node_template.resources import usable_memory
from leeward.scheduling.node_sets import Admission
from leeward.scheduling.nodes import NodeTemplate
from leeward.scheduling.pods import PodSpec
from leeward.snapshot.launchable import price_of

MOST_NODES = 50  # that are asked, by name
_OWN = (MethodName.EXPIRATION, MethodName.DRIFT)  # a node is replaced by its own group first
_ANY_ARCHITECTURE = "disruption.architecture any, where the images of its pods are built for both"


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedTarget:
    """Group whose nodes refuse a pod of each of the nodes. `pod`: the first; `fix`: empty where none is known."""

    group: str
    nodes: tuple[str, ...]
    pod: str
    reason: str
    fix: str = ""


def refused_targets(state: PlanningState, plan: DisruptionPlan) -> tuple[RefusedTarget, ...]:
    """Return the groups that a method might have used for nodes that it considered and keeps; each cause once."""
    known = {target.group: target for target in targets(state.snapshot, priced=False)[0]}
    cheaper = targets(state.snapshot, priced=True)[0]
    causes: dict[tuple[str, str, str], list[tuple[str, str]]] = {}
    staying = [name for name, verdicts in sorted(plan.verdicts.items()) if name in state.candidates]
    for name in [name for name in staying if not any(name in command.nodes for command in plan.commands)][:MOST_NODES]:
        candidate, methods = state.candidates[name], _keeping(plan, name)
        asked = [one for one in cheaper if _is_cheaper(candidate, one)] if MethodName.CONSOLIDATION in methods else []
        own = known.get(candidate.group.name)
        for target in (*asked, *([own] if own is not None and methods.intersection(_OWN) else [])):
            refusal = _refusal(candidate, target)
            if refusal is not None:
                pod, reason, fix = refusal
                causes.setdefault((target.group, reason, fix), []).append((name, pod))
    return tuple(
        RefusedTarget(group=group, nodes=tuple(dict(found)), pod=found[0][1], reason=reason, fix=fix)
        for (group, reason, fix), found in causes.items()
    )


def _keeping(plan: DisruptionPlan, node: str) -> frozenset[MethodName]:
    verdicts = plan.verdicts[node]
    return frozenset(method for method, verdict in verdicts.items() if verdict.candidate and verdict.stays)


def _is_cheaper(candidate: Candidate, target: LaunchTarget) -> bool:
    other = target.group != candidate.group.name
    return other and candidate.price is not None and not reason_not_worth([candidate], target.cheapest)


def _refusal(candidate: Candidate, target: LaunchTarget) -> tuple[str, str, str] | None:
    """Return the first pod that no zone of the target admits, the reason in kube-scheduler's words, and the fix."""
    for pod in candidate.pods:
        refusals = _refusals(pod, target.template)
        if refusals and all(refusals):
            return pod.key, refusals[0], _fix(pod, target)
    return None


def _refusals(pod: PodSpec, template: NodeTemplate) -> list[str]:
    needs = pod.needs
    admitted = Admission(tolerations=needs.tolerations, nodes=needs.nodes, platform=needs.platform)
    return [admitted.refusal(template.new_node(place, 0)) for place in range(len(template.offerings))]


def _fix(pod: PodSpec, target: LaunchTarget) -> str:
    """Return the change with which the target would admit the pod: a tag for labels that only its script sets, or the
    policy's other architecture.
    """
    launchable = target.launchable
    labelled = replace(target.template, node=launchable.template.node)
    if not all(_refusals(pod, labelled)):
        nodes = launchable.expected.values()
        set_by_script = {(key, node.labels[key]) for node in nodes for key in node.estimated if key in node.labels}
        tags = [f"{LABEL}{key}={value}" for key, value in sorted(set_by_script) if key in pod.needs.nodes.keys]
        differing = {LABEL + key for node in nodes for key in node.contradicted if key in pod.needs.nodes.keys}
        if differing:
            return f"{', '.join(sorted(differing))} of {target.group}: its user data names another value"
        return f"tag {target.group} with {', '.join(tags)}: a script alone sets it, which proves nothing"
    platform = tuple(one for one in pod.needs.platform if one.key != ARCH)
    of_any = replace(pod, needs=replace(pod.needs, platform=platform))
    return "" if all(_refusals(of_any, target.template)) else _ANY_ARCHITECTURE


ARCHITECTURE = "kubernetes.io/arch"


def cheaper_types_save(state: PlanningState, plan: DisruptionPlan, names: Collection[str]) -> float:
    """Return the dollars an hour that those of the named nodes would save together."""
    kept = (
        state.candidates[name]
        for name, verdicts in plan.verdicts.items()
        if name in names
        and name in state.candidates
        and (verdict := verdicts.get(MethodName.CONSOLIDATION)) is not None
        and verdict.candidate
        and verdict.stays
    )
    return sum(_saves(state, candidate) for candidate in kept)


def _saves(state: PlanningState, candidate: Candidate) -> float:
    launchable = state.snapshot.launchables.get(candidate.group.name)
    if launchable is None or not launchable.expected:
        return 0.0
    own = next(iter(launchable.expected.values()))
    prices = [
        price
        for name, kind in state.snapshot.types.items()
        if launchable.types != (name,)
        and (price := price_of(name, candidate.zone, launchable.capacity, state.snapshot.prices))
        and _holds(kind, launchable.expected.get(name), own, candidate)
    ]
    price = min(prices, default=None)
    if price is None or reason_not_worth([candidate], price):
        return 0.0
    return saved([candidate], price) or 0.0


def _holds(kind: InstanceType, known: ExpectedNode | None, own: ExpectedNode, candidate: Candidate) -> bool:
    """Return whether a node of the type has room for what the pods request. `own`: a node of the group."""
    architecture = candidate.node.labels.get(ARCHITECTURE, "")
    if architecture and architecture not in kind.architectures:
        return False
    capacity = {CPU: kind.vcpus * 1000, MEMORY: usable_memory(kind)}
    for resource, amount in capacity.items():
        kept_back = own.capacity.get(resource, 0) - own.allocatable.get(resource, 0)
        room = known.allocatable.get(resource, 0) if known is not None else amount - kept_back
        if sum(pod.needs.asked(resource) for pod in candidate.pods) > room:
            return False
    return True
