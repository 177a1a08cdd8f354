"""Settings of the emulated cluster's speed and size."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSettings:
    """Settings of a cluster; all durations in seconds of the model's clock.

    `termination_scale` shortens the time that a pod needs to stop (not its deletionTimestamp); a pod annotated
    `local.leeward.dev/ignore-sigterm` always uses its whole grace period. `volume_attach` and `volume_detach` are the
    times that a volume needs to be attached to a node and to be detached after its last pod; where no kubelet is left
    to unmount it, `force_detach` (maxWaitForUnmountDuration of the attach-detach controller). The pods of a deleted
    Node object stay until the first pass of the pod garbage collector, one every `pod_gc_period`, after
    `pod_gc_quarantine`. For `start_window` after its start a server knows no roles. `node_leases`: nodes have Leases
    and an Event about their registration, which nothing but kubectl describe reads.
    """

    pod_start: float = 1.0
    pod_gc_period: float = 20.0
    pod_gc_quarantine: float = 40.0
    termination_scale: float = 1.0
    volume_attach: float = 2.0
    volume_detach: float = 5.0
    force_detach: float = 360.0
    start_window: float = 0.0
    node_leases: bool = False
    event_ttl: float = 3600.0
    version: str = "v1.36.2"
    watch_log: int = 10_000
    history: int = 200_000


DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"

IGNORE_SIGTERM = "local.leeward.dev/ignore-sigterm"
NEVER_READY = "local.leeward.dev/never-ready"
START_DELAY = "local.leeward.dev/start-delay"
RUN_SECONDS = "local.leeward.dev/run-seconds"  # how long the pod's containers run until they end by themselves
EXIT_CODE = "local.leeward.dev/exit-code"  # their exit code; 0 by default
