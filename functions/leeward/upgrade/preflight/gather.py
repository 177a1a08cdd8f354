"""Inputs of pre-flight: the whole cluster at this moment, with the group as it would be on the target.

`leeward upgrade plan`, live or of a snapshot folder, and the first step check the same `Preflight`, read through the
ports alone. Decides what is read, and that a denied input is reported and not checked."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TypeVar

from leeward.errors import InvalidInputError, LeewardError, ObjectGoneError
from leeward.model.counts import count_of
from leeward.model.group import Group
from leeward.model.image import Image
from leeward.model.instance import CapacityType
from leeward.model.load_balancing import Service
from leeward.model.nodegroup import Nodegroup
from leeward.model.times import format_instant
from leeward.node_template.choices import architecture_of
from leeward.placement.cni import variables_of
from leeward.policy.document import NodePolicy, Selector
from leeward.policy.selection import policy_for
from leeward.ports import Ports
from leeward.ports.compute import LaunchSources
from leeward.ports.eks import ManagedUpdates
from leeward.ports.kubernetes import Kubernetes
from leeward.snapshot.cluster import ClusterSnapshot
from leeward.snapshot.gather import gather
from leeward.snapshot.unread_launches import unread_launch
from leeward.termination.replica_surge import surged
from leeward.termination.settling import services_of
from leeward.time_budget import SearchTime
from leeward.upgrade.expected_labels import expected_labels
from leeward.upgrade.managed import target as managed_target
from leeward.upgrade.members import Target
from leeward.upgrade.observation import described
from leeward.upgrade.preflight.findings import Code, blocking
from leeward.upgrade.preflight.images import images
from leeward.upgrade.preflight.model import FOR_SEARCH, Preflight, PreflightInputs, held_lone_pods
from leeward.upgrade.preflight.plan import Plan, plan_upgrade
from leeward.upgrade.record import UpgradeRecord
from leeward.upgrade.templates import architecture_named, expected
from leeward.workflow.alarms import read_alarms

T = TypeVar("T")
MOST_FINDINGS = 200  # that are recorded: an item of the table takes 400 KB, most of it the waves


@dataclass(frozen=True, slots=True, kw_only=True)
class PreflightResult:
    """Result of pre-flight. `blocked`: the blockers that are not overridden, each with its fix, in one line; empty when
    it may start.
    """

    preflight: Preflight
    plan: Plan
    blocked: str

    @property
    def summary(self) -> str:
        """Summary of the plan, in a sentence."""
        waves, findings = len(self.plan.waves), len(self.plan.findings)
        summary = f"{len(self.preflight.old)} of {len(self.preflight.members)} are old: about {count_of(waves, 'wave')}"
        return f"{summary}, {self.plan.seconds} s; {count_of(findings, 'finding')}, nothing blocks it"


def run_preflight(record: UpgradeRecord, ports: Ports) -> PreflightResult:
    """Gather the inputs, plan, and decide whether blockers remain. The whole plan is written beside the record, which
    names it: with a thousand nodes it is too large to travel from step to step.
    """
    preflight = gather_preflight(record, ports)
    preflight = replace(preflight, time=SearchTime(ports.budget).part(FOR_SEARCH))
    plan = plan_upgrade(preflight)
    known = {code.value: code for code in Code}
    overridden = frozenset(known[one] for one in record.request.overrides if one in known)
    ports.upgrades.keep_plan(
        record.group,
        {
            "at": format_instant(preflight.snapshot.now),
            "execution": record.execution,
            "overridden": sorted(code.value for code in overridden),
            "plan": replace(plan, findings=plan.findings[:MOST_FINDINGS]).to_json(),
        },
    )
    blockers = blocking(plan.findings, overridden)
    blocked = "; ".join(f"{one.code.value} ({one.object}): {one.message}: {one.fix}" for one in blockers)
    return PreflightResult(preflight=preflight, plan=plan, blocked=blocked)


def gather_preflight(record: UpgradeRecord, ports: Ports) -> Preflight:
    """Read the cluster and everything that its launches depend on. Raises what the ports raise, and InvalidInputError
    for a group that does not exist. A group that no policy selects is judged by the defaults.
    """
    group = described(record.group, ports.groups)
    policies = ports.clusters.policies(record.cluster)
    policy = policy_for(policies.policies, group.name, group.tags)
    chosen = policy or NodePolicy(name="(defaults)", selector=Selector(groups=(group.name,)))
    nodegroup = _nodegroup(record, group, ports.managed_updates)
    if group.nodegroup is not None:
        target = managed_target.wanted(record, nodegroup, ports.templates)
    elif group.launch.template is None:
        target = record.target  # a launch configuration, which is a finding
    else:
        target = _target_of(record, group, ports)
        group = _launching(group, record)
    if policy is None:
        policies = replace(policies, policies=(*policies.policies, chosen))
    snapshot = gather(ports, record.cluster, ports.clock.now(), as_if=group, policies=policies)
    inputs = _inputs(record, snapshot, group, chosen, nodegroup, ports)
    if group.nodegroup is None:
        inputs = replace(inputs, labels=expected_labels(target, group, snapshot.nodes, ports.launches))
    launchable = snapshot.launchables.get(group.name)
    unread = unread_launch(group, launchable) if launchable is not None else None
    return Preflight.of(snapshot, group, chosen, target, replace(inputs, selected=policy is not None, launch=unread))


def _target_of(record: UpgradeRecord, group: Group, ports: Ports) -> Target:
    """Return the target. Raises InvalidInputError where the version that the group launches, or the requested one, was
    deleted.
    """
    try:
        return expected(_without_its_own_image(record, group, ports.launches), group, ports.templates)
    except ObjectGoneError as error:
        raise InvalidInputError(
            f"launch template of group {group.name}: found one that was deleted ({error}), expected an existing "
            "version: point the group at one, then start the upgrade again"
        ) from error


def _without_its_own_image(record: UpgradeRecord, group: Group, launches: LaunchSources) -> UpgradeRecord:
    """Return the record without a requested image that the group's version has already: no version is made for it
    (`Templates.version_for`), so its nodes are new.
    """
    settings = launches.settings(group) if record.request.image else None
    if settings is None or settings.image != record.request.image:
        return record
    return replace(record, request=replace(record.request, image=""))


def _launching(group: Group, record: UpgradeRecord) -> Group:
    """Return the group as if it launched the version that is asked for. One that is yet to be made is like the present
    one.
    """
    template, version = group.launch.template, record.request.template_version
    if template is None or not version:
        return group
    return replace(group, launch=replace(group.launch, template=replace(template, version=version)))


def _nodegroup(record: UpgradeRecord, group: Group, managed_updates: ManagedUpdates) -> Nodegroup | None:
    """Return the node group, None where EKS (or a snapshot folder) has none or an unusable one: then its group alone is
    judged.
    """
    if group.nodegroup is None:
        return None
    try:
        return managed_updates.nodegroup(record.cluster, group.nodegroup)
    except (ObjectGoneError, InvalidInputError):
        return None


def _inputs(
    record: UpgradeRecord,
    snapshot: ClusterSnapshot,
    group: Group,
    policy: NodePolicy,
    nodegroup: Nodegroup | None,
    ports: Ports,
) -> PreflightInputs:
    unread: list[str] = list(snapshot.warnings)
    request, limits = record.request, ports.service_limits
    launchable = snapshot.launchables.get(group.name)
    spot = launchable is not None and launchable.capacity is CapacityType.SPOT
    types = launchable.types if launchable is not None else ()
    kubernetes = ports.clusters.kubernetes(record.cluster)
    daemon_set = kubernetes.aws_node()
    launched, absent = images(record, group, nodegroup, ports, unread)
    alarms = read_alarms(policy.update.alarms, ports.alarms)
    unread += [f"alarms: {alarms.unreadable}"] if alarms.unreadable else []
    return PreflightInputs(
        force=request.force,
        image=request.image,
        images=launched,
        absent_images=absent,
        accounts=frozenset(account for account, _ in ports.origins if account),
        image_by_eks=nodegroup is not None and nodegroup.template is None,
        version=request.kubernetes or (nodegroup.version if nodegroup is not None else ""),
        version_requested=bool(request.kubernetes),
        control_plane=_read(lambda: limits.control_plane(record.cluster), "", unread),
        architecture=_architecture(request.image, launched) or architecture_of(nodegroup) or "",
        refreshes=_read(lambda: limits.refreshes(group.name), (), unread),
        scheduled=_read(lambda: limits.scheduled(group.name), (), unread),
        quota=_read(lambda: limits.vcpus_left(types, snapshot.now, spot=spot), None, unread),
        cni={**(variables_of(daemon_set) if daemon_set is not None else {}), **policy.cni},
        types=snapshot.types,
        nodegroup=nodegroup,
        alarms=alarms,
        surged=_read(lambda: surged(held_lone_pods(snapshot, group, policy), kubernetes), frozenset(), unread),
        services=None if policy.drain.settle is not None else _services(kubernetes),
        unread=tuple(unread),
    )


def _services(kubernetes: Kubernetes) -> tuple[Service, ...] | None:
    """Return the cluster's Services, None where they cannot be read: the estimate then counts the default settle time,
    as a drain waits it. That is no finding, and a snapshot folder holds none.
    """
    with suppress(LeewardError):
        return tuple(services_of(kubernetes))
    return None


def _architecture(asked: str, launched: Iterable[Image]) -> str:
    if not asked.startswith("ami-"):
        return architecture_named(asked)
    return next((image.architecture for image in launched if image.id == asked), "")


def _read(ask: Callable[[], T], otherwise: T, unread: list[str]) -> T:
    """Read an input that may be denied without stopping anything: it is reported and not checked."""
    try:
        return ask()
    except LeewardError as error:
        unread.append(str(error))
        return otherwise
