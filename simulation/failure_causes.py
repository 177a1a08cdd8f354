"""Judgement of the text with which an upgrade fails: what it names has to be what the world shows.

A zone that it names has lacked capacity or addresses: where LaunchInstances does not serve a group, its desired size
does, unless the group chose the other zones that the text names. An instance or a node that it names has ended,
has not joined or is not Ready. A pod that it names may not leave. A template version that it names in place of the
upgrade's is the one that the group launches.
"""

import re
from collections.abc import Iterator

from leeward.policy.document import DrainPolicy
from local.cluster.objects import Obj, is_ready, name_of
from simulation.drained import evictable_pods, node_behind
from simulation.endings import Ending
from simulation.node_instances import instance_behind
from simulation.view import WorldView

CREATION, EVICTION, PREFLIGHT = "NodeCreationFailure", "PodEvictionFailure", "PreflightBlocked"
JUDGED = (CREATION, EVICTION)
NO_LAUNCH = re.compile(r"([a-z]{2}(?:-[a-z]+)+-\d[a-z]): no new node could be launched: ([^;]*)")
ELSEWHERE = re.compile(r"its desired size was raised, and the group launched in ([a-z]{2}-[a-z0-9, -]+\d[a-z])")
NEW_INSTANCE = re.compile(r"(i-[0-9a-f]{17}) in [a-z0-9-]+: ")
NEW_NODE = re.compile(r"(node-i-[0-9a-f]{17}): (?:joined without|not Ready)")
INSTEAD = re.compile(r"launches (\S+) version (\d+) and not ")
STAYING = re.compile(r"([a-z0-9-]+/[a-z0-9-]+) has not left in")
MOVED = re.compile(r"expected (ami-[0-9a-f]{17}), for which the upgrade was started: it has moved")
SEARCHED = 1800.0  # seconds: a launch that failed so long ago may still be the reason
OF_A_NODE = 60  # addresses of two interfaces of the largest type
SIZES = ("MaxSize", "max size", "Launch is suspended")  # reasons of the group itself
ALWAYS_FREE = 300.0  # seconds: a pod whose budgets allow its eviction for longer is not held by them


def false_causes(ending: Ending, free: dict[str, float], view: WorldView) -> Iterator[str]:
    """Yield what the text names and the world does not show. `free`: pod -> since when its budgets allow its
    eviction.
    """
    text, named = ending.cause, False
    for zone, reason in NO_LAUNCH.findall(text):
        named = True
        if not _lacked(zone, reason, ending, view):
            yield f"{zone} lacked nothing, and the failure says: {reason.strip()[:120]}"
    for instance in NEW_INSTANCE.findall(text):
        named = True
        node = node_behind(instance, view)
        if view.running(instance) and node is not None and is_ready(node):
            yield f"{instance} runs and its node is Ready"
    for name in NEW_NODE.findall(text):
        named = True
        if (found := view.cluster.store.find("nodes", name)) is not None and is_ready(found) and "labels" not in text:
            yield f"{name} is Ready"
    yield from _not_launched(ending, view)
    for pod in STAYING.findall(text):
        named = True
        if pod in free and view.now - free[pod] > ALWAYS_FREE:
            yield f"{pod} may be evicted for {view.now - free[pod]:.0f} s"
    if not named and not _names_an_object(text, view):
        yield f"it names no zone, instance, node or pod: {text[:160]}"


def _not_launched(ending: Ending, view: WorldView) -> Iterator[str]:
    for name, version in INSTEAD.findall(ending.cause):
        if (launched := view.groups[ending.group].launch.template) is None or launched.version != version:
            yield f"the group launches {launched}, not {name} version {version}"


def launched_elsewhere(ending: Ending, view: WorldView) -> bool:
    """Return whether the group, whose desired size was raised, has launched in the other zones that the text names."""
    named, group = ELSEWHERE.search(ending.cause), view.groups.get(ending.group)
    if named is None or group is None:
        return False
    zones = set(named[1].split(", "))
    return zones <= {one.zone for one in group.instances} and zones.isdisjoint(
        zone for zone, _ in NO_LAUNCH.findall(ending.cause)
    )


def superseded(ending: Ending, view: WorldView) -> bool:
    """Return whether a policy started the upgrade for an image that the group does not launch any more."""
    moved, launched = MOVED.search(ending.cause), view.launched_images.get(ending.group)
    return moved is not None and launched is not None and launched != moved[1]


def held_for_good(ending: Ending, view: WorldView) -> bool:
    """Return whether a start after all troubles could not end well: what its failure names can never come or leave."""
    if ending.state == CREATION:
        full = [zone for zone, _ in NO_LAUNCH.findall(ending.cause) if view.free_addresses(zone) < OF_A_NODE]
        return bool(full) or view.is_bad(ending.group) or launched_elsewhere(ending, view)
    if ending.state == EVICTION:
        pods, group = set(STAYING.findall(ending.cause)), view.groups[ending.group]
        policy = view.policies.policy_of(group)
        drain = DrainPolicy() if policy is None else policy.drain
        nodes = [node for node in view.cluster.store.each("nodes") if _holds(node, pods, view)]
        free = {pod for node in nodes for pod in evictable_pods(node, drain, view)}
        return not pods or not pods <= free
    return False


def _lacked(zone: str, reason: str, ending: Ending, view: WorldView) -> bool:
    """Return whether nothing could be launched in the zone: for its capacity, the group's sizes or the group's choice
    of zones.
    """
    of_group = any(words in reason for words in SIZES) or launched_elsewhere(ending, view)
    return of_group or _was_short(zone, ending.began - SEARCHED, view)


def _was_short(zone: str, since: float, view: WorldView) -> bool:
    """Return whether a launch in the zone has failed since then, or its subnet is full: of nodes, or of others."""
    crowd = view.crowded.get(zone)
    if view.free_addresses(zone) < OF_A_NODE:
        return True
    return view.short_zones.get(zone, 0.0) >= since or (crowd is not None and crowd.until >= since)


def _holds(node: Obj, pods: set[str], view: WorldView) -> bool:
    there = view.cluster.store.pods_on(name_of(node))
    return any(f"{pod['metadata']['namespace']}/{name_of(pod)}" in pods for pod in there)


def _names_an_object(text: str, view: WorldView) -> bool:
    """Return whether a node or an instance of the world stands in the text, or the group's launch template."""
    if "launch template" in text or any(
        name_of(node) in text or instance_behind(node) in text for node in view.cluster.store.each("nodes")
    ):
        return True
    return any(word.startswith("i-") for word in re.findall(r"[\w-]+", text))
