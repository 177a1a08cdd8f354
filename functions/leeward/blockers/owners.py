"""Owner of a pod: the workload that people know, by kind and name."""

from leeward.model.deployment import deployment_named_by
from leeward.model.pod import Pod


def owner_of(pod: Pod) -> str:
    """Return `Deployment/web`, `StatefulSet/db`, `Pod/lonely` without a controller, `Node/n` for a static one."""
    if pod.mirror:
        return f"Node/{pod.node}"
    if pod.owner is None:
        return f"Pod/{pod.name}"
    deployment = deployment_named_by(pod)
    return f"Deployment/{deployment}" if deployment else f"{pod.owner.kind}/{pod.owner.name}"


def resource_of(pod: Pod) -> str:
    """Return the owner as kubectl takes it: `deployment web`."""
    kind, _, name = owner_of(pod).partition("/")
    return f"{kind.lower()} {name}"
