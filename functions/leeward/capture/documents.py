"""Files of a snapshot folder, each as the document that its command would print, for one cluster.

Decides which calls are made for which file and which part of their answers belongs to the cluster: its groups by their
tags, as live commands choose them, and what follows from those. Data that two files need is read once. A file whose
call fails is left out, as are those that follow from it; the others are written."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import Any

from leeward.capture.launching import RawLaunches, described, types_used, versions_used
from leeward.errors import ClusterUnreachableError, LeewardError, TerminalError
from leeward.model import well_known
from leeward.model.facts import Prices
from leeward.model.group import Group
from leeward.model.instance import cluster_of, instance_id_of
from leeward.placement.accounting import CNI_ROLE_TAG
from leeward.ports import Ports
from leeward.ports.kubernetes import Listed
from leeward.ports.raw import Raw, RawAws
from leeward.snapshot.gather import known_prices

KUBERNETES: Mapping[str, tuple[Listed, str, str]] = {
    "nodes": (Listed.NODES, "v1", "Node"),
    "pods": (Listed.PODS, "v1", "Pod"),
    "pdbs": (Listed.BUDGETS, "policy/v1", "PodDisruptionBudget"),
    "daemonsets": (Listed.DAEMON_SETS, "apps/v1", "DaemonSet"),
    "pvs": (Listed.VOLUMES, "v1", "PersistentVolume"),
    "pvcs": (Listed.CLAIMS, "v1", "PersistentVolumeClaim"),
    "volumeattachments": (Listed.ATTACHMENTS, "storage.k8s.io/v1", "VolumeAttachment"),
    "storageclasses": (Listed.STORAGE_CLASSES, "storage.k8s.io/v1", "StorageClass"),
    "csinodes": (Listed.CSI_NODES, "storage.k8s.io/v1", "CSINode"),
    "namespaces": (Listed.NAMESPACES, "v1", "Namespace"),
}


Keep = Callable[[str, Raw], Raw]  # what the file of that name keeps of an element


class NotReadError(TerminalError):
    """Error for a file that is left out because one that it follows from could not be read."""


class Capture:
    """One cluster at about one moment: `document` of each file by its name. `keep` reduces the elements in which
    secrets may be. `warnings`: messages that matter although the file is written.
    """

    def __init__(self, ports: Ports, aws: RawAws, cluster: str, now: datetime, keep: Keep) -> None:
        self._ports, self._aws, self._cluster, self._now, self._keep = ports, aws, cluster, now, keep
        self._known: dict[str, Any] = {}
        self._unreachable: ClusterUnreachableError | None = None
        self.warnings: list[str] = []

    def document(self, name: str) -> Any:
        """Return it, read once, a failure too. Raises LeewardError naming the call, NotReadError naming a file."""
        if name not in self._known:
            try:
                self._known[name] = self._listed(name) if name in KUBERNETES else AWS[name](self)
            except LeewardError as error:
                self._known[name] = error
        if isinstance(self._known[name], LeewardError):
            raise self._known[name]
        return self._known[name]

    def policies(self) -> Sequence[Raw]:
        """Return the documents that are deployed for the cluster. Raises LeewardError."""
        return self._aws.policies(self._cluster)

    def strangers(self) -> list[str]:
        """Return the groups of the cluster's nodes that do not have its tag: no live command plans for them."""
        tags = [{tag["Key"]: tag.get("Value", "") for tag in one.get("Tags", ())} for one in self._instances()]
        named = {found[well_known.GROUP_TAG] for found in tags if found.get(well_known.GROUP_TAG)}
        return sorted(named - {group.name for group in self._groups()})

    def _listed(self, name: str) -> Raw:
        """Read a list; an API server that does not answer is called once, not for each file."""
        if self._unreachable is not None:
            raise self._unreachable
        what, api_version, kind = KUBERNETES[name]
        kubernetes = self._ports.clusters.kubernetes(self._cluster)
        try:
            items = kubernetes.read(
                what, lambda raw: {"apiVersion": api_version, "kind": kind, **self._keep(name, raw)}
            )
        except ClusterUnreachableError as error:
            self._unreachable = error
            raise
        return {"apiVersion": "v1", "items": list(items), "kind": "List", "metadata": {"resourceVersion": ""}}

    def _needed(self, name: str) -> Any:
        try:
            return self.document(name)
        except LeewardError as error:
            raise NotReadError(f"it follows from {name}.json, which is left out") from error

    def _groups(self) -> list[Group]:
        return [Group.from_json(raw) for raw in self._needed("auto-scaling-groups")["AutoScalingGroups"]]

    def _instances(self) -> list[Raw]:
        return [raw for one in self._needed("instances")["Reservations"] for raw in one["Instances"]]

    def _group_output(self) -> Raw:
        tag_keys = [well_known.CLUSTER_TAG_PREFIX + self._cluster, *well_known.EKS_CLUSTER_TAGS]
        found = self._aws.groups_tagged(tag_keys)
        mine = [raw for raw in found if cluster_of(Group.from_json(raw).tags, [self._cluster]) is not None]
        return {"AutoScalingGroups": mine}

    def _hook_output(self) -> Raw:
        return {"LifecycleHooks": [hook for group in self._groups() for hook in self._aws.hooks(group.name)]}

    def _configuration_output(self) -> Raw:
        names = sorted({group.launch.configuration or "" for group in self._groups()} - {""})
        found = self._aws.launch_configurations(names)
        return {"LaunchConfigurations": [self._keep("launch-configurations", raw) for raw in found]}

    def _nodegroup_output(self) -> list[Raw]:
        """Read the node groups. One whose call fails is left out, which is what its absence means offline."""
        found: list[Raw] = []
        managed = {(group.cluster or self._cluster, group.nodegroup) for group in self._groups() if group.nodegroup}
        for cluster, name in sorted(managed):
            try:
                found.append(self._aws.nodegroup(cluster, name))
            except LeewardError as error:
                self.warnings.append(f"nodegroups.json is without {name}: {error}")
        return found

    def _version_output(self) -> Raw:
        used = versions_used(self._groups(), described(self._needed("nodegroups")))
        found: dict[tuple[str, int], Raw] = {}
        for template, versions in used.items():
            for raw in self._aws.template_versions(template, versions):
                key = raw.get("LaunchTemplateId", ""), int(raw.get("VersionNumber", 0))
                found[key] = self._keep("launch-template-versions", raw)
        return {"LaunchTemplateVersions": list(found.values())}

    def _instance_output(self) -> Raw:
        """Read members of the groups and instances of the nodes; where either cannot be read, those of the other."""
        ids: set[str] = set()
        failures: dict[str, LeewardError] = {}
        for name, of in (("auto-scaling-groups", self._members), ("nodes", self._node_instances)):
            try:
                ids |= of()
            except LeewardError as error:
                failures[name] = error
        if len(failures) > 1:
            raise next(iter(failures.values()))
        self.warnings += [
            f"instances.json lacks what only {name}.json contains, which is left out" for name in failures
        ]
        return {"Reservations": list(self._aws.reservations(sorted(ids)))}

    def _members(self) -> set[str]:
        return {member.id for group in self._groups() for member in group.instances}

    def _node_instances(self) -> set[str]:
        ids = (
            instance_id_of((raw.get("spec") or {}).get("providerID") or "") for raw in self._needed("nodes")["items"]
        )
        return {one for one in ids if one.startswith("i-")}

    def _status_output(self) -> Raw:
        """Return the status of instances that fail a check: no command reads that of the others."""
        mine = {raw["InstanceId"] for raw in self._instances()}
        found = {raw["InstanceId"]: raw for raw in self._aws.impaired() if raw["InstanceId"] in mine}
        return {"InstanceStatuses": list(found.values())}

    def _image_output(self) -> Raw:
        """Read the images that templates, configurations and overrides name, of which pre-flight reads the owner."""
        versions = self._needed("launch-template-versions")["LaunchTemplateVersions"]
        sources = [one.get("LaunchTemplateData") or {} for one in versions]
        sources += self._needed("launch-configurations")["LaunchConfigurations"]
        named = {str(one.get("ImageId") or "") for one in sources}
        named |= {override.image for group in self._groups() for override in group.launch.overrides}
        return {"Images": list(self._aws.images(sorted(one for one in named if one.startswith("ami-"))))}

    def _subnet_output(self) -> Raw:
        """Read the groups' subnets, and those of their VPCs that the CNI's subnet discovery may use beside them."""
        own = self._aws.subnets(sorted({name for group in self._groups() for name in group.subnets}))
        vpcs = sorted({str(raw.get("VpcId") or "") for raw in own} - {""})
        found = {raw["SubnetId"]: raw for raw in (*self._aws.subnets_tagged(vpcs, CNI_ROLE_TAG), *own)}
        return {"Subnets": list(found.values())}

    def _cluster_output(self) -> Raw:
        return self._aws.cluster(self._cluster)

    @cached_property
    def _types(self) -> tuple[str, ...]:
        """Instance types in use. Without the API server node labels are missing, which name running types anyway."""
        versions = self._needed("launch-template-versions")["LaunchTemplateVersions"]
        configurations = self._needed("launch-configurations")["LaunchConfigurations"]
        nodegroups = described(self._needed("nodegroups"))
        launches = RawLaunches(
            versions,
            configurations,
            nodegroups,
            self._aws.all_instance_types,
            lambda: self.document("images")["Images"],
        )
        try:
            nodes = self.document("nodes")["items"]
        except LeewardError:
            nodes = []
        return types_used(self._cluster, self._groups(), self._instances(), nodes, launches)

    def _price_output(self) -> Raw:
        """Return prices as live commands know them: those that fn sync has recorded, and the missing ones from AWS."""
        zones = sorted({str(raw["AvailabilityZone"]) for raw in self._needed("subnets")["Subnets"]})
        price_list, catalog = self._ports.price_list, self._ports.catalog
        found, warnings = known_prices(price_list, catalog, self._cluster, self._types, zones, self._now)
        if warnings and found == Prices():
            raise TerminalError("; ".join(warnings))
        self.warnings += [f"prices.json: {warning}" for warning in warnings]
        return {"on-demand": dict(found.on_demand), "spot": {name: dict(by) for name, by in found.spot.items()}}

    def _type_output(self) -> Raw:
        """Return the types that the groups may launch, that run, or that have a price."""
        priced: set[str] = set()
        try:
            prices = self.document("prices")
            priced = {*prices["on-demand"], *prices["spot"]}
        except LeewardError:
            pass  # reported for prices.json
        return {"InstanceTypes": list(self._aws.instance_types(sorted(priced.union(self._types))))}


AWS: Mapping[str, Callable[[Capture], Any]] = {
    "auto-scaling-groups": Capture._group_output,
    "lifecycle-hooks": Capture._hook_output,
    "launch-configurations": Capture._configuration_output,
    "launch-template-versions": Capture._version_output,
    "instances": Capture._instance_output,
    "instance-types": Capture._type_output,
    "instance-status": Capture._status_output,
    "images": Capture._image_output,
    "subnets": Capture._subnet_output,
    "cluster": Capture._cluster_output,
    "nodegroups": Capture._nodegroup_output,
    "prices": Capture._price_output,
}
