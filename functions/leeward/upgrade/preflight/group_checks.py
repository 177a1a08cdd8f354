"""The group itself: what is suspended, missing, running beside, or too small for the surge; for a managed node group
what EKS' own way of rolling it does not keep, and what keeps EKS from starting.

Sources: EC2 Auto Scaling, "Suspend and resume processes" (what each process does), maximum instance lifetime,
instance refresh, scheduled actions, lifecycle hooks; the EKS API (UpdateNodegroupVersion, NodegroupUpdateConfig,
status and health of a Nodegroup).

The start: versions that are incompatible, images of foreign owners, and switches, freezes, windows, budgets and alarms
that keep the upgrade from starting now. Source: Kubernetes' version skew policy: a kubelet is never newer than the API
server, and at most three minors older (two before 1.28)."""

import re
from collections.abc import Iterator

from leeward.budgets.disruption_budgets import limit, upgrade_budgets
from leeward.model import well_known
from leeward.model.counts import count_of
from leeward.model.group import TERMINATING, Group
from leeward.model.image import OWNERS_BY_AWS
from leeward.model.times import format_instant
from leeward.policy.document import Budget
from leeward.policy.schedule import any_active, is_active
from leeward.upgrade.control import opens
from leeward.upgrade.members import Absence
from leeward.upgrade.preflight.findings import Code, PreflightFinding, blocker, warning
from leeward.upgrade.preflight.model import Preflight, policy_zones
from leeward.upgrade.surge.sizes import parallelism

_REQUIRED = {
    "Launch": "no new node can be launched",
    "Terminate": "no old node can be terminated",
}
_EKS = {"AZRebalance": "EKS relies on it to bring new nodes up in the zones of old ones"}
_DEGRADED = {
    "AddToLoadBalancer": "new nodes get no traffic from the group's load balancers",
    "HealthCheck": "a new node that fails is not noticed by the group",
    "ReplaceUnhealthy": "a new node that fails is not replaced by the group",
}
_REJOIN_COMMANDS = {
    Absence.STANDBY: "aws autoscaling exit-standby --instance-ids ID --auto-scaling-group-name",
    Absence.WARM_POOL: "aws autoscaling delete-warm-pool --auto-scaling-group-name",
    Absence.PROTECTED: (
        "aws autoscaling set-instance-protection --no-protected-from-scale-in --instance-ids ID "
        "--auto-scaling-group-name"
    ),
}
_MOST_NAMED = 5
CAPACITY_UNITS_FIX = (
    "take WeightedCapacity off the overrides and DesiredCapacityType back to units, with sizes in instances; "
    "or use an instance refresh of Auto Scaling: our hook drains each node"
)
CUSTOM = "CUSTOM"  # amiType of a node group whose launch template names the image
_VERSION = re.compile(r"v?(\d{1,4})\.(\d{1,4})(?:[.+-].*)?")
_NEW_SKEW_SINCE, _OLD_SKEW, _SKEW = (1, 28), 2, 3
_ARCH_LABELS = ("kubernetes.io/arch", "beta.kubernetes.io/arch")


def check_group(preflight: Preflight) -> Iterator[PreflightFinding]:
    """Yield the findings in the order in which an operator would check."""
    group, about = preflight.group, f"group {preflight.group.name}"
    yield from _target_reached(preflight, about)
    if group.launch.configuration is not None:
        message = f"it launches from launch configuration {group.launch.configuration}, which has no versions"
        yield blocker(Code.NO_LAUNCH_TEMPLATE, about, message, "copy the launch configuration to a launch template")
    yield from _suspended(group, about)
    if group.capacity_units:
        message = f"{group.capacity_units}: a launch ahead and the termination after it would not balance"
        yield blocker(Code.CAPACITY_UNITS, about, message, CAPACITY_UNITS_FIX)
    yield from _sizes(preflight, about)
    yield from _hooks(preflight, about)
    yield from _concurrent_changes(preflight, about)
    yield from _left_out(preflight, about)
    yield from _labels(preflight, about)
    missing = [member.instance for member in preflight.old if member.node is None]
    if missing:
        message = (
            f"{count_of(len(missing), 'old instance has', 'old instances have')} no "
            f"node, {missing[0].id} in {missing[0].zone} first: they hold no pods"
        )
        yield warning(
            Code.NODES_NOT_JOINED, about, message, "they are terminated without a drain; look why they never joined"
        )


def _target_reached(preflight: Preflight, about: str) -> Iterator[PreflightFinding]:
    inputs = preflight.inputs
    if not inputs.selected:
        message = f"{inputs.no_policies}: the defaults are taken" if inputs.no_policies else "no policy selects it"
        make = warning if inputs.no_policies else blocker
        yield make(Code.NOT_SELECTED, about, message, "name the group in the selector of a policy (docs/policy.md)")
    if not preflight.old:
        wanted = preflight.target.template
        count = len(preflight.members)
        message = f"all {count} members are on the target already" if count else "it has no members"
        message = f"every old instance is left out, {count} are on the target" if preflight.left_out else message
        message += f" ({wanted.label})" if wanted else ""
        fix = "name another target: --ami, --launch-template-version or --kubernetes-version"
        yield warning(Code.NOTHING_TO_UPGRADE, about, message, fix)


def _labels(preflight: Preflight, about: str) -> Iterator[PreflightFinding]:
    """Report the labels for which the gate does not wait."""
    labels = preflight.inputs.labels
    if not (labels.unproven or labels.unclear):
        return
    named = ", ".join(f"{key}={value}" for key, value in sorted(labels.unproven.items())[:_MOST_NAMED])
    message = f"no old node with the same user data shows that new ones get {named}" if named else ""
    if labels.unclear:
        message = f"its user data sets labels that cannot be known{f', {named} among them' if named else ''}"
    fix = "the gate does not wait for them: compare the labels of the first new node, or declare them in a NodeConfig"
    yield warning(Code.LABELS_MISSING, about, message, fix)


def _left_out(preflight: Preflight, about: str) -> Iterator[PreflightFinding]:
    """Report how many old instances the upgrade does not replace, why, and how each kind becomes a member."""
    kinds: dict[Absence, list[str]] = {}
    for one in preflight.left_out:
        kinds.setdefault(one.absence, []).append(one.instance.id)
    if not kinds:
        return
    kinds_text = "; ".join(f"{len(ids)} {kind.value} ({', '.join(ids[:_MOST_NAMED])})" for kind, ids in kinds.items())
    message = (
        f"{len(preflight.left_out)} of {count_of(len(preflight.group.instances), 'instance')} left out: {kinds_text}"
    )
    fixes = "; ".join(f"{_REJOIN_COMMANDS[kind]} {preflight.group.name}" for kind in kinds)
    yield warning(Code.INSTANCES_LEFT_OUT, about, message, f"they stay as they are; to replace them too: {fixes}")


def _suspended(group: Group, about: str) -> Iterator[PreflightFinding]:
    missed = _DEGRADED if group.nodegroup is None else {**_DEGRADED, **_EKS}
    for name in sorted(set(group.suspended)):
        fix = f"aws autoscaling resume-processes --auto-scaling-group-name {group.name} --scaling-processes {name}"
        if name in _REQUIRED:
            yield blocker(Code.SUSPENDED_PROCESSES, about, f"process {name} is suspended: {_REQUIRED[name]}", fix)
        elif name in missed:
            yield warning(Code.SUSPENDED_PROCESSES, about, f"process {name} is suspended: {missed[name]}", fix)


def _sizes(preflight: Preflight, about: str) -> Iterator[PreflightFinding]:
    group, extra = preflight.group, preflight.most_extra
    if group.desired + extra > group.maximum and not group.capacity_units:
        message = (
            f"{count_of(group.desired, 'node')} and up to {extra} new ones are above the maximum size {group.maximum}"
        )
        fix = "nothing to do: the maximum is raised for the time of the upgrade and restored"
        yield warning(Code.MAX_SIZE_RAISED, about, message, fix)
    quota = preflight.inputs.quota
    launchable = preflight.launchable
    kinds = {**preflight.snapshot.types, **preflight.inputs.types}
    cores = max((kinds[name].vcpus for name in launchable.types if name in kinds), default=0) if launchable else 0
    if quota is not None and extra * cores > quota:
        message = (
            f"up to {count_of(extra, 'new node takes', 'new nodes at a time take')} "
            f"{extra * cores} vCPUs, the account's quota leaves {quota}"
        )
        make = blocker if cores > quota else warning
        yield make(Code.INSTANCE_QUOTA, about, message, "ask Service Quotas for more, or use update.strategy MINIMAL")


def _hooks(preflight: Preflight, about: str) -> Iterator[PreflightFinding]:
    """Report a missing hook: without one a termination that comes from elsewhere is not held, and `terminate: first` is
    impossible.
    """
    named = {well_known.TERMINATE_HOOK, *preflight.policy.interruption.hooks}
    hooks = preflight.snapshot.hooks.get(preflight.group.name, ())
    if any(hook.transition == TERMINATING and hook.name in named for hook in hooks) or not preflight.old:
        return
    fix = "fn sync puts leeward-terminate on every selected group within five minutes; see that it runs"
    if preflight.policy.update.terminate == "first":
        message = "no terminate hook of ours: update.terminate first needs one, without it every node drains first"
    else:
        message = (
            "no terminate hook of ours: an instance that the group or EC2 ends meanwhile is not held while it drains"
        )
    yield warning(Code.HOOK_MISSING, about, message, fix)


def _concurrent_changes(preflight: Preflight, about: str) -> Iterator[PreflightFinding]:
    group, inputs = preflight.group, preflight.inputs
    for name in inputs.refreshes:
        fix = f"aws autoscaling cancel-instance-refresh --auto-scaling-group-name {group.name}, or wait for its end"
        message = f"instance refresh {name} is running: it replaces instances without draining them"
        yield blocker(Code.INSTANCE_REFRESH_RUNNING, about, message, fix)
    if group.max_lifetime:
        message = (
            f"maximum instance lifetime {group.max_lifetime} s: the group replaces old instances by itself meanwhile"
        )
        fix = "set it to 0 and use disruption.expireAfter, which drains; a terminate hook of ours holds them otherwise"
        yield warning(Code.MAX_INSTANCE_LIFETIME, about, message, fix)
    for name in inputs.scheduled:
        message = f"scheduled action {name} changes its sizes: when it raises them, the upgrade leaves them as they are"
        yield warning(Code.SCHEDULED_ACTIONS, about, message, "take it off for the time of the upgrade")


def check_managed(preflight: Preflight) -> Iterator[PreflightFinding]:
    """Yield the findings of a managed node group; none for any other group."""
    group, inputs = preflight.group, preflight.inputs
    if group.nodegroup is None:
        return
    about = f"nodegroup {group.nodegroup}"
    yield from _image(preflight, about)
    yield from _state(preflight, about)
    yield from _parallelism(preflight, about)
    canary = preflight.policy.update.canary.nodes
    if canary and inputs.nodegroup is not None:
        message = f"EKS rolls all nodes in one update: the policy's canary of {count_of(canary, 'node')} cannot be kept"
        fix = "try the version on a small node group first, or let it pass: a rollback is another update"
        yield blocker(Code.MANAGED_CANARY, about, message, fix)


def _image(preflight: Preflight, about: str) -> Iterator[PreflightFinding]:
    inputs, nodegroup = preflight.inputs, preflight.inputs.nodegroup
    if inputs.image and inputs.image_by_eks:
        message = f"EKS chooses its image: {inputs.image} cannot be had"
        fix = "use --kubernetes-version, or give the node group a launch template with an image"
        yield blocker(Code.MANAGED_IMAGE, about, message, fix)
    if inputs.version_requested and nodegroup is not None and nodegroup.ami_type == CUSTOM:
        message = f"its launch template chooses the image: EKS takes no Kubernetes version, found {inputs.version}"
        yield blocker(Code.MANAGED_IMAGE, about, message, "use --ami or --launch-template-version")


def _state(preflight: Preflight, about: str) -> Iterator[PreflightFinding]:
    nodegroup = preflight.inputs.nodegroup
    if nodegroup is None:
        return
    if nodegroup.status not in {"", "ACTIVE", "DEGRADED"}:
        message = f"its status is {nodegroup.status}: EKS starts no update of it"
        fix = f"wait: aws eks describe-nodegroup --cluster-name {nodegroup.cluster} --nodegroup-name {nodegroup.name}"
        yield blocker(Code.NODEGROUP_NOT_ACTIVE, about, message, fix)
    for issue in nodegroup.issues:
        yield warning(Code.NODEGROUP_DEGRADED, about, f"EKS says {issue}", "fix it first: the update may fail by it")


def _parallelism(preflight: Preflight, about: str) -> Iterator[PreflightFinding]:
    """Compare EKS' parallelism with the policy and its budgets, which EKS does not read. Nothing here writes its
    configuration: that belongs to the owner of the node group.
    """
    nodegroup, limits = preflight.inputs.nodegroup, preflight.limits
    if nodegroup is None or not preflight.old:
        return
    wanted = parallelism(preflight.policy.update, max(len(preflight.members), preflight.group.desired))
    allowed = wanted if limits.together >= preflight.parallel else min(wanted, limits.together)
    if preflight.parallel == allowed:
        return
    message = (
        f"EKS' updateConfig takes {count_of(preflight.parallel, 'node')} "
        f"at once, the policy and its budgets allow {allowed} now"
    )
    fix = (
        f"aws eks update-nodegroup-config --cluster-name {nodegroup.cluster} --nodegroup-name {nodegroup.name} "
        f"--update-config maxUnavailable={max(allowed, 1)}, or change update.maxUnavailable of the policy"
    )
    make = blocker if preflight.parallel > allowed else warning
    yield make(Code.MANAGED_PARALLELISM, about, message, fix)


def check_versions(preflight: Preflight) -> Iterator[PreflightFinding]:
    """Compare the target's version with the control plane's, and the image's architecture with the instance types'."""
    yield from _skew(preflight)
    yield from _architecture(preflight)


def minor_of(text: str) -> tuple[int, int] | None:
    """Parse `1.31`, `v1.31.4-eks-0a1b` -> (1, 31); None for anything else."""
    match = _VERSION.fullmatch(text.strip())
    return (int(match[1]), int(match[2])) if match else None


def _skew(preflight: Preflight) -> Iterator[PreflightFinding]:
    inputs, about = preflight.inputs, f"group {preflight.group.name}"
    wanted, plane = minor_of(inputs.version), minor_of(inputs.control_plane)
    if wanted is None:
        return
    newest = max((v for node in preflight.snapshot.nodes if (v := minor_of(node.kubelet))), default=None)
    if plane is None:
        if newest is None or wanted > newest:
            message = f"the control plane's version is not known, and no node runs {format_minor(wanted)} yet"
            fix = "aws eks describe-cluster must show at least that version"
            yield warning(Code.CONTROL_PLANE_UNKNOWN, about, message, fix)
        return
    if wanted > plane:
        message = f"kubelets would be {format_minor(wanted)}, newer than the control plane's {format_minor(plane)}"
        fix = f"aws eks update-cluster-version to {format_minor(wanted)} first, one minor after the other"
        yield blocker(Code.KUBELET_NEWER, about, message, fix)
    elif wanted[0] != plane[0] or plane[1] - wanted[1] > (_SKEW if wanted >= _NEW_SKEW_SINCE else _OLD_SKEW):
        message = f"kubelets would be {format_minor(wanted)}, too far behind the control plane's {format_minor(plane)}"
        yield blocker(Code.KUBELET_TOO_OLD, about, message, f"choose a version near {format_minor(plane)}")


def format_minor(version: tuple[int, int]) -> str:
    """Return the version as `1.31`."""
    return f"{version[0]}.{version[1]}"


def _architecture(preflight: Preflight) -> Iterator[PreflightFinding]:
    """Compare architectures: `inputs.architecture` where it is known, else types of two architectures under one image
    are enough.
    """
    launchable, about = preflight.launchable, f"group {preflight.group.name}"
    types = preflight.snapshot.types  # from DescribeInstanceTypes: the built-in table knows no architecture
    own = launchable.own if launchable else {}  # types of which an override brings the image
    names = [name for name in (launchable.types if launchable else ()) if name in types and name not in own]
    known = {name: types[name].architectures for name in names}
    known = {name: architectures for name, architectures in known.items() if architectures}
    image = preflight.inputs.architecture or _of_nodes(preflight)
    wrong = sorted(name for name, architectures in known.items() if image and image not in architectures)
    if wrong:
        message = f"the image is built for {image}, {', '.join(wrong)} {'is' if len(wrong) == 1 else 'are'} not"
        fix = "give types of another architecture a launch template of their own (override), or leave them out"
        yield blocker(Code.ARCHITECTURE_MISMATCH, about, message, fix)


def _of_nodes(preflight: Preflight) -> str:
    """Return the architecture of the old nodes, where all have the same: a new version of the template keeps it."""
    architectures = {
        member.node.labels.get(key) for member in preflight.old if member.node is not None for key in _ARCH_LABELS
    } - {None, ""}
    one = architectures.pop() if len(architectures) == 1 else None
    overrides = any(override.template is not None for override in preflight.group.launch.overrides)
    return one if one and not overrides else ""


def check_images(preflight: Preflight) -> Iterator[PreflightFinding]:
    """Yield the images of owners who are neither this account, AWS nor named by the policy: a principal that may
    start an upgrade names an image, and the image runs with the rights of the cluster's nodes. An image whose owner
    cannot be told is a finding as well: no image passes unseen.
    """
    own, policy = preflight.inputs.accounts, preflight.policy
    yield from _overridden(preflight)
    for name in preflight.inputs.absent_images:
        message = "EC2 does not return it: it is deregistered, of another Region, or not shared with this account"
        yield blocker(Code.IMAGE_NOT_FOUND, f"image {name}", message, "take an image that this account can launch")
    for image in preflight.inputs.images if own else ():
        trusted = image.owner in {*own, *policy.update.image_owners} or image.alias in OWNERS_BY_AWS
        if not image.owner:
            fix = "look up its owner before the start: aws ec2 describe-images --image-ids " + image.id
            yield warning(Code.NOT_JUDGED, f"image {image.id}", "its owner is not known", fix)
        elif not trusted:
            message = f"it belongs to account {image.owner}, which is neither this account, AWS nor a trusted owner"
            fix = f"name the account in update.imageOwners of policy {policy.name} if you trust it, else take another"
            yield blocker(Code.FOREIGN_IMAGE, f"image {image.id}", message, fix)


def _overridden(preflight: Preflight) -> Iterator[PreflightFinding]:
    """An image of an override wins over that of every version, so that a version made for another image changes none of
    its nodes.
    """
    images = sorted({one.image for one in preflight.group.launch.overrides if one.image})
    if images and (preflight.inputs.image or preflight.inputs.version_requested):
        message = f"its overrides name {', '.join(images)}, which wins over the image of a new launch template version"
        fix = "change ImageId in the overrides of the group, and drift replaces its nodes; or take ImageId off"
        yield blocker(Code.IMAGE_OVERRIDDEN, f"group {preflight.group.name}", message, fix)


def check_schedule(preflight: Preflight) -> Iterator[PreflightFinding]:
    """Yield the findings. A closed window is a warning: the run waits for it."""
    settings, update, now = preflight.snapshot.policies.settings, preflight.policy.update, preflight.snapshot.now
    if paused := preflight.snapshot.policies.pauses.voluntary(preflight.group.name):
        fix = f"leeward resume --cluster {preflight.snapshot.cluster} when that is over"
        yield blocker(Code.CLUSTER_PAUSED, f"group {preflight.group.name}", f"{paused}: nothing is started", fix)
    until = opens(update.windows, settings.freeze, now)
    when = f"it can continue at {format_instant(until)}" if until else "there is no moment within a year when it could"
    if any_active(settings.freeze, now):
        yield warning(Code.FROZEN, f"cluster {settings.name}", f"a freeze is on: {when}", "start it now, it waits")
    elif update.windows and not any_active(update.windows, now):
        message = f"outside the windows of policy {preflight.policy.name}: {when}"
        yield warning(Code.WINDOW_CLOSED, f"group {preflight.group.name}", message, "start it now, it waits")
    for budget in upgrade_budgets(preflight.policy):
        yield from _budget(preflight, budget)


def check_alarms(preflight: Preflight) -> Iterator[PreflightFinding]:
    """Yield the alarms that would hold the upgrade. One that does not exist holds it until it does, so it blocks; one
    in ALARM is waited for.
    """
    about = f"policy {preflight.policy.name}"
    for name in preflight.inputs.alarms.missing:
        message = f"update.alarms names {name}, which CloudWatch does not have in this account and Region"
        yield blocker(Code.ALARM_MISSING, about, message, "create the alarm, or take its name out of the policy")
    for alarm in preflight.inputs.alarms.ringing:
        since = f" since {format_instant(alarm.since)}" if alarm.since is not None else ""
        message = f"alarm {alarm.name} is in ALARM{since}: no node is started until it is not"
        yield warning(Code.ALARM_RINGING, about, message, "start it now, it waits")


def _budget(preflight: Preflight, budget: Budget) -> Iterator[PreflightFinding]:
    zones = policy_zones(preflight.snapshot, preflight.group, preflight.members, preflight.policy)
    total = len(zones) if budget.zone is None else zones.count(budget.zone)
    if total == 0 or limit(budget, total) > 0:
        return
    where = f" in {budget.zone}" if budget.zone else ""
    about = f"policy {preflight.policy.name}"
    if budget.window is None:
        message = f"a budget for Upgrade allows no node{where}, at any time"
        yield blocker(Code.BUDGET_ALLOWS_NONE, about, message, "raise its nodes, or give it a schedule and a duration")
    elif is_active(budget.window, preflight.snapshot.now):
        until = opens((), (budget.window,), preflight.snapshot.now)
        when = f" until {format_instant(until)}" if until else " within a year"
        message = f"a budget for Upgrade allows no node{where} now{when}"
        yield warning(Code.BUDGET_ALLOWS_NONE, about, message, "start it now, it waits")
