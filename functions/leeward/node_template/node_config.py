"""Reader of a NodeConfig, by which nodeadm boots a node of Amazon Linux 2023.

nodeadm refuses another version and a part of another kind, and passes over keys that it does not know. What such a part
was meant to set is unknown. Source: awslabs/amazon-eks-ami, nodeadm/api and nodeadm/internal/api/bridge."""

from collections.abc import Iterable, Mapping
from typing import Any

from leeward.model.visible import quoted
from leeward.node_template.expression import is_understood
from leeward.node_template.flags import MOST_UNKNOWN_PODS
from leeward.node_template.kubelet import Family, KubeletSettings
from leeward.node_template.kubelet_configuration import declared, mapping, of_kubelet_config
from leeward.node_template.provenance import KUBELET, Attribute, Provenance, unknown

_HEAD = {"apiVersion": "node.eks.aws/v1alpha1", "kind": "NodeConfig"}
_PARTS: Mapping[str, tuple[type, str, Iterable[Attribute]]] = {
    "": (dict, "apiVersion kind metadata spec status", KUBELET),
    "spec": (dict, "cluster containerd instance kubelet featureGates", KUBELET),
    "spec.kubelet": (dict, "config flags maxPodsExpression", KUBELET),
    "spec.kubelet.config": (dict, "", KUBELET),
    "spec.kubelet.flags": (list, "", KUBELET),
    "spec.instance": (dict, "localStorage storage environment network", [Attribute.CAPACITY]),
    "spec.instance.localStorage": (dict, "strategy mountPath disabledMounts", [Attribute.CAPACITY]),
}  # kind, known keys, and the attributes that an unknown one may be about
_NAMES: Mapping[type, str] = {dict: "a map", list: "a list"}
_STRATEGIES = {"RAID0", "RAID10", "Mount"}
_NOTHING = KubeletSettings()
_KUBELET_DIRECTORY = "/var/lib/kubelet"


def of_node_config(parsed: Any, flags: list[str]) -> KubeletSettings:
    """Read a NodeConfig; its kubelet flags are added to `flags`, as nodeadm appends those of several."""
    document = mapping(parsed)
    spec = mapping(document.get("spec"))
    kubelet, storage = mapping(spec.get("kubelet")), mapping(mapping(spec.get("instance")).get("localStorage"))
    strategy, listed = storage.get("strategy"), kubelet.get("flags")
    boots = KubeletSettings(
        family=Family.AMAZON_LINUX,
        local_disks=strategy in ("RAID0", "RAID10"),
        mirrored=strategy == "RAID10",
        recognised=True,
        provenance=declared(),
    )
    flags += [str(flag) for flag in listed] if isinstance(listed, list) else []
    of_config = boots.joined(of_kubelet_config(mapping(kubelet.get("config"))))
    of_config = of_config.joined(_of_expression(kubelet.get("maxPodsExpression")))
    return of_config.joined(_unread_parts(document)).joined(_of_volumes(spec))


def _unread_parts(document: Mapping[str, Any]) -> KubeletSettings:
    """Return the warnings about parts that nodeadm refuses, or that only another version of it may know."""
    heads = [key for key, text in _HEAD.items() if document.get(key) != text]
    found = _unread([f"{key}: found {quoted(str(document.get(key))[:60])}, expected {_HEAD[key]}" for key in heads])
    for path, (kind, known, attributes) in _PARTS.items():
        part: Any = document
        for key in filter(None, path.split(".")):
            part = mapping(part).get(key)
        if part is not None and not isinstance(part, kind):
            name = _NAMES.get(type(part), type(part).__name__)
            found = found.joined(_unread([f"{path}: found {name}, expected {_NAMES[kind]}"]))
        elif strange := sorted({str(key) for key in mapping(part)} - {*known.split()}) if known else ():
            names = ", ".join(quoted(name[:60]) for name in strange[:3])
            place = f"{path}: found" if path else "found"
            found = found.joined(_unread([f"{place} {names}, which nodeadm does not know"], attributes))
    return found


def _unread(problems: Iterable[str], attributes: Iterable[Attribute] = KUBELET) -> KubeletSettings:
    """Return the attributes as unknown, where there are problems."""
    named = ", ".join(attributes)
    warnings = tuple(f"user data: NodeConfig {problem}: {named} are unknown" for problem in problems)
    most = MOST_UNKNOWN_PODS if Attribute.MAX_PODS in attributes else None
    return KubeletSettings(ceiling=most, provenance=unknown(attributes), warnings=warnings) if warnings else _NOTHING


def _of_volumes(spec: Mapping[str, Any]) -> KubeletSettings:
    """Return what follows from volumes and strategies for kubelet's files that are not read here."""
    instance = mapping(spec.get("instance"))
    strategy = mapping(instance.get("localStorage")).get("strategy")
    volumes = mapping(instance.get("storage")).get("volumes")
    known = strategy is None or str(strategy) in _STRATEGIES
    problems = [] if known else [f"spec.instance.localStorage: found {quoted(str(strategy)[:60])}"]
    if _KUBELET_DIRECTORY in str(volumes or ""):
        problems.append(f"spec.instance.storage: a volume is mounted at {_KUBELET_DIRECTORY}")
    return _unread(problems, [Attribute.CAPACITY])


def _of_expression(text: Any) -> KubeletSettings:
    """Read a maxPodsExpression; one that is not understood leaves the number of pods unknown."""
    if text is None:
        return KubeletSettings()
    if is_understood(str(text)):
        return KubeletSettings(expression=str(text), provenance={Attribute.MAX_PODS: Provenance.DECLARED})
    warning = f"user data: maxPodsExpression: found {quoted(str(text))}, which is not understood; it is passed over"
    return KubeletSettings(ceiling=MOST_UNKNOWN_PODS, provenance=unknown([Attribute.MAX_PODS]), warnings=(warning,))
