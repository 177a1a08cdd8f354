"""Methods of voluntary disruption, in the order in which they are tried.

Expiration first: an operator has set a limit to a node's age. Drift next: the node does not match its desired state.
Emptiness before consolidation: removing an empty node moves no pod. Consolidation last: it moves pods to save money."""

from leeward.disruption.methods.consolidation import Consolidation
from leeward.disruption.methods.drift import Drift
from leeward.disruption.methods.emptiness import Emptiness
from leeward.disruption.methods.expiration import Expiration
from leeward.disruption.methods.method import Method

ORDER: tuple[Method, ...] = (Expiration(), Drift(), Emptiness(), Consolidation())

__all__ = ["ORDER", "Method"]
