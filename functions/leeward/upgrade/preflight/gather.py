"""Inputs of pre-flight: the whole cluster at this moment, with the group as it would be on the target.

`leeward upgrade plan`, live or of a snapshot folder, and the first step check the same `Preflight`, read through the
ports alone. Decides what is read, and that a denied input is reported and not checked.

Labels that a new node of a self-managed group has to carry, or the gate stays closed (docs/features.md, U6): a label
that no node gets keeps the gate closed for good, so only facts count. These are labels that the version's user data
declares (NodeConfig, TOML), and labels that its script or the group's tags name where every old node that booted with
the same user data carries them. Others are reported by pre-flight and not waited for."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TypeVar

from leeward.errors import InvalidInputError, LeewardError, ObjectGoneError
from leeward.model.counts import count_of
from leeward.model.group import Group
from leeward.model.image import Image
from leeward.model.instance import CapacityType
from leeward.model.launch import LaunchTemplateRef
from leeward.model.load_balancing import Service
from leeward.model.node import Node
from leeward.model.nodegroup import Nodegroup
from leeward.model.times import format_instant
from leeward.node_template.choices import architecture_of
from leeward.node_template.labels import LABEL, tag_facts
from leeward.node_template.provenance import Attribute, Provenance
from leeward.node_template.user_data import kubelet_settings
from leeward.placement.cni import variables_of
from leeward.policy.document import GroupSelector, NodePolicy
from leeward.ports import Ports
from leeward.ports.compute import LaunchSources, Templates
from leeward.ports.eks import ManagedUpdates
from leeward.ports.kubernetes import Kubernetes
from leeward.snapshot.cluster import ClusterSnapshot
from leeward.snapshot.gather import gather
from leeward.snapshot.launchable import unread_launch
from leeward.termination.replica_surge import surged
from leeward.termination.settling import services_of
from leeward.time_budget import SearchTime
from leeward.upgrade.members import UpgradeTarget
from leeward.upgrade.observation import described
from leeward.upgrade.preflight.findings import Code, blocking
from leeward.upgrade.preflight.model import FOR_SEARCH, ExpectedLabels, Preflight, PreflightInputs, held_lone_pods
from leeward.upgrade.preflight.plan import UpgradePlan, plan_upgrade
from leeward.upgrade.record import UpgradeRecord, UpgradeRequest
from leeward.upgrade.targets import architecture_named, expected, image_asked, managed_target
from leeward.workflow.alarms import read_alarms

T = TypeVar("T")
MOST_FINDINGS = 200  # that are recorded: an item of the table takes 400 KB, most of it the waves

AWS = "/aws/service/"  # SSM parameters that AWS publishes


@dataclass(frozen=True, slots=True, kw_only=True)
class PreflightResult:
    """Result of pre-flight. `blocked`: the blockers that are not overridden, each with its fix, in one line; empty when
    it may start.
    """

    preflight: Preflight
    plan: UpgradePlan
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
    policy = policies.policy_of(group)
    chosen = policy or NodePolicy(name="(defaults)", selector=GroupSelector(groups=(group.name,)))
    nodegroup = _nodegroup(record, group, ports.managed_updates)
    if group.nodegroup is not None:
        target = managed_target(record, nodegroup, ports.templates)
    elif group.launch.template is None:
        target = record.target  # a launch configuration, which is a finding
    else:
        target = _target_of(record, group, ports.launches, ports.templates)
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


def _target_of(record: UpgradeRecord, group: Group, launches: LaunchSources, templates: Templates) -> UpgradeTarget:
    """Return the target. Raises InvalidInputError where the version that the group launches, or the requested one, was
    deleted.
    """
    try:
        return expected(_without_its_own_image(record, group, launches), group, templates)
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


def labels_overridden(record: UpgradeRecord) -> bool:
    """Return whether the start, or one that continues it, lets nodes without their labels pass."""
    return Code.LABELS_MISSING.value in record.request.overrides


def labelled(record: UpgradeRecord, group: Group, nodes: Iterable[Node], launches: LaunchSources) -> UpgradeRecord:
    """Return the record with the labels of its target; without any where they are overridden. The version before has
    none: a label that its nodes lack is no reason to fail a rollback.
    """
    if record.target.nodegroup is not None:
        return record
    labels = {} if labels_overridden(record) else expected_labels(record.target, group, nodes, launches).required
    return replace(record, target=replace(record.target, node_labels=labels))


def expected_labels(
    target: UpgradeTarget, group: Group, nodes: Iterable[Node], launches: LaunchSources
) -> ExpectedLabels:
    """Return the labels. Nothing is known of the user data where some instance types come from templates of their own,
    and where the template cannot be read. A target whose version is yet to be made is like the group's template.
    """
    tagged = tag_facts({key: value for key, value in group.tags.items() if key.startswith(LABEL)}).labels
    several = target.overrides or target.by_requirements
    user_data = None if several else _user_data(group, target.template or group.launch.template, launches)
    if user_data is None:
        return ExpectedLabels(unproven=tagged)
    settings = kubelet_settings(user_data)
    origin = settings.provenance.get(Attribute.LABELS, Provenance.ESTIMATED)
    declared = settings.labels if origin is Provenance.DECLARED else {}
    guessed = {key: value for key, value in {**tagged, **settings.labels}.items() if key not in declared}
    if origin is Provenance.UNKNOWN:
        return ExpectedLabels(unproven=guessed, unclear=True)
    shown = _shown(user_data, target, group, nodes, launches) if guessed else {}
    proven = {key: value for key, value in guessed.items() if shown.get(key) == value}
    unproven = {key: value for key, value in guessed.items() if key not in proven}
    return ExpectedLabels(required={**declared, **proven}, unproven=unproven)


def _shown(
    user_data: str, target: UpgradeTarget, group: Group, nodes: Iterable[Node], launches: LaunchSources
) -> Mapping[str, str]:
    """Return the labels that all old nodes carry which booted with the same user data."""
    by_instance = {node.instance_id: node for node in nodes}
    same: dict[LaunchTemplateRef, bool] = {}
    shared: set[tuple[str, str]] | None = None
    for member in group.instances:
        node, template = by_instance.get(member.id), member.template
        if node is None or template is None or template == target.template:
            continue
        if template not in same:
            same[template] = _user_data(group, template, launches) == user_data
        if same[template]:
            labels = set(node.labels.items())
            shared = labels if shared is None else shared & labels
    return dict(shared or ())


def _user_data(group: Group, template: LaunchTemplateRef | None, launches: LaunchSources) -> str | None:
    """Return the user data of the template; None where it cannot be read or is gone."""
    if template is None:
        return None
    try:
        settings = launches.settings(replace(group, launch=replace(group.launch, template=template)))
    except LeewardError:
        return None
    return settings.user_data if settings is not None else None


def images(
    record: UpgradeRecord, group: Group, nodegroup: Nodegroup | None, ports: Ports, unread: list[str]
) -> tuple[tuple[Image, ...], tuple[str, ...]]:
    """Return the image that is asked for, else that of the version, and those of templates of single types; and beside
    them the ids of those that EC2 does not return. Images that EKS chooses, and those behind AWS's own parameters, are
    AWS's and left out.

    `group`: as if it launched the version that is asked for; `unread` takes inputs that may not be read. Raises
    InvalidInputError for an SSM parameter that does not exist.
    """
    asked, by_aws = _asked(record, group, ports, unread), _by_aws(record.request)
    try:
        gone = by_aws and asked != "" and not ports.templates.image_exists(asked)
        own = [asked] if asked and (gone or not by_aws) else []
        ids = dict.fromkeys([*own, *_ids(record, group, nodegroup, ports.launches)])
        found = ports.service_limits.images(ids) if ids else {}
    except LeewardError as error:
        unread.append(str(error))
        return (), ()
    return tuple(found[one] for one in ids if one in found), tuple(one for one in ids if one not in found)


def _by_aws(request: UpgradeRequest) -> bool:
    """Return whether AWS publishes what the image is named by: of such an image the existence alone is read."""
    return not request.image.startswith("ami-") and (not request.image.startswith("/") or request.image.startswith(AWS))


def _asked(record: UpgradeRecord, group: Group, ports: Ports, unread: list[str]) -> str:
    """Return the id of the image that is asked for; empty where none is, or where EKS chooses it."""
    if group.nodegroup is not None and not record.request.image:
        return ""
    try:
        return image_asked(record, ports)
    except InvalidInputError:
        raise
    except LeewardError as error:
        unread.append(str(error))
        return ""


def _ids(record: UpgradeRecord, group: Group, nodegroup: Nodegroup | None, launches: LaunchSources) -> Iterator[str]:
    yield from (one.image for one in group.launch.overrides if one.image.startswith("ami-"))
    references = [one.template for one in group.launch.overrides if one.template is not None]
    if not (record.request.image or record.request.kubernetes):
        references += _launched(record, group, nodegroup)
    for reference in references:
        settings = launches.settings(replace(group, launch=replace(group.launch, template=reference)))
        if settings is not None and settings.image.startswith("ami-"):
            yield settings.image


def _launched(record: UpgradeRecord, group: Group, nodegroup: Nodegroup | None) -> list[LaunchTemplateRef]:
    """Return the template's version: the group's, for a managed node group the one of its own template, if any."""
    if group.nodegroup is None:
        return [group.launch.template] if group.launch.template is not None else []
    if nodegroup is None or nodegroup.template is None:
        return []
    template, version = nodegroup.template
    return [LaunchTemplateRef(id=template, version=record.request.template_version or version or "$Default")]
