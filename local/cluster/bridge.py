"""Node bridge: nodes join, fail and are deleted as the instances of the cluster are.

It emulates three components: the kubelet that registers when an instance has booted and stops reporting when it stops,
the node lifecycle controller that notices, and the cloud node controller that deletes the Node of a terminated
instance. It decides nothing else: pods are handled elsewhere.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from copy import deepcopy
from dataclasses import dataclass, field

from local.cluster.errors import ApiError
from local.cluster.instances import (
    BOOTS,
    NEVER_JOIN,
    NEVER_RETURN,
    NODE_LABEL,
    NODE_TAINT,
    SOURCE_TEMPLATE,
    Instance,
    InstanceSource,
)
from local.cluster.nodes import NodeSpec, boot_after
from local.cluster.objects import Obj, condition_of, is_deleting, is_ready, name_of, uid_of
from local.cluster.registry import NodeRegistry

_log = logging.getLogger("leeward.local.cluster")
_SILENT = ("shutting-down", "terminated", "stopping", "stopped")
_GONE = ("shutting-down", "terminated")
_TEMPLATE = "k8s.io/cluster-autoscaler/node-template/"
_SETTLED = 10.0  # seconds without a change, after which every delay below is over
_SELDOM = 3  # times as long is the pause between two looks then: a look costs the local AWS 25 ms of CPU


@dataclass(frozen=True, slots=True, kw_only=True)
class BridgeSettings:
    """Seconds: from running to registered, from registered to Ready, from silence to NotReady, and to deletion; of a
    reboot.
    """

    boot_delay: float = 2.0
    ready_delay: float = 0.5
    notice_delay: float = 0.5
    removal_delay: float = 5.0
    reboot_delay: float = 3.0
    poll_interval: float = 0.5


@dataclass(slots=True)
class _Joined:
    """State that the bridge keeps of an instance whose node it registered."""

    node: str
    uid: str
    registered: float
    ready: bool = False
    silent_since: float | None = None
    boots: str = ""  # number of reboots, as its tag says
    rebooting_since: float | None = None


@dataclass(slots=True, kw_only=True)
class NodeBridge:
    """Node bridge. `poll` is synchronous and takes the time: a simulation can drive it, `BridgeThread` does so in real
    time.
    """

    nodes: NodeRegistry
    source: InstanceSource
    settings: BridgeSettings = field(default_factory=BridgeSettings)
    _running_since: dict[str, float] = field(default_factory=dict)
    _joined: dict[str, _Joined] = field(default_factory=dict)

    def poll(self, now: float) -> None:
        """Read the source once and act on the answer. Idempotent: acts on differences only."""
        self.apply(self.source.list_instances(), now)

    def apply(self, instances: list[Instance], now: float) -> None:
        """Update the nodes to match these instances at `now` (seconds since 1970)."""
        by_id = {instance["instanceId"]: instance for instance in instances}
        for instance_id, instance in by_id.items():
            if instance["state"] == "running":
                self._running(instance_id, instance, now)
            elif instance["state"] in _SILENT:
                self._running_since.pop(instance_id, None)
        for instance_id, joined in list(self._joined.items()):
            found = by_id.get(instance_id)
            state = found["state"] if found is not None else "terminated"
            if state in _SILENT:
                self._silent(instance_id, joined, now, gone=state in _GONE)

    def _running(self, instance_id: str, instance: Instance, now: float) -> None:
        since = self._running_since.setdefault(instance_id, now)
        joined = self._joined.get(instance_id)
        if joined is None:
            if now - since >= self.settings.boot_delay and NEVER_JOIN not in instance["tags"]:
                self._register(instance_id, instance, now)
            return
        if self._reboots(joined, instance, now):
            return
        if joined.silent_since is not None:  # started again after a stop: the same node comes back
            joined.silent_since, joined.ready, joined.registered = None, False, now
        if not joined.ready and now - joined.registered >= self.settings.ready_delay:
            joined.ready = True
            if self._node(joined) is not None:
                self.nodes.set_ready(joined.node, "True")

    def _reboots(self, joined: _Joined, instance: Instance, now: float) -> bool:
        """Return whether the instance is rebooting. Its kubelet is silent for a while, then reports another boot id,
        and conditions of a monitoring agent are gone.
        """
        boots = instance["tags"].get(BOOTS, "")
        if boots != joined.boots:
            joined.boots, joined.rebooting_since = boots, now
            if self._node(joined) is not None:
                self.nodes.set_ready(joined.node, "Unknown")
        if joined.rebooting_since is None:
            return False
        if now - joined.rebooting_since < self.settings.reboot_delay or NEVER_RETURN in instance["tags"]:
            return True
        joined.rebooting_since, node = None, self._node(joined)
        if node is not None:
            booted = deepcopy(node)
            booted["status"]["nodeInfo"]["bootID"] = boot_after(node)
            booted["status"]["conditions"] = [one for one in node["status"]["conditions"] if _of_kubelet(one)]
            self.nodes.write_status(booted)
            self.nodes.set_ready(joined.node, "True")
        return False

    def _register(self, instance_id: str, instance: Instance, now: float) -> None:
        present = self.nodes.of_instance(instance_id)
        if present is None:
            spec = node_spec(instance, name=self._free_name(instance), version=self.nodes.version)
            try:
                present = self.nodes.add(spec)
            except ApiError as refusal:
                _log.warning("instance %s cannot join: %s", instance_id, refusal)
                return
        boots = instance["tags"].get(BOOTS, "")
        joined = _Joined(
            node=name_of(present), uid=uid_of(present), registered=now, ready=is_ready(present), boots=boots
        )
        self._joined[instance_id] = joined

    def _free_name(self, instance: Instance) -> str:
        """Return the private DNS name, unless another instance's node still has it (emulators assign addresses
        twice).
        """
        name = instance["privateDnsName"]
        if not name or self.nodes.find(name) is not None:
            return instance["instanceId"]
        return name

    def _silent(self, instance_id: str, joined: _Joined, now: float, *, gone: bool) -> None:
        if joined.silent_since is None:
            joined.silent_since = now
        node = self._node(joined)
        if node is None:  # already deleted by another client
            if gone:
                del self._joined[instance_id]
            return
        silence = now - joined.silent_since
        ready = condition_of(node, "Ready")
        if silence >= self.settings.notice_delay and (ready or {}).get("status") != "Unknown":
            self.nodes.set_ready(joined.node, "Unknown")
        if gone and silence >= self.settings.removal_delay and not is_deleting(node):
            self.nodes.delete(joined.node)

    def _node(self, joined: _Joined) -> Obj | None:
        node = self.nodes.find(joined.node)
        return node if node is not None and uid_of(node) == joined.uid else None


def _of_kubelet(condition: Obj) -> bool:
    return condition["type"] == "Ready" or str(condition["type"]).endswith("Pressure")


def node_spec(instance: Instance, *, name: str, version: str) -> NodeSpec:
    """Return the node that this instance's kubelet registers: labels and taints as EKS bootstraps them."""
    return NodeSpec(
        name=name,
        zone=instance["zone"],
        instance_id=instance["instanceId"],
        instance_type=instance["instanceType"] or "m5.large",
        labels=_labels(instance),
        taints=tuple(_taints(instance["tags"])),
        ready=False,
        version=version,
    )


def _labels(instance: Instance) -> dict[str, str]:
    tags = instance["tags"]
    prefix = f"{_TEMPLATE}label/"
    labels = {
        key.removeprefix(start): value
        for start in (prefix, NODE_LABEL)
        for key, value in tags.items()
        if key.startswith(start)
    }
    group = tags.get("eks:nodegroup-name")
    if not group:
        return labels
    labels["eks.amazonaws.com/nodegroup"] = group
    labels["eks.amazonaws.com/capacityType"] = "SPOT" if instance["lifecycle"] == "spot" else "ON_DEMAND"
    known = {
        "nodegroup-image": instance.get("imageId", ""),
        "sourceLaunchTemplateId": tags.get("aws:ec2launchtemplate:id", ""),
        "sourceLaunchTemplateVersion": tags.get("aws:ec2launchtemplate:version", ""),
    }
    if SOURCE_TEMPLATE in tags:
        known["sourceLaunchTemplateId"], _, known["sourceLaunchTemplateVersion"] = tags[SOURCE_TEMPLATE].partition(":")
    return {**labels, **{f"eks.amazonaws.com/{key}": value for key, value in known.items() if value}}


def _taints(tags: dict[str, str]) -> list[Obj]:
    """Return the taints of the tags `…/node-template/taint/KEY` = `VALUE:EFFECT`, where the group propagates them to
    its instances; those that the local EKS puts on instances of a node group with taints.
    """
    found = []
    for prefix in (f"{_TEMPLATE}taint/", NODE_TAINT):
        for key, text in sorted(tags.items()):
            if key.startswith(prefix):
                value, _, effect = text.rpartition(":")
                found.append({"key": key.removeprefix(prefix), "value": value, "effect": effect})
    return found


class BridgeThread:
    """Thread that polls until stopped. The source is read outside of the model's lock; a failed read is retried."""

    def __init__(self, bridge: NodeBridge, *, lock: AbstractContextManager[object], clock: Callable[[], float]) -> None:
        self._bridge = bridge
        self._lock = lock
        self._clock = clock
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="node-bridge", daemon=True)
        self._failing = False
        self._seen: list[Instance] = []
        self._changed = 0.0

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread and wait for a poll in progress. Idempotent."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(timeout=15)

    def _run(self) -> None:
        while not self._stop.is_set():
            self._poll()
            self._stop.wait(self._pause())

    def _pause(self) -> float:
        """Return the seconds until the next look."""
        settled = self._clock() - self._changed > _SETTLED
        return self._bridge.settings.poll_interval * (_SELDOM if settled else 1)

    def _poll(self) -> None:
        try:
            instances = self._bridge.source.list_instances()
            with self._lock:
                self._bridge.apply(instances, self._clock())
            if instances != self._seen:
                self._seen, self._changed = instances, self._clock()
        except Exception as failure:  # the nodes stay as they are until source and API server answer again
            if not self._failing:
                _log.warning("the nodes stay as they are: %s", failure)
            self._failing = True
        else:
            self._failing = False
