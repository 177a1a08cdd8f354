"""Port to Application Recovery Controller (ARC), which shifts the traffic of a cluster away from a zone."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from leeward.model.zonal_shift import ZonalShift


class RecoveryController(Protocol):
    """Zonal shifts and autoshifts of clusters. Read-only: who starts a shift ends it."""

    def shifts(self, cluster: str, now: datetime) -> Sequence[ZonalShift]:
        """Return the shifts in effect for the cluster, by zone id and without zone names. None for a cluster that ARC
        does not manage: zonal shift is not enabled for it.
        """
        ...
