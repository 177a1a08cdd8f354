"""Events of the emulator's own controllers, counted up instead of repeated, removed after an hour."""

from __future__ import annotations

from .objects import Obj, is_deleting, is_ready, name_of, namespace_of
from .store import Change, ChangeType, Key, key_of
from .world import World

_KNOWN = 4096


class EventRecorder:
    """Recorder of Events; it also removes the Events of all writers when they expire (`--event-ttl` of the API
    server).
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._known: dict[tuple[str, str, str], Key] = {}

    def observe(self, change: Change) -> None:
        """Start the clock of every new Event."""
        if change.resource == "events" and change.type is ChangeType.ADDED:
            key = change.key
            due = self._world.now() + self._world.settings.event_ttl
            self._world.timers.at(due, lambda: self._expire(key))

    def _expire(self, key: Key) -> None:
        self._world.store.remove("events", key)

    def record(self, about: Obj, reason: str, message: str, *, source: str, warning: bool = False) -> None:
        """Record one Event about an object; a repeated one is only counted. A terminating namespace takes no Events."""
        uid = about["metadata"].get("uid", name_of(about))
        known = self._known.get((uid, reason, message))
        if known is not None and self._world.change("events", known, self._count):
            return
        namespace = self._world.store.find("namespaces", namespace_of(about) or "default")
        if namespace is None or is_deleting(namespace):
            return
        event = self._event(about, reason, message, source=source, warning=warning)
        stored = self._world.create("events", event, event["metadata"]["namespace"])
        if len(self._known) >= _KNOWN:
            self._known.pop(next(iter(self._known)))
        self._known[(uid, reason, message)] = key_of(stored)

    def record_readiness(self, node: Obj) -> None:
        """Record the Event of a Node's Ready condition: of its kubelet, or of the node controller for a silent one."""
        reason, source = ("NodeReady", "kubelet") if is_ready(node) else ("NodeNotReady", "node-controller")
        self.record(node, reason, f"Node {name_of(node)} status is now: {reason}", source=source)

    def _count(self, event: Obj) -> None:
        event["count"] = int(event.get("count") or 1) + 1
        event["lastTimestamp"] = self._world.timestamp()

    def _event(self, about: Obj, reason: str, message: str, *, source: str, warning: bool) -> Obj:
        now = self._world.timestamp()
        involved = {
            "kind": about["kind"],
            "apiVersion": about["apiVersion"],
            "name": name_of(about),
            # events about nodes carry the node's name as uid, which is where `kubectl describe node` looks for them
            "uid": name_of(about) if about["kind"] == "Node" else about["metadata"].get("uid", ""),
        }
        namespace = namespace_of(about)
        if namespace:
            involved["namespace"] = namespace
        return {
            "metadata": {
                "name": f"{name_of(about)}.{self._world.random.getrandbits(64):016x}",
                "namespace": namespace or "default",
            },
            "involvedObject": involved,
            "reason": reason,
            "message": message,
            "type": "Warning" if warning else "Normal",
            "count": 1,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "source": {"component": source},
            "reportingComponent": source,
            "reportingInstance": "",
        }
