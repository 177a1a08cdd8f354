"""Annotations of pods, written in the background while a drain evicts.

They are written through the status subresource, as the kubelet writes a pod's status: it takes labels, annotations and
status alone. The verb `patch` on `pods` would change images, which runs any program as any service account."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from leeward.adapters.kubernetes import bodies
from leeward.adapters.kubernetes.answers import ApiRequest
from leeward.adapters.kubernetes.workloads import MERGE_PATCH
from leeward.errors import LeewardError
from leeward.model.counts import count_of

if TYPE_CHECKING:
    from leeward.adapters.kubernetes.client import ClusterClient
    from leeward.model.pod import Pod

SECONDS = 2.0  # for all pods of one call together
WORKERS = 8  # of the client's 16 connections: evictions are sent at the same time
REST = timedelta(seconds=30)  # after a failure, so that a missing permission or a slow server costs one call a step
GONE = frozenset({404, 409, 422})  # 422: the uid of the patch is not that of the pod


class PodAnnotations:
    """Background writer of one cluster. `lost` is called with one sentence for each call that could not write all."""

    def __init__(self, lost: Callable[[str], None]) -> None:
        self._lost = lost
        self._rests_until: datetime | None = None

    def write(
        self, client: ClusterClient, pods: Sequence[Pod], annotations: Mapping[str, str | None]
    ) -> Callable[[], None]:
        """Send one PATCH for each pod and return the function that waits for the answers. Idempotent by content, with
        the uid as precondition. The first failure ends the call: later pods are not tried.
        """
        if not pods or (self._rests_until is not None and client.now() < self._rests_until):
            return _nothing
        from concurrent.futures import ThreadPoolExecutor  # late: few drains annotate

        bounded, failures = client.for_seconds(SECONDS), list[str]()

        def write(pod: Pod) -> None:
            failure = "" if failures else _failure(bounded, pod, annotations)
            if failure:
                failures.append(failure)

        pool = ThreadPoolExecutor(max_workers=min(WORKERS, len(pods)))
        writes = [pool.submit(write, pod) for pod in pods]

        def wait() -> None:
            pool.shutdown()
            for done in writes:
                done.result()
            if failures:
                self._rests_until = client.now() + REST
                self._lost(
                    f"{', '.join(annotations)} is not written on all of {count_of(len(pods), 'pod')}: {failures[0]}"
                )

        return wait


def _failure(client: ClusterClient, pod: Pod, annotations: Mapping[str, str | None]) -> str:
    """Annotate one pod; return why that failed, or an empty string."""
    request = ApiRequest(
        verb="patch",
        resource="pods/status",
        path=f"{bodies.pod_path(pod)}/status",
        method="PATCH",
        body=bodies.pod_annotations(pod, annotations),
        content_type=MERGE_PATCH,
        once=True,
        read_seconds=SECONDS,
    )
    try:
        answer = client.send(request)
    except LeewardError as error:
        return str(error)
    return "" if answer.ok or answer.status in GONE else f"{pod.key}: {answer.message} (HTTP {answer.status})"


def _nothing() -> None:
    """Wait for nothing."""
