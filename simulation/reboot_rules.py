"""Rules for reboots that we request: how often, of which nodes, and not in an outage. Read from the world alone."""

from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime

from leeward.model.times import as_instant
from local.cluster.objects import Obj, is_ready
from simulation.drained import left_behind
from simulation.facts import News, group_of, policy_of
from simulation.node_instances import instance_behind
from simulation.view import WorldView

DAY = 86_400.0
MOST = 2  # reboots of a node within a day
SLOW = 90.0  # seconds between the last look at the cluster and the request; a node that failed later was not seen
LATE_NODES = 2  # that may have left in that time
ZONE = "topology.kubernetes.io/zone"


class RebootRules:
    """Rules for reboots, one object for each run."""

    def __init__(self) -> None:
        self._new = News().of
        self._times: dict[str, list[float]] = defaultdict(list)

    def often(self, view: WorldView) -> Iterator[str]:
        """Yield nodes that were rebooted a third time within a day."""
        for reboot in self._new("often", view.reboots):
            times = self._times[reboot.instance] = [at for at in self._times[reboot.instance] if reboot.at - at < DAY]
            times.append(reboot.at)
            if len(times) > MOST:
                yield f"{reboot.instance} was rebooted {len(times)} times within a day"

    def undrained(self, view: WorldView) -> Iterator[str]:
        """Yield nodes that were rebooted with pods that could still leave."""
        for reboot in self._new("undrained", view.reboots):
            if pods := left_behind(reboot.instance, view):
                yield f"{reboot.instance} is rebooted with {', '.join(pods)}"

    def in_an_outage(self, view: WorldView) -> Iterator[str]:
        """Yield nodes that were rebooted although more nodes of their zone or cluster had long been unhealthy than the
        policy's `maxUnhealthy` allows, or all of a zone.
        """
        for reboot in self._new("in an outage", view.reboots):
            if view.now - view.rewritten >= SLOW:
                for outage in _outages(reboot.instance, LATE_NODES, view):
                    yield f"{reboot.instance} is rebooted with {outage}"


def waits_for_others(instance: str, view: WorldView) -> bool:
    """Return whether we have rebooted the node, it has not come back, and too many nodes are unhealthy to replace it:
    it waits until one of them is mended.
    """
    rebooted = any(reboot.instance == instance for reboot in view.reboots)
    return rebooted and any(_outages(instance, 0, view))


def _outages(instance: str, late: int, view: WorldView) -> Iterator[str]:
    """Yield the scopes of the instance, zone and cluster, in which more nodes have long been unhealthy than
    `maxUnhealthy` of its policy allows. `late`: nodes that may have left since the product looked.
    """
    policy = policy_of(view, group_of(view, instance))
    nodes = [node for node in view.cluster.store.each("nodes") if view.running(instance_behind(node))]
    zone = next((_zone(node) for node in nodes if instance_behind(node) == instance), "")
    if policy is None:
        return
    scopes = {"the cluster": nodes, f"zone {zone}": [node for node in nodes if zone and _zone(node) == zone]}
    for scope, members in scopes.items():
        ill = sum(_long_unhealthy(node, view.now) for node in members)
        limit, percent = policy.repair.max_unhealthy, policy.repair.max_unhealthy_percent
        most = max((len(members) + late) * limit // 100, 1) if percent else limit
        if ill > most:
            yield f"{ill} of {len(members)} nodes of {scope} unhealthy"


def _zone(node: Obj) -> str:
    return str(node["metadata"].get("labels", {}).get(ZONE, ""))


def _long_unhealthy(node: Obj, now: float) -> bool:
    """Return whether it was NotReady, or a condition of the monitoring agent was False, long before the request."""
    since = [_since(one) for one in (node.get("status") or {}).get("conditions") or () if _is_unhealthy(one, node)]
    return any(now - begun.timestamp() > SLOW for begun in since)


def _is_unhealthy(condition: Obj, node: Obj) -> bool:
    if condition.get("type") == "Ready":
        return not is_ready(node)
    return str(condition.get("type", "")).endswith("Ready") and condition.get("status") == "False"


def _since(condition: Obj) -> datetime:
    text = condition.get("lastTransitionTime")
    return as_instant(text) if text else datetime.min.replace(tzinfo=UTC)
