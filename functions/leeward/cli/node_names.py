"""Names that a node may be called by: its name, `node/NAME`, its short name, or its instance's id.

Decides which node is meant; the name itself wins over every other reading."""

from collections.abc import Iterable

from leeward.errors import InvalidInputError
from leeward.model.counts import count_of
from leeward.model.node import Node

PREFIXES = ("node/", "nodes/", "no/")  # as kubectl prints and takes them


def plain(reference: str) -> str:
    """Return the reference without kubectl's `node/`."""
    prefix = next((one for one in PREFIXES if reference.startswith(one)), "")
    return reference.removeprefix(prefix)


def node_among(nodes: Iterable[Node], reference: str) -> Node | None:
    """Return the node that is meant, None where none is. A short name is the name up to a dot. Raises InvalidInputError
    for one that several nodes have.
    """
    name, known = plain(reference), list(nodes)
    exact = next((node for node in known if name in {node.name, node.instance_id}), None)
    if exact is not None:
        return exact
    short = sorted(node.name for node in known if node.name.startswith(f"{name}."))
    if len(short) > 1:
        raise InvalidInputError(
            f"found {count_of(len(short), 'node')} with the short name {name!r}, expected one of {listed(short)}"
        )
    return next((node for node in known if node.name in short), None)


def listed(names: Iterable[str], most: int = 10) -> str:
    """Return the first names, sorted, for a message."""
    known = sorted(names)
    return (", ".join(known[:most]) or "none at all") + (f" and {len(known) - most} more" if len(known) > most else "")
