"""Provenance of the attributes of a node that does not exist yet: how far each group of them can be relied on.

A script is not run, so what is read from it is an estimate. An estimate may keep pods off a node, but never proves that
a node will carry a label (docs/designs/node-template.md, "Provenance")."""

from collections.abc import Iterable, Mapping
from enum import StrEnum


class Provenance(StrEnum):
    """Origin of a value, the most reliable first."""

    OBSERVED = "observed"  # on Ready nodes of the group that were launched alike
    DECLARED = "declared"  # by AWS, or by a format that the node's boot program reads: NodeConfig, TOML, kubelet.env
    ESTIMATED = "estimated"  # from a script, a tag or a formula
    UNKNOWN = "unknown"  # the value that is shown is the most cautious guess


class Attribute(StrEnum):
    """Group of a node's attributes that share an origin."""

    LABELS = "labels"
    TAINTS = "taints"
    MAX_PODS = "maxPods"
    CAPACITY = "capacity"
    OS = "os"
    ARCHITECTURE = "architecture"


ANNOTATION = "leeward.dev/template-provenance"  # on the Node that `leeward inspect template` prints, on no real node
Origins = Mapping[Attribute, Provenance]
KUBELET = (Attribute.LABELS, Attribute.TAINTS, Attribute.MAX_PODS, Attribute.CAPACITY)  # what user data decides
_RANKS = {provenance: rank for rank, provenance in enumerate(Provenance)}


def weakest(*origins: Provenance) -> Provenance:
    """Return the least reliable of the origins."""
    return max(origins, key=_RANKS.__getitem__)


def joined(first: Origins, second: Origins) -> dict[Attribute, Provenance]:
    """Return the origins of both; of an attribute that both name, the less reliable."""
    return {
        attribute: weakest(*(origins[attribute] for origins in (first, second) if attribute in origins))
        for attribute in Attribute
        if attribute in first or attribute in second
    }


def unknown(attributes: Iterable[Attribute] = KUBELET) -> dict[Attribute, Provenance]:
    """Return the attributes as unknown."""
    return dict.fromkeys(attributes, Provenance.UNKNOWN)


def written(origins: Origins) -> str:
    """Return the origins as an annotation's text: `labels=declared,taints=unknown,…`."""
    return ",".join(f"{attribute}={origins[attribute]}" for attribute in Attribute if attribute in origins)
