"""Labels of a node that does not exist yet, by their source.

Sources: EKS' nodes (the cloud provider's and EKS' own labels, beta spellings included); Cluster Autoscaler,
cloudprovider/aws (buildGenericLabels, getManagedNodegroupInfo) for amiType, diskSize, k8sVersion.

Tags about a group's nodes: `k8s.io/cluster-autoscaler/node-template/{label,taint,resources}/…`.

Source: Cluster Autoscaler, cloudprovider/aws/aws_manager.go (extractLabelsFromAsg, extractTaintsFromAsg,
extractAllocatableResourcesFromTags); `autoscaling-options/…` and `csi-driver` are about something else."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from leeward.errors import InvalidInputError
from leeward.model import well_known
from leeward.model.group import Group
from leeward.model.instance import CapacityType
from leeward.model.launch import LaunchSettings
from leeward.model.node import Taint
from leeward.model.nodegroup import EFFECTS, Nodegroup
from leeward.model.quantity import Amounts, amount
from leeward.node_template.flags import is_label

HOSTNAME, ARCH, OS = "kubernetes.io/hostname", "kubernetes.io/arch", "kubernetes.io/os"
REGION = "topology.kubernetes.io/region"
EBS_ZONE = "topology.ebs.csi.aws.com/zone"
BETA = {
    ARCH: "beta.kubernetes.io/arch",
    OS: "beta.kubernetes.io/os",
    well_known.INSTANCE_TYPE_LABEL: "beta.kubernetes.io/instance-type",
    well_known.ZONE_LABEL: "failure-domain.beta.kubernetes.io/zone",
    REGION: "failure-domain.beta.kubernetes.io/region",
}
EKS = "eks.amazonaws.com/"
NODEGROUP, IMAGE, CAPACITY = EKS + "nodegroup", EKS + "nodegroup-image", EKS + "capacityType"
TEMPLATE_ID, TEMPLATE_VERSION = EKS + "sourceLaunchTemplateId", EKS + "sourceLaunchTemplateVersion"
_REGION = re.compile(r"[a-z]{2,}(?:-[a-z]+)+-\d+")  # us-east-1a, us-west-2-lax-1a
_NO_NAME = re.compile(r"[^a-z0-9]+")
PREFIX = "k8s.io/cluster-autoscaler/node-template/"
LABEL, TAINT, RESOURCE = PREFIX + "label/", PREFIX + "taint/", PREFIX + "resources/"
EKS_PREFIXES = ("eks:", "aws:eks:")  # eks:nodegroup-name becomes the label nodegroup-name


def generic(
    *, name: str, zone: str, instance_type: str, architecture: str, system: str, zone_id: str = ""
) -> dict[str, str]:
    """Return the labels that cloud provider and kubelet put on every node, in both spellings, without unknown ones."""
    region = _REGION.match(zone)
    found = {
        HOSTNAME: name,
        ARCH: architecture,
        OS: system,
        well_known.INSTANCE_TYPE_LABEL: instance_type,
        well_known.ZONE_LABEL: zone,
        well_known.ZONE_ID_LABEL: zone_id,
        REGION: region[0] if region else "",
        EBS_ZONE: zone,
    }
    found |= {beta: found[label] for label, beta in BETA.items()}
    return {label: value for label, value in found.items() if value}


def of_managed_group(group: Group, launch: LaunchSettings, capacity: CapacityType | None) -> dict[str, str]:
    """Return the labels that EKS puts on the nodes of a managed group and that the group itself shows, also without an
    answer of DescribeNodegroup.

    Empty for a self-managed group.
    """
    if group.nodegroup is None:
        return {}
    found = {NODEGROUP: group.nodegroup}
    if launch.image.startswith("ami-"):
        found[IMAGE] = launch.image
    if capacity is not None:
        found[CAPACITY] = "SPOT" if capacity is CapacityType.SPOT else "ON_DEMAND"
    return found


def of_nodegroup(nodegroup: Nodegroup) -> Mapping[str, str]:
    """Return the labels of DescribeNodegroup; the node group's own labels win over those derived from its fields."""
    template_id, template_version = nodegroup.template or ("", "")
    derived = {
        "amiType": nodegroup.ami_type,
        "diskSize": "" if nodegroup.disk_gib is None else str(nodegroup.disk_gib),
        "k8sVersion": nodegroup.version,
        CAPACITY: nodegroup.capacity_type,
        NODEGROUP: nodegroup.name,
        TEMPLATE_ID: template_id,
        TEMPLATE_VERSION: template_version,
    }
    return {**{label: value for label, value in derived.items() if value}, **nodegroup.labels}


def node_name(group: str) -> str:
    """Return a name that Kubernetes accepts and no node has: the group's, in lower case, and `template`."""
    plain = _NO_NAME.sub("-", group.lower()).strip("-")[:50].strip("-") or "group"
    return f"{plain}-template"


@dataclass(frozen=True, slots=True, kw_only=True)
class TagFacts:
    """Facts from tags. `warnings`: sentences about tags that cannot be used."""

    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    resources: Amounts = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


def tag_facts(tags: Mapping[str, str]) -> TagFacts:
    """Read a group's tags. A taint is written `VALUE:EFFECT`; one without a known effect is skipped, as is a resource
    whose quantity cannot be read, and a label that no node can carry.
    """
    labels, taints, warnings = {}, [], []
    for key, value in tags.items():
        if name := _label(key):
            if is_label(name, value):
                labels[name] = value
            else:
                warnings.append(f"tag {key}: found {value!r}, which is no label of Kubernetes; it is passed over")
        elif key.startswith(TAINT) and (name := key.removeprefix(TAINT)):
            content, _, effect = value.rpartition(":")
            if ":" in value and effect in EFFECTS and is_label(name, content):
                taints.append(Taint(key=name, value=content, effect=EFFECTS[effect]))
            else:
                warnings.append(f"tag {key}: found {value!r}, expected VALUE:EFFECT; it is passed over")
    amounts = resources(tags)
    warnings += [
        f"tag {key}: found {value!r}, expected a quantity; it is passed over"
        for key, value in tags.items()
        if key.startswith(RESOURCE) and len(key) > len(RESOURCE) and key.removeprefix(RESOURCE) not in amounts
    ]
    return TagFacts(labels=labels, taints=tuple(taints), resources=amounts, warnings=tuple(warnings))


def resources(tags: Mapping[str, str]) -> dict[str, int]:
    """Return the resource tags of a group or of a managed node group, as whole numbers."""
    found: dict[str, int] = {}
    for key, value in tags.items():
        name = key.removeprefix(RESOURCE)
        if key.startswith(RESOURCE) and name:
            try:
                quantity = amount(name, value, down=True)
            except InvalidInputError:
                continue  # reported by tag_facts
            if quantity >= 0:
                found[name] = quantity
    return found


def _label(key: str) -> str:
    for prefix in (LABEL, *EKS_PREFIXES):
        if key.startswith(prefix):
            return key.removeprefix(prefix)
    return ""
