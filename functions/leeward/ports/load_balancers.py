"""Port to Elastic Load Balancing, for a drain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from leeward.model.instance import Instance
    from leeward.model.target import Target


class LoadBalancers(Protocol):
    """Target groups that are tagged for a cluster. The port is read-only: the owner of a
    registration deregisters it.
    """

    def targets(self, cluster: str, instance: Instance) -> Sequence[Target]:
        """Return the cluster's targets that are at the instance, with their health now; unused ones are left out.

        The list of target groups may be a minute old.
        """
        ...
