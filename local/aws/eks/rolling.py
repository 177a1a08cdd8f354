"""Emulation of one update of a managed node group: surge, cordon and drain one after the other, sizes as before.

Rules from "Managed node update behavior" in the EKS user guide, simplified: one node more than desired, and
``maxUnavailable`` old ones at a time. When a drain takes too long the update fails with PodEvictionFailure, new nodes
stay, and the rest is left unchanged; with ``force`` the pods are deleted then.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from local.aws.autoscaling.engine import Engine, user_request_cause
from local.aws.autoscaling.shape import counted

STEP = 0.1
NODE_SECONDS = 60.0  # until a new instance is in service and its node is there


class UpdateFailed(Exception):
    """Failure of an update. `code` is EKS's; `about`: the nodes or instances."""

    def __init__(self, code: str, message: str, about: list[str]) -> None:
        super().__init__(message)
        self.code, self.about = code, about


class Drains(Protocol):
    """Interface through which a node's pods are evicted."""

    def of_instance(self, instance: str) -> str | None: ...
    def cordon(self, node: str) -> None: ...
    def empty(self, node: str, *, force: bool) -> bool: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Rolling:
    """Update of one group to another version. ``nodes`` None: no cluster is known, so no node holds pods.

    ``size``: desired and maximum of the node group's own configuration, which the group may exceed since a failed
    update.
    """

    engine: Engine
    group: Any
    nodes: Drains | None
    size: tuple[int, int]
    parallel: int
    force: bool
    patience: float  # seconds for one node's drain
    lock: AbstractContextManager[Any]

    def play(self) -> None:
        """Carry out the update to its end. Raises ``UpdateFailed``."""
        with self.lock:
            old = [state for state in counted(self.group) if not self._is_new(state)]
            desired, maximum = self.size
            self.group.max_size = max(self.group.max_size, desired + 1)
            self.group.desired_capacity = max(self.group.desired_capacity, desired + 1)
            self.engine.reconcile(self.group)
        self._ready(desired + 1)
        while old:
            batch, old = old[: self.parallel], old[self.parallel :]
            self._empty([state.instance.id for state in batch])
            for state in batch:
                self._end(state, decrement=not old and state is batch[-1])
            self._ready(desired + bool(old))
        with self.lock:
            self.group.max_size = maximum

    def _is_new(self, state: Any) -> bool:
        return str((state.launch_template or {}).get("Version")) == str(self.group.launch_template_version)

    def _end(self, state: Any, *, decrement: bool) -> None:
        """Terminate one old instance; the last one decrements the size by the surge."""
        with self.lock:
            size = self.group.desired_capacity
            self.group.desired_capacity = size - decrement
            if state in counted(self.group):
                cause = user_request_cause(state.instance.id, size, size - decrement)
                self.engine.begin_termination(self.group, state, cause)
            self.engine.reconcile(self.group)

    def _empty(self, instances: list[str]) -> None:
        nodes = self.nodes
        if nodes is None:
            return
        names = [name for name in map(nodes.of_instance, instances) if name is not None]
        for name in names:
            nodes.cordon(name)
        late = time.monotonic() + self.patience
        left = names
        while left := [name for name in left if not nodes.empty(name, force=self.force and time.monotonic() > late)]:
            if time.monotonic() > late and not self.force:
                message = "Reached max retries while trying to evict pods from nodes in node group"
                raise UpdateFailed("PodEvictionFailure", message, left)
            time.sleep(STEP)

    def _ready(self, size: int) -> None:
        """Wait until `size` members are in service and, where there is a cluster, have a node."""
        self._until(lambda: self._in_service() >= size)
        nodes = self.nodes
        if nodes is not None:
            with self.lock:
                members = [state.instance.id for state in counted(self.group)]
            self._until(lambda: all(nodes.of_instance(member) for member in members))

    def _in_service(self) -> int:
        with self.lock:
            return sum(state.lifecycle_state == "InService" for state in counted(self.group))

    def _until(self, there: Callable[[], bool]) -> None:
        late = time.monotonic() + NODE_SECONDS
        while not there():
            if time.monotonic() > late:
                raise UpdateFailed("NodeCreationFailure", "Instances failed to join the kubernetes cluster", [])
            time.sleep(STEP)
