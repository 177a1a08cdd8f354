"""Whose a pod is: the workload that people know, by kind and name."""

from leeward.model.pod import Pod

TEMPLATE_HASH = "pod-template-hash"  # the Deployment controller labels its ReplicaSets' pods with it


def owner_of(pod: Pod) -> str:
    """`Deployment/web`, `StatefulSet/db`, `Pod/lonely` for one without a controller, `Node/n` for a static one.

    A ReplicaSet of a Deployment is called DEPLOYMENT-HASH, its pods carry the hash: so the Deployment is known without
    asking for the ReplicaSet.
    """
    if pod.mirror:
        return f"Node/{pod.node}"
    if pod.owner is None:
        return f"Pod/{pod.name}"
    kind, name = pod.owner.kind, pod.owner.name
    suffix = f"-{pod.labels.get(TEMPLATE_HASH, '')}"
    if kind == "ReplicaSet" and len(suffix) > 1 and name.endswith(suffix) and name != suffix:
        return f"Deployment/{name.removesuffix(suffix)}"
    return f"{kind}/{name}"


def resource_of(pod: Pod) -> str:
    """The owner as kubectl takes it: `deployment web`."""
    kind, _, name = owner_of(pod).partition("/")
    return f"{kind.lower()} {name}"
