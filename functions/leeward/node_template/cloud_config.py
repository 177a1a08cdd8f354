"""Cloud-config of user data: eksctl's files of a self-managed group, which are data, and the scripts beside them.

eksctl writes the labels, taints and max pods of an AL2 or Ubuntu group into an environment file and its extra settings
into KubeletConfiguration as JSON; its own scripts pass both to kubelet. Source: eksctl, pkg/nodebootstrap/userdata.go
and assets/scripts."""

import base64
import binascii
import json
import re
import shlex
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from leeward.errors import InvalidInputError
from leeward.node_template.flags import read
from leeward.node_template.kubelet import Family, KubeletSettings
from leeward.node_template.provenance import Attribute, Provenance
from leeward.node_template.script import of_script

EKSCTL, ENVIRONMENT, CONFIG = "/etc/eksctl/", "/etc/eksctl/kubelet.env", "/etc/eksctl/kubelet-extra.json"
EKSCTL_SCRIPTS = "/var/lib/cloud/scripts/eksctl/"
LARGEST = 64 * 1024
AT_MOST_110 = "max_pods < 110 ? max_pods : 110"  # some versions of eksctl pass 110, some nothing
_FLAGS = {"NODE_LABELS": "node-labels", "NODE_TAINTS": "register-with-taints", "MAX_PODS": "max-pods"}
_END = "END_OF_A_FILE_OF_CLOUD_CONFIG"
_VARIABLE = re.compile(r"(?:export[ \t]+)?([A-Z_]+)=(.*)")


def of_cloud_config(
    document: Any, of_config: Callable[[Mapping[str, Any]], KubeletSettings], *, nodeadm: bool = False
) -> KubeletSettings:
    """Read a parsed cloud-config. `of_config` reads a KubeletConfiguration. Raises InvalidInputError."""
    if not isinstance(document, Mapping):
        return KubeletSettings()
    files = dict(_files(document))
    config, environment = files.pop(CONFIG, ""), files.pop(ENVIRONMENT, None)
    found = _of_json(config, of_config)
    if environment is not None:
        found = found.joined(_of_environment(environment))
    # the path is named too, so that a file of kubelet's counts as an edit of it
    others = [
        f"cat > {shlex.quote(path)} <<'{_END}'\n{text}\n{_END}"
        for path, text in files.items()
        if not path.startswith((EKSCTL, EKSCTL_SCRIPTS))
    ]
    return found.joined(of_script("\n".join((*others, *_commands(document))), nodeadm=nodeadm))


def _files(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    entries = document.get("write_files")
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, Mapping) and isinstance(entry.get("content"), str):
            yield str(entry.get("path") or ""), _plain(entry["content"], str(entry.get("encoding") or ""))


def _plain(content: str, encoding: str) -> str:
    """Decode what cloud-init decodes. Raises InvalidInputError."""
    if not encoding or encoding == "text/plain":
        return content
    try:
        raw = base64.b64decode(content) if "b" in encoding else content.encode()
        if encoding.startswith("gz"):
            raw = zlib.decompressobj(wbits=31).decompress(raw, LARGEST)
    except (binascii.Error, ValueError, zlib.error) as error:
        raise InvalidInputError(f"found {error}, expected {encoding[:20]!r} in a file") from error
    return raw.decode("utf-8", errors="replace")


def _commands(document: Mapping[str, Any]) -> Iterator[str]:
    for key in ("bootcmd", "runcmd"):
        entries = document.get(key)
        for entry in entries if isinstance(entries, list) else ():
            yield shlex.join(map(str, entry)) if isinstance(entry, list) else str(entry)


def _of_json(text: str, of_config: Callable[[Mapping[str, Any]], KubeletSettings]) -> KubeletSettings:
    try:
        config = json.loads(text or "{}")
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(f"{CONFIG}: found no JSON, expected KubeletConfiguration") from error
    return of_config(config) if isinstance(config, Mapping) and config else KubeletSettings()


def _of_environment(text: str) -> KubeletSettings:
    matches = (_VARIABLE.fullmatch(line.strip()) for line in text.splitlines())
    values = {match[1]: match[2].strip("\"'") for match in matches if match and match[1] in _FLAGS}
    flags = [(_FLAGS[name], value) for name, value in values.items() if value]
    declared = dict.fromkeys((Attribute.LABELS, Attribute.TAINTS), Provenance.DECLARED)
    pods = "" if values.get("MAX_PODS") else AT_MOST_110
    found = KubeletSettings(family=Family.AMAZON_LINUX, expression=pods, recognised=True, provenance=declared)
    return found.joined(read(flags, Provenance.DECLARED))
