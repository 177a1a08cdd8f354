"""Command line flags of kubelet, in a NodeConfig's list or anywhere in a script.

A value that the script computes only when it runs (`$X`) cannot be known: it is skipped with a warning."""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from leeward.model.node import Taint
from leeward.model.nodegroup import EFFECTS
from leeward.node_template.kubelet import Family, KubeletSettings

_FLAG = re.compile(r"--([a-z0-9-]{1,64})(?:=|[ \t]+(?!--))(\"[^\"\n]*\"|'[^'\n]*'|[^\s\"']+)")
_COMMENT = re.compile(r"^[ \t]*#(?!!).*$", re.MULTILINE)
_USE_MAX_PODS = re.compile(r"\bUSE_MAX_PODS=[\"']?false\b")  # the variable that bootstrap.sh reads beside its own flag
_QUOTED_FLAGS = ("kubelet-extra-args",)
BOOTSTRAP = "bootstrap.sh"


def of_script(text: str) -> KubeletSettings:
    """Read what a script passes to kubelet or to bootstrap.sh: the last occurrence of each flag counts."""
    joined = _COMMENT.sub("", text).replace("\\\n", " ")
    # quoted extra arguments hold flags of their own: without their quotes everything is one row of flags
    for name in _QUOTED_FLAGS:
        joined = re.sub(rf"--{name}(?:=|[ \t]+)(\"[^\"]*\"|'[^']*')", lambda found: f" {found[1][1:-1]} ", joined)
    settings = of_flags([f"--{name}={value}" for name, value in _FLAG.findall(joined)])
    counts = _USE_MAX_PODS.search(joined) is None
    family = Family.AMAZON_LINUX if BOOTSTRAP in joined else None
    return KubeletSettings(family=family, counts_interfaces=counts).joined(settings)


def of_flags(flags: Iterable[str]) -> KubeletSettings:
    """Read `--name=value` texts."""
    found: dict[str, str] = {}
    warnings: list[str] = []
    for flag in flags:
        name, _, value = flag.removeprefix("--").partition("=")
        if name not in _READERS:
            continue
        plain = value.strip().strip("\"'")
        if "$" in plain:
            warnings.append(
                f"user data: --{name}: found {plain[:60]!r}, which only the script knows; it is passed over"
            )
        else:
            found[name] = plain
    fields: dict[str, Any] = {}
    for name, value in found.items():
        fields |= _READERS[name](value)
    replaces = frozenset(found) & {"kube-reserved", "eviction-hard"}
    return KubeletSettings(replaces=replaces, warnings=tuple(warnings), **fields)


def _labels(text: str) -> dict[str, Any]:
    pairs = (part.partition("=") for part in text.split(","))
    return {"labels": {key.strip(): value.strip() for key, _, value in pairs if key.strip()}}


def _taints(text: str) -> dict[str, Any]:
    """Parse `key=value:Effect,key:Effect`."""
    found = []
    for part in text.split(","):
        name, _, effect = part.strip().rpartition(":")
        key, _, value = name.partition("=")
        if key and effect in EFFECTS:
            found.append(Taint(key=key, value=value, effect=EFFECTS[effect]))
    return {"taints": tuple(found)}


def _amounts(field: str, sign: str) -> Callable[[str], dict[str, Any]]:
    def read(text: str) -> dict[str, Any]:
        pairs = (part.partition(sign) for part in text.split(","))
        return {field: {key.strip(): value.strip() for key, mark, value in pairs if mark and key.strip()}}

    return read


def _max_pods(text: str) -> dict[str, Any]:
    known = text.isascii() and text.isdigit() and len(text) < 6
    return {"max_pods": int(text)} if known else {}


_READERS: Mapping[str, Callable[[str], dict[str, Any]]] = {
    "max-pods": _max_pods,
    "use-max-pods": lambda text: {"counts_interfaces": text.lower() != "false"},
    "node-labels": _labels,
    "register-with-taints": _taints,
    "kube-reserved": _amounts("kube_reserved", "="),
    "system-reserved": _amounts("system_reserved", "="),
    "eviction-hard": _amounts("eviction_hard", "<"),
    "local-disks": lambda text: {"local_disks": text.startswith("raid")},
}
