"""Port to load balancers for a drain; the rest of the seam is `ports.py`."""

from collections.abc import Sequence
from typing import Protocol

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
