"""Command line flags of kubelet and of bootstrap.sh, as `--name=value` or `--name value` in a row of text.

Kubelet adds up the flags that hold a map (labels, reservations, thresholds); of all others the last one counts. A part
of a value that cannot be known (`$X`) or that kubelet would refuse is skipped with a warning: it makes the attribute
unknown, and the rest of the value counts. Source: awslabs/amazon-eks-ami, nodeadm/internal/api/merge.go."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from leeward.model.node import Taint
from leeward.model.nodegroup import EFFECTS
from leeward.model.visible import quoted
from leeward.node_template.kubelet import KubeletSettings
from leeward.node_template.provenance import Attribute, Provenance, joined, unknown

FLAG = re.compile(r"--([a-z0-9-]{1,64})(?:=|[ \t]+(?!--))(\"[^\"\n]*\"|'[^'\n]*'|[^\s\"']+)(?=([\"']?))")
MOST_UNKNOWN_PODS = 110  # kubelet's default: an unknown number of pods is not taken for more
MOST_WARNINGS = 20
MOST_CPUS_TEXT = 200  # characters
_DYNAMIC = re.compile(r"[$`]|%\{|\{\{")
_CPUS = re.compile(r"(\d{1,4})(?:-(\d{1,4}))?", re.ASCII)
_KEY = re.compile(r"(?:[a-z0-9][-a-z0-9.]{0,252}/)?[A-Za-z0-9](?:[-\w.]{0,61}[A-Za-z0-9])?", re.ASCII)
_VALUE = re.compile(r"(?:[A-Za-z0-9](?:[-\w.]{0,61}[A-Za-z0-9])?)?", re.ASCII)


@dataclass(slots=True)
class Draft:
    """Settings of the flags that were read so far. `touched`: the attributes that a flag names."""

    fields: dict[str, Any] = field(default_factory=dict)
    replaces: set[str] = field(default_factory=set)
    touched: set[Attribute] = field(default_factory=set)
    unclear: set[Attribute] = field(default_factory=set)
    warnings: dict[str, None] = field(default_factory=dict)

    def skip(self, flag: str, part: str, expected: str) -> None:
        """Leave out a part of a value: the attribute is unknown."""
        self.unclear.add(READERS[flag][0])
        reason = "which only the script knows" if _DYNAMIC.search(part) else f"expected {expected}"
        if len(self.warnings) < MOST_WARNINGS:
            self.warnings[f"user data: --{flag}: found {quoted(part[:60])}, {reason}; it is passed over"] = None

    def settings(self, origin: Provenance) -> KubeletSettings:
        """Return the settings; `origin` is that of every attribute that a flag names and that is clear."""
        fields = dict(self.fields)
        if Attribute.MAX_PODS in self.unclear:
            most = min(fields.pop("max_pods", MOST_UNKNOWN_PODS), MOST_UNKNOWN_PODS)
            fields |= {"counts_interfaces": True, "ceiling": most}
        return KubeletSettings(
            replaces=frozenset(self.replaces),
            recognised=bool(self.touched),
            provenance=joined(dict.fromkeys(self.touched, origin), unknown(self.unclear)),
            warnings=tuple(self.warnings),
            **fields,
        )


def pairs(row: str) -> list[tuple[int, str, str]]:
    """Return offset, name and value of each flag that is read here."""
    found = []
    for match in FLAG.finditer(row):
        if match[1] in READERS:
            value = match[2].strip("\"'\\").rstrip(");")  # of an array, or the end of the command
            cut = match[3] and value[-1:] in {"=", ",", ":"}  # `a="b"`: the shell goes on with the quoted text
            found.append((match.start(), match[1], value + "$…" if cut else value))
    return found


def of_flags(entries: Iterable[str]) -> KubeletSettings:
    """Read a NodeConfig's list. Nodeadm joins its entries by blanks, so an entry may hold half a flag, or two."""
    return read(((name, value) for _, name, value in pairs(" ".join(entries))), Provenance.DECLARED)


def read(flags: Iterable[tuple[str, str]], origin: Provenance) -> KubeletSettings:
    """Read names and values, all of which reach kubelet, in their order."""
    draft = Draft()
    for name, value in flags:
        attribute, reader = READERS[name]
        draft.touched.add(attribute)
        reader(draft, name, value)
    return draft.settings(origin)


def is_label(key: str, value: str) -> bool:
    """Return whether Kubernetes accepts the label."""
    return bool(_KEY.fullmatch(key) and _VALUE.fullmatch(value))


def taint_of(text: str) -> Taint | None:
    """Parse `key=value:Effect` or `key:Effect`; None for what kubelet refuses. The value is empty where only the script
    knows it: a pod then tolerates the taint by its key alone.
    """
    name, _, effect = text.strip().rpartition(":")
    key, _, value = name.partition("=")
    value = "" if _DYNAMIC.search(value) else value
    return Taint(key=key, value=value, effect=EFFECTS[effect]) if effect in EFFECTS and is_label(key, value) else None


def _labels(draft: Draft, name: str, text: str) -> None:
    labels = draft.fields.setdefault("labels", {})
    for part in filter(None, map(str.strip, text.split(","))):
        key, _, value = part.partition("=")
        if _DYNAMIC.search(part) or not is_label(key, value):
            draft.skip(name, part, "a label KEY=VALUE")
        else:
            labels[key] = value


def _taints(draft: Draft, name: str, text: str) -> None:
    taints = []
    for part in filter(None, map(str.strip, text.split(","))):
        taint = taint_of(part)
        if taint is None or _DYNAMIC.search(part):
            draft.skip(name, part, "a taint KEY=VALUE:EFFECT")
        taints += [taint] if taint else []
    draft.fields["taints"] = tuple(taints) or draft.fields.get("taints", ())


def _amounts(field_name: str, sign: str) -> Callable[[Draft, str, str], None]:
    def reader(draft: Draft, name: str, text: str) -> None:
        amounts = draft.fields.setdefault(field_name, {})
        draft.replaces |= {name} & {"kube-reserved", "eviction-hard"}
        for part in filter(None, map(str.strip, text.split(","))):
            key, mark, value = (piece.strip() for piece in part.partition(sign))
            if mark and key and not _DYNAMIC.search(part):
                amounts[key] = value
            else:
                draft.skip(name, part, f"RESOURCE{sign}AMOUNT")
                draft.replaces.discard(name)  # EKS' own value stays for what is not known

    return reader


def _max_pods(draft: Draft, name: str, text: str) -> None:
    if text.isascii() and text.isdigit() and len(text) < 6:
        draft.fields["max_pods"] = int(text)
    else:
        draft.skip(name, text, "a whole number")


def _use_max_pods(draft: Draft, name: str, text: str) -> None:
    if _DYNAMIC.search(text):
        draft.skip(name, text, "true or false")
    draft.fields["counts_interfaces"] = text == "true"  # bootstrap.sh compares: `29` is as good as `false`


def _local_disks(draft: Draft, name: str, text: str) -> None:
    if text not in {"raid0", "raid10", "mount"}:
        draft.skip(name, text, "raid0, raid10 or mount")
    draft.fields |= {"local_disks": text in {"raid0", "raid10"}, "mirrored": text == "raid10"}


def _per_core(draft: Draft, name: str, text: str) -> None:
    if text.isascii() and text.isdigit() and len(text) < 6:
        draft.fields["pods_per_core"] = int(text)
    else:
        draft.skip(name, text, "a whole number")


def _reserved_cpus(draft: Draft, name: str, text: str) -> None:
    draft.fields["reserved_cpus"] = cpus(text)
    if text and draft.fields["reserved_cpus"] is None:
        draft.skip(name, text, "a set of CPUs such as 0-1,4")


def _file(draft: Draft, name: str, text: str) -> None:
    """Note that kubelet takes its configuration from a file that is not read here."""
    draft.unclear |= {Attribute.TAINTS, Attribute.CAPACITY, Attribute.MAX_PODS}
    draft.warnings[f"user data: --{name}: {quoted(text[:60])} is not read: taints, maxPods, capacity are unknown"] = (
        None
    )


def cpus(text: str) -> int | None:
    """Return the size of a set of CPUs (`0-1,4`); None for an empty one, or where it cannot be read."""
    found: set[int] = set()
    for part in text.split(",") if len(text) <= MOST_CPUS_TEXT else [""]:
        match = _CPUS.fullmatch(part.strip())
        if match is None:
            return None
        found.update(range(int(match[1]), int(match[2] or match[1]) + 1))
    return len(found) or None


READERS: Mapping[str, tuple[Attribute, Callable[[Draft, str, str], None]]] = {
    "max-pods": (Attribute.MAX_PODS, _max_pods),
    "use-max-pods": (Attribute.MAX_PODS, _use_max_pods),
    "node-labels": (Attribute.LABELS, _labels),
    "register-with-taints": (Attribute.TAINTS, _taints),
    "kube-reserved": (Attribute.CAPACITY, _amounts("kube_reserved", "=")),
    "system-reserved": (Attribute.CAPACITY, _amounts("system_reserved", "=")),
    "eviction-hard": (Attribute.CAPACITY, _amounts("eviction_hard", "<")),
    "pods-per-core": (Attribute.MAX_PODS, _per_core),
    "reserved-cpus": (Attribute.CAPACITY, _reserved_cpus),
    "config": (Attribute.CAPACITY, _file),
    "config-dir": (Attribute.CAPACITY, _file),
    "local-disks": (Attribute.CAPACITY, _local_disks),
}
