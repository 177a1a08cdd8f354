"""Hashes of a node's launch settings, recorded on the node where the instance itself does not show them.

One short hash for each field, so that a difference can be named, and a version of the computation: hashes of another
version are not compared but replaced, so that an upgrade of Leeward never rolls a fleet. Source: Karpenter,
pkg/controllers/nodepool/hash (nodepool-hash-version)."""

import hashlib
from collections.abc import Mapping
from functools import lru_cache

from leeward.drift.reasons import Field
from leeward.model import well_known
from leeward.model.launch import USER_DATA_LEFT_OUT, LaunchSettings
from leeward.node_template.user_data import kubelet_settings
from leeward.policy.document import NodePolicy

VERSION = "v2"
_DIGITS = 12


def fields_of(launch: LaunchSettings | None, policy: NodePolicy) -> dict[Field, str]:
    """Return the hashes of the settings that an instance does not show; unknown ones are absent."""
    taints = sorted((taint.key, taint.effect, taint.value) for taint in policy.node.startup_taints)
    found = {Field.STARTUP_TAINTS: _hash(repr(taints))}
    if launch is not None:
        if launch.user_data != USER_DATA_LEFT_OUT:
            found[Field.USER_DATA] = _hash(launch.user_data)
            found[Field.KUBELET] = _hash(_kubelet(launch.user_data))
        found[Field.BLOCK_DEVICES] = _hash(launch.devices)
    return found


def written(found: Mapping[Field, str]) -> dict[str, str]:
    """Return the hashes as annotations."""
    text = ",".join(f"{field.value}={found[field]}" for field in Field if field in found)
    return {well_known.TEMPLATE_HASH: text, well_known.TEMPLATE_HASH_VERSION: VERSION}


def read(annotations: Mapping[str, str]) -> dict[Field, str] | None:
    """Return the hashes of the annotations; None where there are none of this version."""
    if annotations.get(well_known.TEMPLATE_HASH_VERSION) != VERSION:
        return None
    pairs = (part.partition("=") for part in annotations.get(well_known.TEMPLATE_HASH, "").split(","))
    known = {field.value: field for field in Field}
    return {known[name]: value for name, _, value in pairs if name in known}


@lru_cache(maxsize=1024)
def _kubelet(user_data: str) -> str:
    """Return a text that is equal for settings with the same meaning, however the user data spells them."""
    found = kubelet_settings(user_data)
    labels, taints = sorted(found.labels.items()), sorted((t.key, t.effect, t.value) for t in found.taints)
    kept = [sorted(part.items()) for part in (found.kube_reserved, found.system_reserved, found.eviction_hard)]
    pods = (found.max_pods, found.expression, found.ceiling, found.counts_interfaces)
    return repr((*pods, labels, taints, kept, found.local_disks, found.mirrored))


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]
