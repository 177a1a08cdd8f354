"""Parser of user data: the parts that concern kubelet, and their settings.

Understands a NodeConfig (AL2023; alone or in MIME parts), a call of EKS' bootstrap.sh or any script with kubelet's
flags (AL2), and Bottlerocket's TOML. A part that cannot be parsed is a warning, never an error: the node then counts
with EKS' own defaults. Sources: awslabs/amazon-eks-ami, nodeadm/api/v1alpha1/nodeconfig_types.go and
files/bootstrap.sh; Bottlerocket's settings reference (settings.kubernetes)."""

import base64
import binascii
import json
import zlib
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from leeward.errors import InvalidInputError
from leeward.model.launch import USER_DATA_LEFT_OUT
from leeward.model.node import Taint
from leeward.model.nodegroup import EFFECTS
from leeward.node_template.flags import of_flags, of_script
from leeward.node_template.kubelet import Family, KubeletSettings

LARGEST = 64 * 1024  # EC2 takes 16 KB; unpacked it may be more
MOST_NODE_CONFIG = 16 * 1024  # characters of all NodeConfigs together: YAML takes 30 microseconds for each
NODE_CONFIG_TYPE = "application/node.eks.aws"
_UNKNOWN = KubeletSettings()
_LEFT_OUT = KubeletSettings(
    warnings=(
        "user data: left out of the snapshot: the labels, taints, reserved resources and maximum of pods that it sets "
        "are unknown, EKS' defaults are taken",
    )
)


@lru_cache(maxsize=128)
def kubelet_settings(encoded: str) -> KubeletSettings:
    """Parse base64 user data as a launch template keeps it. Never raises; `warnings` name what was skipped."""
    if encoded == USER_DATA_LEFT_OUT:
        return _LEFT_OUT
    try:
        text = _decoded(encoded)
        found, length = _UNKNOWN, 0
        for kind, part in _parts(text):
            length += len(part) if _is_node_config(kind, part) else 0
            if length > MOST_NODE_CONFIG:
                raise InvalidInputError(f"NodeConfig: found {length} characters, expected at most {MOST_NODE_CONFIG}")
            found = found.joined(_of_part(kind, part))
    except (InvalidInputError, RecursionError) as error:
        return KubeletSettings(warnings=(f"user data: {error}; EKS' defaults are taken",))
    return found


def _decoded(encoded: str) -> str:
    """Decode base64 and, where it is packed, gzip, which cloud-init unpacks too. Raises InvalidInputError."""
    if len(encoded) > 2 * LARGEST:
        raise InvalidInputError(f"found {len(encoded)} characters, expected at most {2 * LARGEST}")
    try:
        raw = base64.b64decode("".join(encoded.split()), validate=True)
        if raw[:2] == b"\x1f\x8b":
            raw = zlib.decompressobj(wbits=31).decompress(raw, LARGEST + 1)
    except (binascii.Error, ValueError, zlib.error) as error:
        raise InvalidInputError(f"found {error}, expected base64") from error
    if len(raw) > LARGEST:
        raise InvalidInputError(f"found more than {LARGEST} bytes, expected at most those")
    return raw.decode("utf-8", errors="replace")


def _parts(text: str) -> Iterator[tuple[str, str]]:
    """Yield (content type, text) of each MIME part, or the whole as one part of no type."""
    from email import message_from_string  # late: few user data are MIME, and the import lengthens a cold start

    if not text.lstrip().lower().startswith(("mime-version:", "content-type: multipart/")):
        yield "", text
        return
    for part in message_from_string(text.lstrip()).walk():
        if part.is_multipart():
            continue
        payload = part.get_payload(decode=True)
        if isinstance(payload, bytes):
            yield part.get_content_type(), payload[:LARGEST].decode("utf-8", errors="replace")


def _is_node_config(kind: str, text: str) -> bool:
    return kind == NODE_CONFIG_TYPE or (not kind and "node.eks.aws/" in text and not text.startswith("#!"))


def _of_part(kind: str, text: str) -> KubeletSettings:
    if _is_node_config(kind, text):
        return _of_node_config(text)
    if kind in {"", "text/plain"} and "[settings" in text and not text.startswith("#!"):
        return _of_toml(text)
    return of_script(text) if kind in {"", "text/plain", "text/x-shellscript"} else _UNKNOWN


def _of_node_config(text: str) -> KubeletSettings:
    stripped = text.strip()
    try:
        config = json.loads(stripped) if stripped.startswith("{") else _yaml(text)
    except (json.JSONDecodeError, InvalidInputError) as error:
        raise InvalidInputError(f"NodeConfig: {error}") from error
    except ValueError as error:  # a number of thousands of digits
        raise InvalidInputError("NodeConfig: found JSON out of all proportion, expected kubelet's settings") from error
    spec = _mapping(_mapping(config).get("spec"))
    kubelet = _mapping(spec.get("kubelet"))
    written = _mapping(kubelet.get("config"))
    strategy = _mapping(_mapping(spec.get("instance")).get("localStorage")).get("strategy")
    of_config = KubeletSettings(
        family=Family.AMAZON_LINUX,
        max_pods=_count(written.get("maxPods")),
        taints=tuple(_taints(written.get("registerWithTaints"))),
        kube_reserved=_texts(written.get("kubeReserved")),
        system_reserved=_texts(written.get("systemReserved")),
        eviction_hard=_texts(written.get("evictionHard")),
        local_disks=strategy in {"RAID0", "RAID10"},
    )
    flags = kubelet.get("flags")
    return of_config.joined(of_flags([str(flag) for flag in flags] if isinstance(flags, list) else []))


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
    taints = [
        taint
        for key, values in _mapping(settings.get("node-taints")).items()
        for taint in _bottlerocket_taints(key, values)
    ]
    return KubeletSettings(
        family=Family.BOTTLEROCKET,
        max_pods=_count(settings.get("max-pods")),
        labels=_texts(settings.get("node-labels")),
        taints=tuple(taints),
        kube_reserved=_texts(settings.get("kube-reserved")),
        system_reserved=_texts(settings.get("system-reserved")),
        eviction_hard=_texts(settings.get("eviction-hard")),
    )


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
