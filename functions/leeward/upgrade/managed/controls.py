"""Limits of control requests for a managed node group: EKS has no pause, and cancels no update of a node group
(CancelUpdate serves rollbacks of Auto Mode clusters alone)."""

from leeward.upgrade.record import ControlRequest, UpgradeRecord

_LATER = {
    ControlRequest.PAUSE: "EKS cannot pause an update: nothing more is started when it has ended",
    ControlRequest.ABORT: "EKS cannot cancel the update of a node group: it is not tried again when it has ended",
    ControlRequest.ROLLBACK: "EKS cannot cancel the update of a node group: the way back begins when it has ended",
}


def limits(record: UpgradeRecord) -> str:
    """Return the limit to report with the control request while EKS rolls the group; empty where it takes effect at
    once.
    """
    if record.target.nodegroup is None or not record.update or record.ended is not None:
        return ""
    return _LATER.get(record.control, "")
