"""Rules about the images of nodes: drift is reported where the image that a group would launch has moved, and only
there; an upgrade to the image behind a parameter brings the image that the parameter had since it was asked for.

What a group would launch is looked at every few seconds and at the end of each run of fn disruption-planner, and
remembered: a function judges what it has read before."""

from collections.abc import Iterator
from datetime import datetime

from leeward.disruption.command import MethodName
from leeward.model import well_known
from leeward.model.group import Group
from leeward.upgrade.record import ControlRequest, UpgradeRecord
from local.cluster.objects import Obj, annotations_of, name_of
from local.cluster.store import Change, ChangeType
from simulation.facts import News
from simulation.image_aliases import PUBLIC, VERSION
from simulation.node_instances import instance_behind
from simulation.view import WorldView

AMI = "ami"
LOOKS_EVERY = 5.0
LONGEST_RUN = 300.0  # seconds of fn disruption-planner
SETTLED = 600.0  # seconds: the API has been in order for as long
IN_SERVICE = "InService"
BEFORE = 120.0  # seconds: an execution takes its lease within as many after its start


class Moves:
    """Values over time, as often as they were looked at: `of(name, since)` are those that were true after `since`."""

    def __init__(self) -> None:
        self._known: dict[str, list[tuple[float, str]]] = {}

    def read(self, now: float, values: dict[str, str]) -> None:
        """Remember the values of now."""
        for name, value in values.items():
            known = self._known.setdefault(name, [])
            if not known or known[-1][1] != value:
                known.append((now, value))

    def of(self, name: str, since: float) -> set[str]:
        """Return every value that was true at some moment from `since` until now; empty for an unknown name."""
        known = self._known.get(name, [])
        last = max((at for at, _ in known if at <= since), default=0.0)
        return {value for at, value in known if at >= last}


class ImageRules:
    """Rules about images, with what they have to remember."""

    def __init__(self) -> None:
        self._images, self._parameters = Moves(), Moves()
        self._looked = self._unread = float("-inf")
        self._runs = 0  # of fn disruption-planner, at the last look
        self._now = 0.0
        self._new = News().of
        self._reported: list[tuple[str, str]] = []  # node, instance: its drift in the image was just reported
        self._changed: dict[str, float] = {}  # node -> when it joined, or its taints last changed; absent: since long
        self._disruptions: dict[str, int] = {}
        self._ended: dict[str, datetime] = {}

    def watch(self, change: Change) -> None:
        """Observe a write; runs inside it, so it only reads."""
        if change.resource != "nodes" or change.type is ChangeType.DELETED:
            return
        node, old, name = change.obj, change.old, name_of(change.obj)
        if old is None or old["spec"].get("taints") != node["spec"].get("taints"):
            self._changed[name] = self._now
        if _says_so(node) and (old is None or not _says_so(old)):
            self._reported.append((name, instance_behind(node)))

    def read(self, view: WorldView) -> None:
        """Look at the images, every few seconds, and whenever something about them was just said or decided."""
        self._now = view.now
        if not view.readable:
            self._unread = view.now
        if view.now < self._looked + LOOKS_EVERY and not self._reported and len(view.decided) == self._runs:
            return
        self._looked, self._runs = view.now, len(view.decided)
        self._images.read(view.now, dict(view.launched_images))
        self._parameters.read(view.now, dict(view.parameters))

    def drifts(self, view: WorldView) -> Iterator[str]:
        """Yield nodes that are said to have drifted in their image, or are replaced for drift, although their group has
        launched no other image for as long as a function may work on what it has read.
        """
        reported, self._reported = self._reported, []
        for node, instance in reported:
            yield from self._unmoved(node, instance, view.now - LONGEST_RUN, view)
        for cluster, record in view.disruptions.items():
            if not record.requested or self._disruptions.get(cluster) == record.number:
                continue
            self._disruptions[cluster] = record.number
            for node, instance in record.to_terminate.items() if record.method is MethodName.DRIFT else ():
                yield from self._unmoved(node, instance, record.began.timestamp() - LONGEST_RUN, view)

    def _unmoved(self, node: str, instance: str, since: float, view: WorldView) -> Iterator[str]:
        image, launched = view.image(instance), self._images.of(view.launched_by(instance), since)
        group = view.groups.get(view.launched_by(instance))
        if image and launched == {image} and not (group is not None and _of_another_type(instance, group)):
            yield f"{node} ({instance}) has {image}, as its group launches"

    def unseen(self, view: WorldView) -> Iterator[str]:
        """Yield nodes whose drift a run of fn disruption-planner has not reported although it met no error: the group
        has launched another image since before the run, and nothing kept us from reading which.
        """
        for began, _ in self._new("decided", view.decided):
            since = began - LOOKS_EVERY
            kept = self._unread >= since or view.rewritten >= since or view.troubled(SETTLED)
            kept = kept or view.stood_still(SETTLED)  # the facts that the run reads are in the table
            off = view.policies.pauses.voluntary() or not view.policies.settings.drift
            for node in () if kept or off else view.cluster.store.each("nodes"):
                if self._changed.get(name_of(node), 0.0) < since and not _says_so(node):
                    yield from self._moved(node, since, view)

    def _moved(self, node: Obj, since: float, view: WorldView) -> Iterator[str]:
        instance = instance_behind(node)
        image, name = view.image(instance), view.launched_by(instance)
        launched = self._images.of(name, since)
        group = view.groups.get(name)
        if group is None or not image or len(launched) != 1 or launched & {image, ""}:
            return
        policy = view.policies.policy_of(group)
        taints = {taint["key"] for taint in node["spec"].get("taints") or ()}
        if policy is None or not policy.disruption.drift or group.lifecycle_of(instance) != IN_SERVICE or taints:
            return
        if "deletionTimestamp" not in node["metadata"] and view.running(instance):
            yield f"{name_of(node)} ({instance}) has {image}, {name} has launched {launched.pop()} for a while"

    def upgraded(self, view: WorldView) -> Iterator[str]:
        """Yield members on another image than the parameter had since an operator has asked for their upgrade to it,
        which has said that it is done.
        """
        for name, record in view.upgrades.items():
            if record.ended is None or self._ended.get(name) == record.ended:
                continue
            self._ended[name] = record.ended
            parameters = _parameters(record.request.image or record.request.kubernetes)
            since = _asked_at(record, view) if parameters else None
            if since is None or record.error or record.rolling_back or record.control is not ControlRequest.RUN:
                continue
            allowed = set().union(*(self._parameters.of(one, since) for one in parameters))
            for member in view.groups[name].instances:
                image = view.image(member.id)
                serves = member.lifecycle == IN_SERVICE and not member.protected and member.id not in view.reused
                if serves and image and image not in allowed:
                    yield f"{name}: {member.id} has {image}, {' or '.join(parameters)} named {sorted(allowed)}"


def _asked_at(record: UpgradeRecord, view: WorldView) -> float | None:
    """Return when an operator first asked for the upgrade's target; None where none did, as in a test."""
    target, began = record.request.image or record.request.kubernetes, record.began.timestamp() - BEFORE
    orders = (one for one in view.ordered if one.group == record.group and one.target == target)
    return min((one.at for one in orders if one.at >= began), default=None)


def _parameters(target: str) -> tuple[str, ...]:
    """Return the parameters that the target may stand for: EKS' own of either architecture for a Kubernetes version."""
    if target == VERSION:
        return tuple(PUBLIC.values())
    return (target,) if target.startswith("/") else ()


def _says_so(node: Obj) -> bool:
    return AMI in annotations_of(node).get(well_known.DRIFT_REASONS, "").split(",")


def _of_another_type(instance: str, group: Group) -> bool:
    """Return whether the overrides of the group name types, and not the one that the instance has drifted in."""
    named = {override.instance_type for override in group.launch.overrides}
    return bool(named) and any(one.id == instance and one.type not in named for one in group.instances)
