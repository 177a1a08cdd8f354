"""Managed node group: parts of the policy that EKS' own way of rolling it does not keep, and what keeps EKS from
starting.

Sources: the EKS API (UpdateNodegroupVersion, NodegroupUpdateConfig, status and health of a Nodegroup)."""

from collections.abc import Iterator

from leeward.upgrade.preflight.findings import Code, Finding, blocker, warning
from leeward.upgrade.preflight.model import Preflight
from leeward.upgrade.surge.sizes import parallelism

CUSTOM = "CUSTOM"  # amiType of a node group whose launch template names the image


def check(preflight: Preflight) -> Iterator[Finding]:
    """Yield the findings of a managed node group; none for any other group."""
    group, beside = preflight.group, preflight.beside
    if group.nodegroup is None:
        return
    about = f"nodegroup {group.nodegroup}"
    yield from _image(preflight, about)
    yield from _state(preflight, about)
    yield from _parallelism(preflight, about)
    canary = preflight.policy.update.canary.nodes
    if canary and beside.nodegroup is not None:
        said = f"EKS rolls all nodes in one update: the policy's canary of {canary} nodes cannot be kept"
        fix = "try the version on a small node group first, or let it pass: a rollback is another update"
        yield blocker(Code.MANAGED_CANARY, about, said, fix)


def _image(preflight: Preflight, about: str) -> Iterator[Finding]:
    beside, nodegroup = preflight.beside, preflight.beside.nodegroup
    if beside.image and beside.image_by_eks:
        said = f"EKS chooses its image: {beside.image} cannot be had"
        fix = "use --kubernetes-version, or give the node group a launch template with an image"
        yield blocker(Code.MANAGED_IMAGE, about, said, fix)
    if beside.asked_version and nodegroup is not None and nodegroup.ami_type == CUSTOM:
        said = f"its launch template chooses the image: EKS takes no Kubernetes version, found {beside.version}"
        yield blocker(Code.MANAGED_IMAGE, about, said, "use --ami or --launch-template-version")


def _state(preflight: Preflight, about: str) -> Iterator[Finding]:
    nodegroup = preflight.beside.nodegroup
    if nodegroup is None:
        return
    if nodegroup.status not in {"", "ACTIVE", "DEGRADED"}:
        said = f"its status is {nodegroup.status}: EKS starts no update of it"
        fix = f"wait: aws eks describe-nodegroup --cluster-name {nodegroup.cluster} --nodegroup-name {nodegroup.name}"
        yield blocker(Code.NODEGROUP_NOT_ACTIVE, about, said, fix)
    for issue in nodegroup.issues:
        yield warning(Code.NODEGROUP_DEGRADED, about, f"EKS says {issue}", "mend it first: the update may fail by it")


def _parallelism(preflight: Preflight, about: str) -> Iterator[Finding]:
    """Compare EKS' parallelism with the policy and its budgets, which EKS does not read. Nothing here writes its
    configuration: that belongs to the owner of the node group.
    """
    nodegroup, limits = preflight.beside.nodegroup, preflight.limits
    if nodegroup is None or not preflight.old:
        return
    wanted = parallelism(preflight.policy.update, max(len(preflight.members), preflight.group.desired))
    allowed = wanted if limits.together >= preflight.parallel else min(wanted, limits.together)
    if preflight.parallel == allowed:
        return
    said = f"EKS' updateConfig takes {preflight.parallel} nodes at once, the policy and its budgets allow {allowed} now"
    fix = (
        f"aws eks update-nodegroup-config --cluster-name {nodegroup.cluster} --nodegroup-name {nodegroup.name} "
        f"--update-config maxUnavailable={max(allowed, 1)}, or change update.maxUnavailable of the policy"
    )
    make = blocker if preflight.parallel > allowed else warning
    yield make(Code.MANAGED_PARALLELISM, about, said, fix)
