"""Reader of KubeletConfiguration, as a NodeConfig and eksctl's files hold it.

A value that kubelet refuses makes its attribute unknown, with a warning. Source: the Kubernetes reference, Kubelet
Configuration (v1beta1)."""

from collections.abc import Iterator, Mapping
from typing import Any

from leeward.model.node import Taint
from leeward.model.nodegroup import EFFECTS
from leeward.model.visible import quoted
from leeward.node_template.flags import cpus, is_label
from leeward.node_template.kubelet import KubeletSettings
from leeward.node_template.provenance import Attribute, Provenance, unknown

_KEYS = {
    "maxPods": Attribute.MAX_PODS,
    "podsPerCore": Attribute.MAX_PODS,
    "registerWithTaints": Attribute.TAINTS,
    "kubeReserved": Attribute.CAPACITY,
    "systemReserved": Attribute.CAPACITY,
    "evictionHard": Attribute.CAPACITY,
    "reservedSystemCPUs": Attribute.CAPACITY,
}
_OTHERS = {"nodelabels": Attribute.LABELS, "reservedcpus": Attribute.CAPACITY}  # named as the flags are
_NEAR = {**{key.lower(): attribute for key, attribute in _KEYS.items()}, **_OTHERS}
_MAPS = ("kubeReserved", "systemReserved", "evictionHard")


def of_kubelet_config(config: Mapping[str, Any]) -> KubeletSettings:
    """Read a KubeletConfiguration."""
    numbers = {"maxPods": count(config.get("maxPods")), "podsPerCore": count(config.get("podsPerCore"))}
    reserved = config.get("reservedSystemCPUs")
    maps = {key: texts(config.get(key)) for key in _MAPS}
    taints = config.get("registerWithTaints")
    settings = KubeletSettings(
        max_pods=numbers["maxPods"],
        pods_per_core=numbers["podsPerCore"],
        taints=tuple(_taints(taints)),
        kube_reserved=maps["kubeReserved"],
        system_reserved=maps["systemReserved"],
        eviction_hard=maps["evictionHard"],
        reserved_cpus=cpus(str(reserved)) if reserved else None,
        recognised=bool(config),
        provenance={} if set(numbers.values()) == {None} else {Attribute.MAX_PODS: Provenance.DECLARED},
    )
    given = len(taints) if isinstance(taints, list) else int(bool(taints))
    settings = settings.joined(refused(Attribute.TAINTS, given, len(settings.taints)))
    for key, number in numbers.items():
        asked = int(config.get(key) is not None)
        settings = settings.joined(refused(Attribute.MAX_PODS, asked, int(number is not None)))
    for key, found in maps.items():
        raw = config.get(key)
        asked = len(raw) if isinstance(raw, Mapping) else int(bool(raw))
        settings = settings.joined(refused(Attribute.CAPACITY, asked, len(found)))
    unread = bool(reserved) and settings.reserved_cpus is None
    return settings.joined(refused(Attribute.CAPACITY, int(unread), 0)).joined(_misspelt(config))


def _misspelt(config: Mapping[str, Any]) -> KubeletSettings:
    """Return the warning about keys that kubelet does not know, although they look like a key that counts here."""
    near = {str(key): _NEAR.get(str(key).replace("-", "").replace("_", "").lower()) for key in config.keys() - _KEYS}
    keys = sorted(key for key, attribute in near.items() if attribute)
    if not keys:
        return KubeletSettings()
    warning = f"user data: kubelet's configuration: found {quoted(keys[0][:60])}, which kubelet does not know"
    return KubeletSettings(provenance=unknown(filter(None, near.values())), warnings=(warning,))


def _taints(raw: Any) -> Iterator[Taint]:
    """Parse registerWithTaints."""
    for item in raw if isinstance(raw, list) else ():
        entry = mapping(item)
        key, value, effect = (str(entry.get(name) or "") for name in ("key", "value", "effect"))
        if key and effect in EFFECTS and is_label(key, value):
            yield Taint(key=key, value=value, effect=EFFECTS[effect])


def refused(attribute: Attribute, given: int, taken: int) -> KubeletSettings:
    """Return the warning that some entries are none that Kubernetes accepts."""
    if given == taken:
        return KubeletSettings()
    warning = f"user data: {attribute}: found {given - taken} that Kubernetes refuses; passed over"
    return KubeletSettings(provenance=unknown([attribute]), warnings=(warning,))


def declared() -> dict[Attribute, Provenance]:
    """Return what a declaration tells by its silence as well."""
    return dict.fromkeys((Attribute.LABELS, Attribute.TAINTS, Attribute.CAPACITY), Provenance.DECLARED)


def count(value: Any) -> int | None:
    """Return the whole number; None for anything else."""
    text = str(value).strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) < 6 and not isinstance(value, bool) else None


def texts(value: Any) -> dict[str, str]:
    """Return the scalars of a map as texts."""
    return {
        str(key): str(text).lower() if isinstance(text, bool) else str(text)
        for key, text in mapping(value).items()
        if isinstance(text, str | int | float)
    }


def mapping(value: Any) -> Mapping[str, Any]:
    """Return the value where it is a map, else an empty one."""
    return value if isinstance(value, Mapping) else {}
