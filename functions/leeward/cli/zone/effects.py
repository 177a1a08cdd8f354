"""Effect of an evacuation, in lines for the question before it."""

from collections import Counter
from collections.abc import Sequence

from leeward.evacuation.plan import EvacuationStanding, NodeVerdict
from leeward.model.counts import count_of

MOST_NAMED = 5


def effects_of(cluster: str, zone: str, options: str, verdicts: Sequence[NodeVerdict]) -> list[str]:
    """Return what will happen: the zone, the nodes that leave by group, and those that stay. `options`: those that name
    the cluster.
    """
    lines = [f"close {zone} of cluster {cluster} for new nodes, until: leeward zone return {zone} {options}"]
    going = Counter(
        one.group for one in verdicts if one.standing in {EvacuationStanding.LEAVES, EvacuationStanding.WAITS}
    )
    for group, number in sorted(going.items()):
        nodes = count_of(number, "node")
        lines.append(f"{group}: launch {nodes} in other zones, then drain and TERMINATE {nodes} of {zone}, by budgets")
    staying = [one for one in verdicts if one.standing is EvacuationStanding.STAYS]
    for one in staying[:MOST_NAMED]:
        lines.append(f"{one.node.name} stays: {one.reason}")
    if len(staying) > MOST_NAMED:
        lines.append(f"and {count_of(len(staying) - MOST_NAMED, 'node')} more stay")
    return lines
