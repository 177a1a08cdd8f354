"""Reading 100,000 pods on 5,000 nodes over HTTP, from the API server's pages to the joined snapshot: peak memory of the
process and its time. Target: the memory of the functions that plan (fn disruption-planner, disrupt, upgrade).

A tenth of that is read twice, in pages and in one answer (as beside `resourceVersion=0`, where a real API server
ignores the limit): the memory in pages must be at most half. The server is a process of its own; TLS is not in the
figures, gzip is."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from bench.api_server import serving
from bench.memory import peak_megabytes

if TYPE_CHECKING:  # what the reading process imports counts as its own
    from leeward.adapters.kubernetes.answers import ApiRequest
    from leeward.adapters.kubernetes.api import ClusterApi
    from leeward.adapters.kubernetes.client import ClusterClient, Endpoint

PODS, NODES, PART = 100_000, 5_000, 10
MEGABYTES = 1_769  # memory of the functions that read whole clusters (infra/disruption.py, infra/upgrade.py)
RATIO = 0.5
PAGED, UNPAGED = "paged", "unpaged"
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Figures of one reading process: megabytes before and at peak, seconds of wall clock and of CPU, and the amount
    read.
    """

    before: int
    peak: int
    seconds: float
    cpu: float
    read: list[int]

    @property
    def grown(self) -> int:
        """Megabytes that the reading took."""
        return self.peak - self.before


def run(nodes: int = NODES, pods: int = PODS) -> bool:
    """Print all figures; return whether they meet their targets."""
    whole = _measured(pods, nodes, PAGED)
    print(f"{pods:,} pods on {nodes:,} nodes over HTTP, in pages: peak {whole.peak} MB (target {MEGABYTES} MB),")
    print(f"  {whole.before} MB of it before; {whole.cpu:.1f} s of CPU, {whole.seconds:.1f} s with the server's work")
    paged, unpaged = (_measured(pods // PART, nodes // PART, how) for how in (PAGED, UNPAGED))
    ratio = paged.grown / max(unpaged.grown, 1)
    print(f"{pods // PART:,} pods in pages against one answer: {paged.grown} MB against {unpaged.grown} MB,")
    print(f"  {ratio:.2f} x (target {RATIO} x); CPU {paged.cpu:.2f} s against {unpaged.cpu:.2f} s")
    return whole.peak <= MEGABYTES and ratio <= RATIO


def _measured(pods: int, nodes: int, how: str) -> Measured:
    with serving(pods, nodes) as url:
        command = [sys.executable, "-m", "bench.pods", url, str(nodes), how]
        answer = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found = Measured(**json.loads(answer.stdout))
    if found.read != [nodes, pods]:
        raise AssertionError(f"read {found.read}, expected {[nodes, pods]}")
    return found


def api_of(url: str, how: str = PAGED) -> "ClusterApi":
    """Return the real client of the server."""
    from leeward.adapters.kubernetes.api import ClusterApi
    from leeward.adapters.kubernetes.client import ClusterClient
    from leeward.adapters.wiring import SystemClock

    client = ClusterClient("blue", _KubeConfig(url), SystemClock())
    if how == UNPAGED:
        setattr(client, "list", _in_one_answer(client))  # noqa: B010 - a method is replaced
    return ClusterApi(client)


class _KubeConfig:
    def __init__(self, url: str) -> None:
        self._url = url

    def endpoint(self, **_: bool) -> "Endpoint":
        from leeward.adapters.kubernetes.client import Endpoint

        return Endpoint(url=self._url)

    def token(self, **_: bool) -> str:
        return "token"


def _in_one_answer(client: "ClusterClient") -> Callable[..., tuple[Any, ...]]:
    def read(request: "ApiRequest", parse: Callable[[Mapping[str, Any]], T]) -> tuple[T, ...]:
        body = client.ask(replace(request, query={**request.query, "resourceVersion": "0"}))
        return tuple(parse(raw) for raw in body["items"])

    return read


def in_process(url: str, nodes: int, how: str) -> dict[str, Any]:
    """Measure in this process and return `Measured` as JSON."""
    import leeward.upgrade.handler  # noqa: F401 - a planner's handler, for what it takes by itself
    from bench.snapshot import NOW, ports_of
    from leeward.snapshot.gather import gather

    ports = ports_of(api_of(url, how), nodes)
    before, began, cpu = peak_megabytes(), time.perf_counter(), time.process_time()
    found = gather(ports, "blue", NOW)
    return {
        "before": before,
        "peak": peak_megabytes(),
        "seconds": time.perf_counter() - began,
        "cpu": time.process_time() - cpu,
        "read": [len(found.nodes), len(found.pod_specs)],
    }


if __name__ == "__main__":
    print(json.dumps(in_process(sys.argv[1], int(sys.argv[2]), sys.argv[3])))
