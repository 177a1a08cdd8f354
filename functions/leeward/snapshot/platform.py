"""Operating system and CPU architecture of pods that a plan moves.

Decides where a plan may look for a place. kube-scheduler allows a pod without selectors on every platform; a plan seeks
the cheap group, which may be one whose nodes cannot run the pod's image. So a pod keeps the operating system of its
node, and its architecture unless the policy or the pod itself allows others, or its own group launches several."""

from dataclasses import replace

from leeward.model.node import Node
from leeward.node_template.labels import ARCH, BETA, OS
from leeward.scheduling.pods import Needs, PodSpec
from leeward.scheduling.selectors import Operator, Requirement
from leeward.snapshot.cluster import ClusterSnapshot

ANY_ARCHITECTURE = "any"
Platform = tuple[str, str]  # operating system, architecture; empty: any


def with_platforms(snapshot: ClusterSnapshot) -> tuple[PodSpec, ...]:
    """Return the snapshot's pods; those on a node that may be placed again have its platform as a requirement."""
    platforms = {node.name: _platform(snapshot, node) for node in snapshot.nodes}
    needs: dict[tuple[int, Platform], Needs] = {}  # one object for equal needs, as a reader gives it

    def placed(pod: PodSpec) -> PodSpec:
        system, architecture = platforms.get(pod.node, ("", ""))
        if pod.needs.nodes.keys & {ARCH, BETA[ARCH]}:
            architecture = ""
        if pod.stays or not (system or architecture):
            return pod
        key = id(pod.needs), (system, architecture)
        if key not in needs:
            wanted = tuple(_equals(label, value) for label, value in ((OS, system), (ARCH, architecture)) if value)
            needs[key] = replace(pod.needs, platform=wanted)
        return replace(pod, needs=needs[key])

    return tuple(placed(pod) for pod in snapshot.pod_specs)


def _platform(snapshot: ClusterSnapshot, node: Node) -> Platform:
    policy, group = snapshot.policy_of_node(node), snapshot.group_of(node)
    launchable = snapshot.launchables.get(group.name) if group else None
    launched = {one.labels.get(ARCH) for one in launchable.expected.values()} if launchable else set()
    free = len(launched) > 1 or (policy is not None and policy.disruption.architecture == ANY_ARCHITECTURE)
    return node.labels.get(OS, ""), "" if free else node.labels.get(ARCH, "")


def _equals(key: str, value: str) -> Requirement:
    return Requirement(key=key, operator=Operator.IN, values=(value,))
