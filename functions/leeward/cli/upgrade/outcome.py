"""Outcome of an upgrade: its error, the cause, and the next command."""

from collections.abc import Iterator
from dataclasses import dataclass

from leeward.cli.context import ClusterContext
from leeward.upgrade.completion import ERRORS
from leeward.upgrade.run import UpgradeNext
from leeward.upgrade.status import UpgradePhase, UpgradeStatus

BLOCKED = ERRORS[UpgradeNext.BLOCKED]
_ACTION = {
    UpgradePhase.NOT_STARTED: "plan",
    UpgradePhase.PAUSED: "resume",
    UpgradePhase.STOPPED: "start",
    UpgradePhase.FAILED: "start",
    UpgradePhase.DONE: "",
    UpgradePhase.ABORTED: "",
}  # the other phases are followed


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradeOutcome:
    """`error`: the field's name of the failure; `cause`: why it failed, stands still or is held up, in a sentence;
    `command` that comes next. None where none.
    """

    error: str | None = None
    cause: str | None = None
    command: str | None = None

    def to_json(self) -> dict[str, str | None]:
        """Return the keys that `docs/schema/upgrade-status.json` adds for a live status."""
        return {"error": self.error, "cause": self.cause, "next": self.command}

    def lines(self) -> Iterator[str]:
        """Yield a line for each that is known."""
        for name, value in self.to_json().items():
            if value is not None:
                yield f"{name}: {value}"


def outcome_of(group: str, context: ClusterContext, status: UpgradeStatus) -> UpgradeOutcome:
    """Return the outcome of the group's upgrade as its record has it; nothing for a folder."""
    if context.folder is not None:
        return UpgradeOutcome()
    record = context.ports.upgrades.read(group)
    error, _, cause = record.error.partition(": ") if record is not None else ("", "", "")
    action = _ACTION.get(status.phase, "status")
    more = " --watch" if action == "status" else ""
    if error == BLOCKED:
        action, more = "plan", " --recorded"
    command = f"leeward upgrade {action} {group} {context.options}{more}" if action else None
    if status.phase not in {UpgradePhase.FAILED, UpgradePhase.STOPPED}:
        return UpgradeOutcome(cause=status.held or status.blocked or None, command=command)
    why = cause or status.held or (record.why if record is not None else "")
    return UpgradeOutcome(error=error or None, cause=why or None, command=command)
