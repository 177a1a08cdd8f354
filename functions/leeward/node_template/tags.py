"""Tags about a group's nodes: `k8s.io/cluster-autoscaler/node-template/{label,taint,resources}/…`.

Source: Cluster Autoscaler, cloudprovider/aws/aws_manager.go (extractLabelsFromAsg, extractTaintsFromAsg,
extractAllocatableResourcesFromTags); `autoscaling-options/…` and `csi-driver` are about something else."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from leeward.errors import InvalidInputError
from leeward.model.node import Taint
from leeward.model.nodegroup import EFFECTS
from leeward.model.quantity import Amounts, amount
from leeward.node_template.flags import is_label

PREFIX = "k8s.io/cluster-autoscaler/node-template/"
LABEL, TAINT, RESOURCE = PREFIX + "label/", PREFIX + "taint/", PREFIX + "resources/"
EKS_PREFIXES = ("eks:", "aws:eks:")  # eks:nodegroup-name becomes the label nodegroup-name


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
