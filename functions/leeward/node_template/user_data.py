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
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from typing import Any

from leeward.errors import InvalidInputError
from leeward.model.launch import USER_DATA_LEFT_OUT
from leeward.node_template.flags import MOST_UNKNOWN_PODS, of_flags
from leeward.node_template.kubelet import KubeletSettings
from leeward.node_template.kubelet_configuration import of_kubelet_config
from leeward.node_template.node_config import of_node_config
from leeward.node_template.provenance import unknown

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
                settings = settings.joined(of_node_config(_parsed("NodeConfig", part), flags))
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

        return of_cloud_config(_parsed("cloud-config", text), of_kubelet_config, nodeadm=nodeadm)
    if kind not in _SCRIPTS:
        return _UNREAD
    from leeward.node_template.script import of_script  # late: few user data are scripts

    if not kind and not text.startswith("#!") and _WINDOWS.search(text):
        return of_script(text, windows=True)
    if _TOML.search(text) and not text.startswith("#!"):
        from leeward.node_template.bottlerocket import of_toml  # late: only Bottlerocket uses it

        return of_toml(text)
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


def _yaml(text: str) -> Any:
    from leeward.node_template.node_config_yaml import load  # late: its parser takes longer than the rest of an import

    return load(text)
