"""Sentences of notifications that say what happens next, with the command for it or against it."""

import shlex
from collections.abc import Callable, Mapping

from leeward.model.times import format_instant
from leeward.upgrade.record import ControlRequest, UpgradeRecord


def upgrade_command(record: UpgradeRecord, action: str = "status") -> str:
    """Return `leeward upgrade ACTION GROUP --cluster NAME`, for a shell."""
    return f"leeward upgrade {action} {shlex.quote(record.group)} --cluster {shlex.quote(record.cluster)}"


def _failed(record: UpgradeRecord) -> str:
    start, status = upgrade_command(record, "start"), upgrade_command(record)
    return f"{start} continues it once the cause is fixed; {status} shows it"


def _paused(record: UpgradeRecord) -> str:
    if record.control is ControlRequest.PAUSE:
        return f"{upgrade_command(record, 'resume')} continues it"
    return f"leeward resume --cluster {shlex.quote(record.cluster)} ends the pause"


def _by_itself(record: UpgradeRecord) -> str:
    until = record.hold.until if record.hold is not None else None
    when = f"it continues by itself at {format_instant(until)}" if until else "it continues by itself once that is over"
    return f"{when}; {upgrade_command(record, 'abort')} ends it"


def _canary(record: UpgradeRecord) -> str:
    return f"{_by_itself(record)}, {upgrade_command(record, 'rollback')} takes it back"


GO_ON: Mapping[str, Callable[[UpgradeRecord], str]] = {
    "paused": _paused,
    "alarm": _canary,
    "window": _by_itself,
    "canary": _canary,
}
"""Ends of each kind of a hold (`upgrade.control.Hold`)."""

AFTER: Mapping[str, Callable[[UpgradeRecord], str]] = {"Upgrade Failed": _failed}
"""Commands after other events than a hold, where it is more than the status."""


def runs_command(cluster: str) -> str:
    """Return the command that shows what the next run of the cluster would do, and why nodes stay."""
    return f"leeward plan --cluster {shlex.quote(cluster)} shows what is next"
