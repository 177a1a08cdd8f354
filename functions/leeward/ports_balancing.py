"""What a drain needs to know of load balancers; the rest of the seam is `ports.py`."""

from collections.abc import Sequence
from typing import Protocol

from leeward.model.instance import Instance
from leeward.model.target import Target


class LoadBalancers(Protocol):
    """Target groups that are tagged for a cluster. Nothing is changed here: whoever registered a target lets it go."""

    def targets(self, cluster: str, instance: Instance) -> Sequence[Target]:
        """The cluster's targets that are at the instance, with their health now; those of no use are left out.

        Which target groups there are may be a minute old.
        """
        ...
