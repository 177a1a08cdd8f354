"""Reader of Bottlerocket's TOML: `settings.kubernetes`, and the bootstrap commands that change it at boot.

An essential command halts the boot where it fails, so its settings are declared as the others are. Other commands, and
bootstrap containers that name such settings, may have their effect or not. Source: Bottlerocket's settings reference
(kubernetes, bootstrap-commands, bootstrap-containers)."""

import base64
import binascii
import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from leeward.errors import InvalidInputError
from leeward.model.node import Taint
from leeward.model.nodegroup import EFFECTS
from leeward.node_template.flags import MOST_UNKNOWN_PODS, is_label
from leeward.node_template.kubelet import Family, KubeletSettings
from leeward.node_template.kubelet_configuration import count, declared, mapping, refused, texts
from leeward.node_template.provenance import Attribute, Provenance, unknown
from leeward.node_template.script import with_doubts

_SIGNS = {"node-labels": "=", "kube-reserved": "=", "system-reserved": "=", "eviction-hard": "<"}  # of kubelet's flags
_KEY = re.compile(r"\"([^\"]*)\"|'([^']*)'|([^.\"']+)")
_HARMLESS = {"get", "report", "network", "update", "reboot"}
_KUBELET_DIRECTORY = "/var/lib/kubelet"
_RUNS = {"once", "always"}


def of_toml(text: str) -> KubeletSettings:
    """Read Bottlerocket's settings. Raises InvalidInputError."""
    try:
        document = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, ValueError) as error:
        raise InvalidInputError(f"Bottlerocket settings: {error}") from error
    settings = mapping(document.get("settings"))
    kubernetes, doubtful, others = dict(mapping(settings.get("kubernetes"))), list[tuple[str, str]](), KubeletSettings()
    for name, command in sorted(mapping(settings.get("bootstrap-commands")).items()):
        sure = mapping(command).get("essential") is True and mapping(command).get("mode") in _RUNS
        for words in _commands(mapping(command)):
            changes, other = _changed(words), _of_other(f"bootstrap command {name[:40]}", words, sure=sure)
            others = others.joined(other)
            doubtful += [] if sure else _flags(changes)
            kubernetes = _merged(kubernetes, changes) if sure else kubernetes
    for name, container in mapping(settings.get("bootstrap-containers")).items():
        others = others.joined(_of_container(name, mapping(container)))
    return with_doubts(_of_kubernetes(kubernetes), doubtful).joined(others)


def _of_kubernetes(settings: Mapping[str, Any]) -> KubeletSettings:
    max_pods, labels = count(settings.get("max-pods")), texts(settings.get("node-labels"))
    given = [(key, values) for key, values in mapping(settings.get("node-taints")).items()]
    taints = [taint for key, values in given for taint in _taints(key, values)]
    number = sum(len(values) if isinstance(values, list) else 1 for _, values in given)
    accepted = {key: value for key, value in labels.items() if is_label(key, value)}
    pods = {Attribute.MAX_PODS: Provenance.DECLARED} if max_pods is not None else {}
    found = KubeletSettings(
        family=Family.BOTTLEROCKET,
        max_pods=max_pods,
        labels=accepted,
        taints=tuple(taints),
        kube_reserved=texts(settings.get("kube-reserved")),
        system_reserved=texts(settings.get("system-reserved")),
        eviction_hard=texts(settings.get("eviction-hard")),
        recognised=True,
        provenance={**declared(), **pods},
    )
    found = found.joined(refused(Attribute.MAX_PODS, int("max-pods" in settings), int(max_pods is not None)))
    found = found.joined(refused(Attribute.LABELS, len(mapping(settings.get("node-labels"))), len(accepted)))
    return found.joined(refused(Attribute.TAINTS, number, len(taints)))


def _taints(key: str, values: Any) -> Iterator[Taint]:
    """Parse `key = "value:Effect"`, or a list of such."""
    for text in values if isinstance(values, list) else [values]:
        value, _, effect = str(text).rpartition(":")
        if effect in EFFECTS and is_label(key, value):
            yield Taint(key=key, value=value, effect=EFFECTS[effect])


def _commands(command: Mapping[str, Any]) -> Iterator[list[str]]:
    """Yield the words of each command, where they run."""
    listed = command.get("commands") if command.get("mode") != "off" else ()
    for words in listed if isinstance(listed, list) else ():
        if isinstance(words, list) and words[:1] == ["apiclient"]:
            yield [str(word) for word in words]


def _changed(words: Sequence[str]) -> dict[str, Any]:
    """Return the changes of `settings.kubernetes` by `apiclient set`, as a part of it."""
    found: dict[str, Any] = {}
    for word in words[2:] if words[1:2] == ["set"] else ():
        if word.startswith("{"):
            document = mapping(_value(word))
            document = mapping(document.get("settings", document))
            found = _merged(found, mapping(document.get("kubernetes")))
            continue
        name, mark, text = word.partition("=")
        path = [first or second or third for first, second, third in _KEY.findall(name.removeprefix("settings."))]
        if mark and path[:1] == ["kubernetes"] and len(path) > 1:
            value = _value(text)
            for key in reversed(path[2:]):
                value = {key: value}
            found = _merged(found, {path[1]: value})
    return found


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _merged(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """Merge maps one level deep, the second winning."""
    both = {key: {**mapping(first.get(key)), **value} for key, value in second.items() if isinstance(value, Mapping)}
    return {**first, **second, **both}


def _flags(changes: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the changes as flags of kubelet."""
    maps = [(name, sign, texts(changes.get(name))) for name, sign in _SIGNS.items()]
    flags = [(name, f"{key}{sign}{text}") for name, sign, values in maps for key, text in values.items()]
    for key, values in mapping(changes.get("node-taints")).items():
        listed = values if isinstance(values, list) else [values]
        flags += [("register-with-taints", f"{key}={text}") for text in listed]
    return [*flags, *((("max-pods", str(changes["max-pods"])),) if "max-pods" in changes else ())]


def _of_other(what: str, words: Sequence[str], *, sure: bool) -> KubeletSettings:
    """Read a command that sets nothing: local disks made into one volume, or settings from elsewhere."""
    verb = " ".join(words[1:2])
    if verb in {"set", *_HARMLESS} and not {"$", "`"} & set("".join(words)):
        return KubeletSettings()
    if verb == "ephemeral-storage":
        bound = "bind" in words and _KUBELET_DIRECTORY in words
        if sure or not bound:
            return KubeletSettings(local_disks=bound)
        warning = f"user data: {what}: it may bind {_KUBELET_DIRECTORY} to local disks, and is not essential"
        return KubeletSettings(provenance=unknown([Attribute.CAPACITY]), warnings=(warning,))
    return _not_seen(what)


def _of_container(name: str, container: Mapping[str, Any]) -> KubeletSettings:
    """Return what follows from a container that starts before kubelet, and whose user data names kubelet's settings."""
    try:
        text = base64.b64decode(str(container.get("user-data") or "")).decode(errors="replace")
    except (binascii.Error, ValueError):
        text = ""
    named = "kubernetes." in text and container.get("mode") != "off"
    return _not_seen(f"bootstrap container {name[:40]}") if named else KubeletSettings()


def _not_seen(what: str) -> KubeletSettings:
    warning = f"user data: {what}: it may change kubelet's settings: labels, taints, maxPods, capacity are unknown"
    return KubeletSettings(ceiling=MOST_UNKNOWN_PODS, provenance=unknown(), warnings=(warning,))
