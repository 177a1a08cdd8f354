"""Versions that are incompatible, images of foreign owners, and switches, freezes, windows, budgets and alarms that
keep the upgrade from starting now.

Source: Kubernetes' version skew policy: a kubelet is never newer than the API server, and at most three minors older
(two before 1.28)."""

import re
from collections.abc import Iterator

from leeward.budgets.disruption_budgets import limit, upgrade_budgets
from leeward.model.image import OWNERS_BY_AWS
from leeward.model.times import format_instant
from leeward.policy.document import Budget
from leeward.policy.schedule import any_active, is_active
from leeward.upgrade.control import opens
from leeward.upgrade.preflight.findings import Code, PreflightFinding, blocker, warning
from leeward.upgrade.preflight.model import Preflight, policy_zones

_VERSION = re.compile(r"v?(\d{1,4})\.(\d{1,4})(?:[.+-].*)?")
_NEW_SKEW_SINCE, _OLD_SKEW, _SKEW = (1, 28), 2, 3
_ARCH_LABELS = ("kubernetes.io/arch", "beta.kubernetes.io/arch")


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
