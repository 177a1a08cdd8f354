"""Port to Elastic Load Balancing, through which a drain waits for the deregistration of its node's targets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from leeward.model.instance import Instance
    from leeward.model.load_balancing import Target


class LoadBalancers(Protocol):
    """Target groups tagged for a cluster. Read-only: the controller that registered a target deregisters it."""

    def targets(self, cluster: str, instance: Instance) -> Sequence[Target]:
        """Return the cluster's targets on the instance with their current health, without those in state `unused`.

        The list of target groups is cached for up to a minute.
        """
        ...
