"""Oracle of Kubernetes Events: what each reason claims, held against the fakes at the moment at which it is written.

A rule returns what is false about the Event, or nothing. It reads the state that the code has made, not the values from
which the code has made the sentence."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import pytest

from leeward.model.node import Node
from leeward.model.pod import Pod
from leeward.model.termination import CauseKind, Status, TerminationRecord
from leeward.model.times import format_instant, parse_instant
from leeward.model.well_known import ZONE_LABEL
from simulation.aws.recovery import zone_id_of
from tests.fakes.system import FakeSystem

UNTIL = re.compile(r", until (\d{4}-\d\d-\d\dT[\d:.]+Z)")
ENDED = {"shutting-down", "terminated"}


@dataclass(frozen=True, kw_only=True)
class Said:
    """One Event and the deployment in which it is written."""

    system: FakeSystem
    about: Node | Pod
    message: str

    @property
    def name(self) -> str:
        """Name of the node; of a pod its node's."""
        return (self.about.node or "") if isinstance(self.about, Pod) else self.about.name

    @property
    def node(self) -> Node | None:
        """The Node as it is now."""
        return self.system.kubernetes.by_name.get(self.name)

    @property
    def record(self) -> TerminationRecord | None:
        """The node's termination as it is now."""
        node = self.about if isinstance(self.about, Node) else self.node
        return self.system.claims.records.get(node.instance_id) if node is not None else None

    @property
    def times(self) -> frozenset[str]:
        """Names of the times that the present attempt has recorded."""
        return frozenset(self.record.times) if self.record is not None else frozenset()

    @property
    def pods(self) -> list[Pod]:
        """Pods on the node that have not ended."""
        there = self.system.kubernetes.by_key.values()
        return [pod for pod in there if pod.node == self.name and not pod.finished]

    @property
    def terminating(self) -> bool:
        """Whether a termination of the node is open."""
        return self.record is not None and self.record.status is Status.OPEN


def _of_a_message(said: Said) -> str:
    if said.message.startswith("Leeward has cordoned this node"):
        return "" if said.node is not None and said.node.unschedulable else "it is not cordoned"
    if not said.terminating:
        return "nothing terminates it"
    if "drained" in said.times:
        return "its drain is over"
    if said.message.startswith("Leeward will remove this Node"):
        state = said.system.instances.known[said.record.instance].state if said.record else ""
        return "" if state in ENDED else f"its instance is {state}"
    begun = "draining" in said.times
    return "" if begun == said.message.startswith("Leeward is draining") else f"its drain has begun: {begun}"


def _of_a_blocked_drain(said: Said) -> str:
    if said.message.startswith("EKS could not drain it now: "):
        return "" if said.pods else "there is no pod"
    if not said.terminating or "draining" not in said.times or "drained" in said.times:
        return "no drain is under way"
    left = [pod.key for pod in said.pods if pod.deletion is None]
    return "" if any(key in said.message for key in left) else f"it names none of the pods that are left: {left}"


def _of_an_eviction_failure(said: Said) -> str:
    return "" if said.pods else "no pod is left"


def _of_a_cancelled_termination(said: Said) -> str:
    ours = said.node is not None and said.node.disrupted_by == said.system.ports.deployment
    return "it has our taint" if ours else ""


def _of_a_kept_node(said: Said) -> str:
    node = said.node
    return "" if node is not None and node.unschedulable and not node.tainted else "it is not just cordoned"


def _of_a_reboot(said: Said) -> str:
    """The request is recorded before it is made, and no pod that could be evicted is left."""
    record = said.record
    if record is None or not said.terminating or record.rebooting is None:
        return "no reboot of it is recorded"
    there = [pod.key for pod in said.pods if not pod.of_daemon_set]
    return f"{there} are on it" if there else ""


def _of_a_rebooted_node(said: Said) -> str:
    record, node = said.record, said.node
    if record is None or node is None or not node.ready:
        return "it is not Ready"
    before = record.rebooting[0] if record.rebooting else record.boot
    return "its boot id is the old one" if node.boot == before else "it is tainted" if node.tainted else ""


def _of_a_failed_reboot(said: Said) -> str:
    ends = said.record is not None and said.terminating and said.record.reboot is None
    return "" if ends else "nothing replaces it"


def _of_a_wait(said: Said) -> str:
    ends = [parse_instant(end) for end in UNTIL.findall(said.message)]
    now = said.system.clock.now()
    if not said.terminating:
        return "nothing terminates it"
    return "" if ends and min(ends) > now else f"it ends at {ends}, and it is {format_instant(now)}"


def _of_attached_volumes(said: Said) -> str:
    there = [one for one in said.system.kubernetes.attachment_list if one.node == said.name]
    return _of_a_wait(said) if there else "no volume is attached"


def _of_a_pod_without_a_second(said: Said) -> str:
    there = isinstance(said.about, Pod) and said.about.key in said.system.kubernetes.by_key
    return "" if there else "the pod has left"


def _of_a_replacement_elsewhere(said: Said) -> str:
    if said.record is None:
        return "nothing terminates it"
    group, own = said.record.subject.group or "", said.record.subject.zone
    new = {member.id for member in said.system.groups.by_name[group].instances} - {said.record.instance}
    zones = {said.system.network.by_id[subnet].zone for _, subnet, _ in said.system.groups.launches}
    launched = any(name in said.message for name in new) and any(f" is in {zone} " in said.message for zone in zones)
    return "" if launched and zones - {own} else f"nothing was launched outside of {own}"


def _of_no_replacement(said: Said) -> str:
    made = said.record.replacement if said.record is not None else None
    return f"{made.launched} were launched" if made is not None and made.launched else ""


def _of_an_evacuation(said: Said) -> str:
    """The record of the zones closes the node's zone, and its termination has begun."""
    zone = said.node.labels.get(ZONE_LABEL, "") if said.node is not None else ""
    records = [said.system.catalog.zone_record(name) for name in said.system.ports.clusters.names()]
    closed = {one.zone for record in records for one in record.evacuations if one.closed}
    claimed = said.record is not None and said.terminating and said.record.has(CauseKind.EVACUATION)
    return "" if claimed and zone in closed else "its zone is not evacuated"


def _of_an_unhealthy_node(said: Said) -> str:
    claimed = said.record is not None and said.terminating and said.record.has(CauseKind.UNHEALTHY)
    return "" if claimed else "nothing terminates it for its health"


def _of_a_node_that_stays(said: Said) -> str:
    return "it is being terminated" if said.terminating or (said.node is not None and said.node.tainted) else ""


def _of_an_upgrade(said: Said, *, held: bool) -> str:
    """The record of the group is what the next turn of its upgrade, and its status, know of the alarms."""
    named = re.match(r"upgrade of (\S+): ", said.message)
    record = said.system.upgrades.records.get(named[1]) if named else None
    if record is None:
        return "it names no upgrade"
    return "" if bool(record.alarm) is held else f"its record says {record.alarm or 'that no alarm holds it'}"


def _of_a_shift(said: Said, *, shifted: bool) -> str:
    """ARC's model knows which zones are shifted now, whatever has been polled or kept."""
    zone = said.node.labels.get(ZONE_LABEL, "") if said.node is not None else ""
    if zone not in said.message:
        return f"the node is in {zone or 'no known zone'}"
    clusters = said.system.ports.clusters.names()
    shifts = [shift for name in clusters for shift in said.system.recovery.arc.shifts(name, said.system.clock.now())]
    return "" if (zone_id_of(zone) in {shift.zone_id for shift in shifts}) is shifted else f"ARC says {shifts}"


def _of_a_failed_upgrade(said: Said) -> str:
    named = re.match(r"upgrade of (\S+) to (\S+) ", said.message)
    record = said.system.upgrades.records.get(named[1]) if named else None
    if record is None or named is None:
        return "it names no upgrade"
    return "" if record.error and record.request.automatic == named[2] else "its record has no such failure"


def _of_an_upgrade_that_ended(said: Said) -> str:
    named = re.match(r"upgrade of (\S+): ", said.message)
    record = said.system.upgrades.records.get(named[1]) if named else None
    return "" if record is not None and record.ended and record.error else "its record has no failure"


RULES: dict[str, Callable[[Said], str]] = {
    "SpotInterruption": _of_a_message,
    "RebalanceRecommendation": _of_a_message,
    "ScheduledChange": _of_a_message,
    "CapacityReservationInterruption": _of_a_message,
    "CapacityBlockExpiration": _of_a_message,
    "InstanceStateChange": _of_a_message,
    "GroupTerminating": _of_a_message,
    "RootVolumeReplacement": _of_a_message,
    "DrainBlocked": _of_a_blocked_drain,
    "PodEvictionFailure": _of_an_eviction_failure,
    "TerminationCancelled": _of_a_cancelled_termination,
    "Drained": _of_a_kept_node,
    "Rebooting": _of_a_reboot,
    "Rebooted": _of_a_rebooted_node,
    "RebootFailed": _of_a_failed_reboot,
    "AwaitingDeregistration": _of_a_wait,
    "AwaitingVolumeDetachment": _of_attached_volumes,
    "DeregistrationNotAwaited": lambda said: "" if said.terminating else "nothing terminates it",
    "NotSurged": _of_a_pod_without_a_second,
    "ReplacementElsewhere": _of_a_replacement_elsewhere,
    "NoSubnetIPs": _of_no_replacement,
    "ReplacementRefused": _of_no_replacement,
    "LaunchRefused": _of_no_replacement,
    "UnhealthyNode": _of_an_unhealthy_node,
    "ZoneEvacuation": _of_an_evacuation,
    "Unconsolidatable": _of_a_node_that_stays,
    "DisruptionBlocked": _of_a_node_that_stays,
    "DriftNotFixable": _of_a_node_that_stays,
    "ZonalShift": partial(_of_a_shift, shifted=True),
    "ZonalShiftEnded": partial(_of_a_shift, shifted=False),
    "AutomaticUpgradeFailed": _of_a_failed_upgrade,
    "UpgradeFailed": _of_an_upgrade_that_ended,
    "UpgradeHeld": partial(_of_an_upgrade, held=True),
    "UpgradeResumed": partial(_of_an_upgrade, held=False),
}


def falsehood(system: FakeSystem, about: Node | Pod, reason: str, message: str) -> str:
    """Return what is false about an Event that is written now, empty if it is true."""
    rule = RULES.get(reason)
    return rule(Said(system=system, about=about, message=message)) if rule is not None else "no rule knows the reason"


@contextmanager
def held_against_the_truth(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fail at the end if an Event was false. Every `FakeSystem` that is made inside notes it. No exception is raised
    where the Event is written, because the code under test isolates exceptions.
    """
    false: list[str] = []
    build = FakeSystem.__init__

    def built(system, **given):
        build(system, **given)
        write = system.kubernetes.event

        def event(about, *, reason, message, **more):
            why = falsehood(system, about, reason, message)
            if why:
                false.append(f"{reason} about {about.name}: {message!r}: {why}")
            write(about, reason=reason, message=message, **more)

        system.kubernetes.event = event

    monkeypatch.setattr(FakeSystem, "__init__", built)
    yield
    if false:
        pytest.fail("\n".join(false), pytrace=False)
