"""Rule that nothing voluntary starts while an alarm of its policy is in ALARM.

Reads the upgrades' and runs' records for what was begun, and the alarms of CloudWatch for since when they ring."""

from collections.abc import Iterator

from leeward.policy.document import NodePolicy
from leeward.upgrade.record import ControlRequest, UpgradeRecord, cause_id
from simulation.view import WorldView

AFTER = 30.0  # seconds from an alarm until no further node of an upgrade is started
VALIDATED = 90.0  # until no run requests terminations: a validation is valid for a minute, and the step takes a while


class Alarmed:
    """Starts of upgrades and of runs, each checked once, when it is first seen."""

    def __init__(self) -> None:
        self._started: set[str] = set()
        self._requested: dict[str, int] = {}

    def check(self, view: WorldView) -> Iterator[str]:
        """Yield nodes whose termination was requested although an alarm had been in ALARM for long."""
        for name, record in view.upgrades.items():
            yield from self._upgrade(name, record, view)
        for cluster, run in view.disruptions.items():
            if run.requested and self._requested.get(cluster) != run.number:
                self._requested[cluster] = run.number
                for group in sorted({run.members[node] for node in run.to_terminate}):
                    policy = _policy(group, view)
                    for held in self._holds_run(policy, view) if policy is not None else ():
                        yield f"run {run.number} requests terminations in {group}, {held}"

    def _upgrade(self, name: str, record: UpgradeRecord, view: WorldView) -> Iterator[str]:
        for old in record.under_way:
            cause = cause_id(record, old)
            if cause in self._started or cause not in view.known_causes(old):
                continue
            self._started.add(cause)
            policy = _policy(name, view)
            ends = record.rolling_back or record.control in {ControlRequest.ABORT, ControlRequest.ROLLBACK}
            for held in self._holds_upgrade(policy, view) if policy is not None and not ends else ():
                yield f"the upgrade of {name} starts {old}, {held}"

    def _holds_run(self, policy: NodePolicy, view: WorldView) -> Iterator[str]:
        yield from _ringing(policy.disruption.alarms, VALIDATED, view)

    def _holds_upgrade(self, policy: NodePolicy, view: WorldView) -> Iterator[str]:
        yield from _ringing(policy.update.alarms, AFTER, view)


def _policy(group: str, view: WorldView) -> NodePolicy | None:
    found = view.groups.get(group)
    return view.policies.policy_of(found) if found is not None else None


def _ringing(names: tuple[str, ...], longer: float, view: WorldView) -> Iterator[str]:
    for name in names:
        since = view.ringing.get(name)
        if since is not None and view.now - since > longer:
            yield f"alarm {name} has been in ALARM for {view.now - since:.0f} s"
