"""Parser of user data: the parts that concern kubelet, and their settings.

Understands a NodeConfig (AL2023; alone or in MIME parts), a call of EKS' bootstrap.sh or any script with kubelet's
flags (AL2, Ubuntu, Windows), eksctl's cloud-config and Bottlerocket's TOML. A part that cannot be parsed is a warning,
never an error: the node then counts with EKS' own defaults, which are marked as unknown. Sources:
awslabs/amazon-eks-ami, nodeadm/api/v1alpha1/nodeconfig_types.go, nodeadm/internal/configprovider and
files/bootstrap.sh; Bottlerocket's settings reference (settings.kubernetes)."""

import base64
import binascii
import json
import re
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any

from leeward.errors import InvalidInputError
from leeward.model.launch import USER_DATA_LEFT_OUT
from leeward.model.node import Taint
from leeward.model.nodegroup import EFFECTS
from leeward.model.visible import quoted
from leeward.node_template.expression import is_understood
from leeward.node_template.flags import MOST_UNKNOWN_PODS, is_label, of_flags
from leeward.node_template.kubelet import Family, KubeletSettings
from leeward.node_template.provenance import Attribute, Provenance, unknown
from leeward.node_template.script import of_script

LARGEST = 64 * 1024  # EC2 takes 16 KB; unpacked it may be more
MOST_YAML = 16 * 1024  # characters of all NodeConfigs and cloud-configs: YAML takes 30 microseconds for each
NODE_CONFIG_TYPE = "application/node.eks.aws"
_SCRIPTS = {"", "text/plain", "text/x-shellscript", "text/cloud-boothook"}
_TOML = re.compile(r"^[ \t]*(?:\[\s*settings\b|settings[ \t]*\.)", re.MULTILINE)
_WINDOWS = re.compile(
    r"<powershell>|^[ \t]*<script>|\A(?=(?s:.)*^tasks:)(?s:.)*^version:[ \t]*[\"']?1\.\d", re.IGNORECASE | re.MULTILINE
)  # EC2Launch takes tags, or since its second version YAML as well
_BASE64 = re.compile(rb"[A-Za-z0-9+/\s]{16,}={0,2}")
_END_OF_DOCUMENT = re.compile(r"(?:\n(?:---|\.\.\.)[ \t]*(?:\n[ \t]*(?:#[^\n]*)?)*)+\Z")
_UNREAD = KubeletSettings()
_LEFT_OUT = KubeletSettings(
    recognised=True,
    provenance=unknown(),
    warnings=(
        "user data: left out of the snapshot: the labels, taints, reserved resources and maximum of pods that it sets "
        "are unknown, EKS' defaults are taken",
    ),
)


@lru_cache(maxsize=128)
def kubelet_settings(encoded: str, *, nodeadm: bool = False) -> KubeletSettings:
    """Parse base64 user data as a launch template keeps it. Never raises; `warnings` name what was skipped. `nodeadm`:
    the node boots by nodeadm in any case, because EKS writes a NodeConfig of its own.
    """
    if encoded == USER_DATA_LEFT_OUT:
        return _LEFT_OUT
    try:
        parts = [(kind, _decoded(part)) for kind, part in _parts(_text(encoded))]
        length = sum(len(part) for kind, part in parts if _is_yaml(kind, part))
        if length > MOST_YAML:
            raise InvalidInputError(f"NodeConfig: found {length} characters, expected at most {MOST_YAML}")
        nodeadm = nodeadm or any(_is_node_config(kind, part) for kind, part in parts)
        settings, flags = _UNREAD, list[str]()
        for kind, part in parts:
            if _is_node_config(kind, part):
                settings = settings.joined(_of_node_config(part, flags))
            else:
                settings = settings.joined(_of_part(kind, part, nodeadm=nodeadm))
        settings = settings.joined(of_flags(flags))  # last: a flag of any part wins over the configuration of all parts
    except (InvalidInputError, RecursionError) as error:
        warning = f"user data: {error}; EKS' defaults are taken"
        return KubeletSettings(recognised=True, ceiling=MOST_UNKNOWN_PODS, provenance=unknown(), warnings=(warning,))
    return settings


def _text(encoded: str) -> str:
    """Decode the launch template's base64. Raises InvalidInputError."""
    if len(encoded) > 2 * LARGEST:
        raise InvalidInputError(f"found {len(encoded)} characters, expected at most {2 * LARGEST}")
    try:
        raw = base64.b64decode("".join(encoded.split()), validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidInputError(f"found {error}, expected base64") from error
    return _decoded(raw)


def _decoded(raw: bytes) -> str:
    """Decode base64 and gzip where the bytes are such, once each: nodeadm does so with the whole and with each part,
    and cloud-init unpacks gzip. Raises InvalidInputError.
    """
    if _BASE64.fullmatch(raw.strip()):
        with suppress(binascii.Error):
            raw = base64.b64decode(b"".join(raw.split()), validate=True)
    if raw[:2] == b"\x1f\x8b":
        try:
            raw = zlib.decompressobj(wbits=31).decompress(raw, LARGEST + 1)
        except zlib.error as error:
            raise InvalidInputError(f"found {error}, expected base64") from error
    if len(raw) > LARGEST:
        raise InvalidInputError(f"found more than {LARGEST} bytes, expected at most those")
    return raw.decode("utf-8", errors="replace")


def _parts(text: str) -> Iterator[tuple[str, bytes]]:
    """Yield (content type, bytes) of each MIME part, or the whole as one part of no type."""
    from email import message_from_string  # late: few user data are MIME, and the import lengthens a cold start

    if not text.lstrip().lower().startswith(("mime-version:", "content-type: multipart/")):
        yield "", text.encode()
        return
    for part in message_from_string(text.lstrip()).walk():
        if part.is_multipart():
            continue
        payload = part.get_payload(decode=True)
        if isinstance(payload, bytes):
            yield part.get_content_type(), payload[:LARGEST]


def _is_node_config(kind: str, text: str) -> bool:
    return kind == NODE_CONFIG_TYPE or (
        not kind and "node.eks.aws/" in text and not text.lstrip().startswith(("#!", "#cloud-config", "<"))
    )


def _is_cloud_config(kind: str, text: str) -> bool:
    return kind == "text/cloud-config" or (kind in _SCRIPTS and text.lstrip().startswith("#cloud-config"))


def _is_yaml(kind: str, text: str) -> bool:
    return _is_node_config(kind, text) or _is_cloud_config(kind, text)


def _of_part(kind: str, text: str, *, nodeadm: bool) -> KubeletSettings:
    if _is_cloud_config(kind, text):
        from leeward.node_template.cloud_config import of_cloud_config  # late, as the parser of YAML

        return of_cloud_config(_parsed("cloud-config", text), _of_kubelet_config, nodeadm=nodeadm)
    if kind not in _SCRIPTS:
        return _UNREAD
    if not kind and not text.startswith("#!") and _WINDOWS.search(text):
        return of_script(text, windows=True)
    if _TOML.search(text) and not text.startswith("#!"):
        return _of_toml(text)
    return of_script(text, nodeadm=nodeadm)


def _parsed(what: str, text: str) -> Any:
    """Parse YAML or JSON. Raises InvalidInputError."""
    stripped = text.strip()
    try:
        return json.loads(stripped) if stripped.startswith("{") else _yaml(_END_OF_DOCUMENT.sub("", text.rstrip()))
    except (json.JSONDecodeError, InvalidInputError) as error:
        raise InvalidInputError(f"{what}: {error}") from error
    except ValueError as error:  # a number of thousands of digits
        raise InvalidInputError(f"{what}: found JSON out of all proportion, expected kubelet's settings") from error


def _of_node_config(text: str, flags: list[str]) -> KubeletSettings:
    """Read a NodeConfig; its kubelet flags are added to `flags`, as nodeadm appends those of several."""
    spec = _mapping(_mapping(_parsed("NodeConfig", text)).get("spec"))
    kubelet = _mapping(spec.get("kubelet"))
    strategy = _mapping(_mapping(spec.get("instance")).get("localStorage")).get("strategy")
    boots = KubeletSettings(
        family=Family.AMAZON_LINUX,
        local_disks=strategy in {"RAID0", "RAID10"},
        mirrored=strategy == "RAID10",
        recognised=True,
        provenance=_declared(),
    )
    listed = kubelet.get("flags")
    flags += [str(flag) for flag in listed] if isinstance(listed, list) else []
    of_config = boots.joined(_of_kubelet_config(_mapping(kubelet.get("config"))))
    return of_config.joined(_of_expression(kubelet.get("maxPodsExpression")))


def _of_kubelet_config(config: Mapping[str, Any]) -> KubeletSettings:
    """Read a KubeletConfiguration."""
    max_pods = _count(config.get("maxPods"))
    taints = config.get("registerWithTaints")
    settings = KubeletSettings(
        max_pods=max_pods,
        taints=tuple(_taints(taints)),
        kube_reserved=_texts(config.get("kubeReserved")),
        system_reserved=_texts(config.get("systemReserved")),
        eviction_hard=_texts(config.get("evictionHard")),
        recognised=bool(config),
        provenance={Attribute.MAX_PODS: Provenance.DECLARED} if max_pods is not None else {},
    )
    settings = settings.joined(
        _refused(Attribute.MAX_PODS, int(config.get("maxPods") is not None), int(max_pods is not None))
    )
    given = len(taints) if isinstance(taints, list) else 0
    return settings.joined(_refused(Attribute.TAINTS, given, len(settings.taints)))


def _of_expression(text: Any) -> KubeletSettings:
    """Read a maxPodsExpression; one that is not understood leaves the number of pods unknown."""
    if text is None:
        return _UNREAD
    if is_understood(str(text)):
        return KubeletSettings(expression=str(text), provenance={Attribute.MAX_PODS: Provenance.DECLARED})
    warning = f"user data: maxPodsExpression: found {quoted(str(text))}, which is not understood; it is passed over"
    return KubeletSettings(ceiling=MOST_UNKNOWN_PODS, provenance=unknown([Attribute.MAX_PODS]), warnings=(warning,))


def _refused(attribute: Attribute, given: int, taken: int) -> KubeletSettings:
    """Return the warning that some entries are none that Kubernetes accepts."""
    if given == taken:
        return _UNREAD
    warning = f"user data: {attribute}: found {given - taken} that Kubernetes refuses; passed over"
    return KubeletSettings(provenance=unknown([attribute]), warnings=(warning,))


def _declared() -> dict[Attribute, Provenance]:
    return dict.fromkeys((Attribute.LABELS, Attribute.TAINTS, Attribute.CAPACITY), Provenance.DECLARED)


def _yaml(text: str) -> Any:
    from leeward.node_template.node_config_yaml import load  # late: its parser takes longer than the rest of an import

    return load(text)


def _of_toml(text: str) -> KubeletSettings:
    import tomllib  # late: only Bottlerocket uses it

    try:
        document = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, ValueError) as error:
        raise InvalidInputError(f"Bottlerocket settings: {error}") from error
    settings = _mapping(_mapping(document.get("settings")).get("kubernetes"))
    max_pods, labels = _count(settings.get("max-pods")), _texts(settings.get("node-labels"))
    given = [(key, values) for key, values in _mapping(settings.get("node-taints")).items()]
    taints = [taint for key, values in given for taint in _bottlerocket_taints(key, values)]
    number = sum(len(values) if isinstance(values, list) else 1 for _, values in given)
    accepted = {key: value for key, value in labels.items() if is_label(key, value)}
    pods = {Attribute.MAX_PODS: Provenance.DECLARED} if max_pods is not None else {}
    found = KubeletSettings(
        family=Family.BOTTLEROCKET,
        max_pods=max_pods,
        labels=accepted,
        taints=tuple(taints),
        kube_reserved=_texts(settings.get("kube-reserved")),
        system_reserved=_texts(settings.get("system-reserved")),
        eviction_hard=_texts(settings.get("eviction-hard")),
        recognised=True,
        provenance={**_declared(), **pods},
    )
    found = found.joined(_refused(Attribute.MAX_PODS, int("max-pods" in settings), int(max_pods is not None)))
    found = found.joined(_refused(Attribute.LABELS, len(labels), len(accepted)))
    return found.joined(_refused(Attribute.TAINTS, number, len(taints)))


def _bottlerocket_taints(key: str, values: Any) -> Iterator[Taint]:
    """Parse `key = "value:Effect"`, or a list of such."""
    for text in values if isinstance(values, list) else [values]:
        value, _, effect = str(text).rpartition(":")
        if effect in EFFECTS:
            yield Taint(key=key, value=value, effect=EFFECTS[effect])


def _taints(raw: Any) -> Iterator[Taint]:
    """Parse KubeletConfiguration's registerWithTaints."""
    for one in raw if isinstance(raw, list) else ():
        entry = _mapping(one)
        if entry.get("key") and entry.get("effect") in EFFECTS:
            yield Taint(key=str(entry["key"]), value=str(entry.get("value") or ""), effect=EFFECTS[entry["effect"]])


def _count(value: Any) -> int | None:
    text = str(value).strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) < 6 and not isinstance(value, bool) else None


def _texts(value: Any) -> dict[str, str]:
    pairs = _mapping(value).items()
    return {
        str(key): str(text).lower() if isinstance(text, bool) else str(text)
        for key, text in pairs
        if isinstance(text, str | int | float)
    }


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
