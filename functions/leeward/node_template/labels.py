"""Labels of a node that does not exist yet, by their source.

Sources: EKS' nodes (the cloud provider's and EKS' own labels, beta spellings included); Cluster Autoscaler,
cloudprovider/aws (buildGenericLabels, getManagedNodegroupInfo) for amiType, diskSize, k8sVersion."""

import re
from collections.abc import Mapping

from leeward.model import well_known
from leeward.model.group import Group
from leeward.model.instance import CapacityType
from leeward.model.launch import LaunchSettings
from leeward.model.nodegroup import Nodegroup

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
