"""Rule about capacity ahead for the pods of a shifted zone."""

from collections.abc import Iterator, Mapping

from leeward.model.zone_record import Prescale
from leeward.policy.document import OnShift
from leeward.policy.selection import policy_for
from local.cluster.objects import Obj, controller_of, name_of
from simulation.facts import group_of
from simulation.node_instances import instance_behind
from simulation.view import WorldView
from simulation.zone_convergence import upgraded
from simulation.zone_rules import POLL_TAKES, POLLED, ZONE_LABEL

DAEMON, FINISHED = "DaemonSet", ("Succeeded", "Failed")
SIZED = "do not fit"  # a refusal for want of MaxSize, which is judged here
BOUND = ("nodeSelector", "affinity", "volumes")  # fields by which a pod may be bound to a zone


class Prescales:
    """Rule about the capacity of shifts, one object for each run."""

    def __init__(self) -> None:
        self._wanted: dict[int, Mapping[str, frozenset[str]]] = {}  # number of the shift -> group -> instances
        self._fits: dict[tuple[int, str], int] = {}  # what MaxSize allowed: the least since the shift
        self._judged: set[int] = set()

    def check(self, view: WorldView) -> Iterator[str]:
        """Yield groups of which fewer nodes were launched within a minute of the shift than have movable pods in the
        zone, as far as MaxSize allows. A node that is launched is Ready when it has booted. Judged where nothing fails.
        """
        for number, shift in enumerate(view.shifted):
            if number in self._judged or not shift.calls_for_capacity:
                continue
            if number not in self._wanted:
                self._wanted[number] = _movable(shift.zone, view)
            if shift.ended is not None or not view.faultless:
                self._judged.add(number)
                continue
            prescale = next((p for p in view.zone_record.prescales if p.zone == shift.zone and p.ended is None), None)
            for name in self._wanted[number]:
                fits = _fits(name, prescale, view)
                self._fits[number, name] = min(self._fits.get((number, name), fits), fits)
            if view.now - shift.began > POLLED + POLL_TAKES:
                self._judged.add(number)
                yield from self._missing(number, prescale, view)

    def _missing(self, number: int, prescale: Prescale | None, view: WorldView) -> Iterator[str]:
        for name, instances in sorted(self._wanted[number].items()):
            left = [one for one in instances if view.running(one) and one not in view.open_since]
            if name not in view.groups or name in upgraded(view):
                continue
            refused = prescale.refused.get(name, "") if prescale is not None else ""
            if any(SIZED not in reason for reason in refused.split("; ") if reason):
                continue  # LaunchInstances does not serve it, or there is no subnet
            launched, fits = len(_launched(name, prescale)), self._fits[number, name]
            if launched < min(len(left), fits):
                zone = view.shifted[number].zone
                yield f"{name} has {launched} nodes ahead for {len(left)} in {zone}, {fits} fit"


def _launched(group: str, prescale: Prescale | None) -> list[str]:
    return [] if prescale is None else [new for new, node in prescale.launched.items() if node.group == group]


def _fits(name: str, prescale: Prescale | None, view: WorldView) -> int:
    group = view.groups.get(name)
    if group is None:
        return 0
    maximum = min(group.maximum, view.maxima.get(name, group.maximum))  # the owner's: an upgrade raises it for itself
    return max(maximum - (group.desired - len(_launched(name, prescale))), 0)


def _movable(zone: str, view: WorldView) -> Mapping[str, frozenset[str]]:
    """Return the instances of the zone with pods that nothing binds to it, by group; of groups whose policy prescales
    and that have another zone.
    """
    busy = {pod["spec"].get("nodeName") for pod in view.cluster.store.each("pods") if _moves(pod)}
    found: dict[str, set[str]] = {}
    for node in view.cluster.store.each("nodes"):
        labels = node["metadata"].get("labels") or {}
        if labels.get(ZONE_LABEL) != zone or name_of(node) not in busy:
            continue
        instance = instance_behind(node)
        group = group_of(view, instance)
        policy = policy_for(view.policies.policies, group.name, group.tags) if group is not None else None
        if group is None or policy is None or policy.on_shift is not OnShift.PRESCALE or len(group.zones) < 2:
            continue
        if instance not in view.open_since:
            found.setdefault(group.name, set()).add(instance)
    return {name: frozenset(instances) for name, instances in found.items()}


def _moves(pod: Obj) -> bool:
    spec, owner = pod["spec"], controller_of(pod)
    ended = (pod.get("status") or {}).get("phase") in FINISHED or "deletionTimestamp" in pod["metadata"]
    return not ended and owner is not None and owner.get("kind") != DAEMON and not any(spec.get(one) for one in BOUND)
