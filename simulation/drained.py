"""Which pods are still on the node of an instance although they could have left. The rules of kubectl drain once more,
over raw objects: a second opinion on the product's own."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from leeward.model.deadlines import taken_at
from leeward.model.instance import instance_id_of
from leeward.model.termination import TerminationRecord
from leeward.model.times import as_instant
from local.cluster.objects import Obj, path_name
from local.cluster.selectors import label_selector_matches
from simulation.facts import policy_of, told_first
from simulation.view import WorldView

CLOCKS = timedelta(seconds=2)  # by which those of two functions may differ
STUCK = timedelta(seconds=60) - CLOCKS  # past its deletion: the kubelet does not answer, nobody waits for it
TAKEN = timedelta(seconds=10)  # before its deadline a spot instance is let go as it is
JUST_JOINED = timedelta(seconds=10)  # a node that came so late may have been unknown to the drain
MIRROR = "kubernetes.io/config.mirror"


def left_behind(instance: str, view: WorldView) -> list[str]:
    """Pods that have to leave before the instance may be let go; none once the drain's time is over."""
    record, now = view.records.get(instance), _instant(view.now)
    node = _node(instance, view)
    if node is None or (record is not None and (_came_late(node, record) or _out_of_time(record, view, now))):
        return []
    return [path_name(pod) for pod in _leaving(node, view) if not _stuck(pod, now)]


def untouched(instance: str, since: float, view: WorldView) -> list[str]:
    """Pods without a budget that nobody has begun to evict; none on a node younger than `since`.

    Critical pods go last, after the others have gone, so they are not looked at.
    """
    node = _node(instance, view)
    if node is None or as_instant(node["metadata"]["creationTimestamp"]) > _instant(since):
        return []
    budgets = view.cluster.store.all("poddisruptionbudgets")
    pods = (pod for pod in _leaving(node, view) if not _critical(pod) and "deletionTimestamp" not in pod["metadata"])
    return [path_name(pod) for pod in pods if not any(_selects(budget, pod) for budget in budgets)]


def _leaving(node: Obj, view: WorldView) -> Iterator[Obj]:
    for pod in sorted(view.cluster.store.pods_on(node["metadata"]["name"]), key=path_name):
        owners = pod["metadata"].get("ownerReferences") or ()
        of_daemon_set = any(owner.get("kind") == "DaemonSet" for owner in owners)
        finished = (pod.get("status") or {}).get("phase") in {"Succeeded", "Failed"}
        if not (of_daemon_set or finished or MIRROR in (pod["metadata"].get("annotations") or {})):
            yield pod


def _node(instance: str, view: WorldView) -> Obj | None:
    nodes = view.cluster.store.each("nodes")
    return next((node for node in nodes if instance_id_of(node["spec"].get("providerID") or "") == instance), None)


def _came_late(node: Obj, record: TerminationRecord) -> bool:
    claimed = record.times.get("claimed")
    return claimed is not None and as_instant(node["metadata"]["creationTimestamp"]) > claimed - JUST_JOINED


def _out_of_time(record: TerminationRecord, view: WorldView, now: datetime) -> bool:
    """A forced drain goes on until the node is empty, and so does one that an upgrade's hook holds."""
    policy = policy_of(view, view.groups.get(record.subject.group or ""))
    started = record.times.get("draining")
    if policy is None or policy.drain.force or record.forced:
        return policy is None
    ends = taken_at(record)
    taken = ends is not None and now > ends - TAKEN
    if told_first(record):
        return taken
    return taken or (started is not None and now >= started + policy.drain.timeout - CLOCKS)


def _stuck(pod: Obj, now: datetime) -> bool:
    deletion = pod["metadata"].get("deletionTimestamp")
    return deletion is not None and now - as_instant(deletion) > STUCK


def _critical(pod: Obj) -> bool:
    return str(pod["spec"].get("priorityClassName", "")).startswith("system-")


def _selects(budget: Obj, pod: Obj) -> bool:
    same = budget["metadata"]["namespace"] == pod["metadata"]["namespace"]
    return same and label_selector_matches(budget["spec"].get("selector"), pod["metadata"].get("labels") or {})


def _instant(at: float) -> datetime:
    return datetime.fromtimestamp(at, UTC)
