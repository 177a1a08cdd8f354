"""Work of fn interruption itself on a storm of N warnings, in a process of its own: `python -m bench.storm_handler DIR
N`.

The product's code from the batch of queue records on, its botocore and its Kubernetes client; batches of a hundred, one
after the other, as one instance of the function would process them. Prints one JSON line.
"""

import base64
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import urllib3

from bench.memory import peak_megabytes
from bench.storm_world import ACCOUNT, CLUSTER, GROUP, READY, REGION, instance_id
from leeward.adapters.aws.access import OwnCredentials
from leeward.adapters.aws.clients import AwsClients
from leeward.adapters.aws.clusters import ClusterEntry
from leeward.adapters.kubernetes.api import ClusterApi
from leeward.adapters.kubernetes.client import ClusterClient, Endpoint
from leeward.adapters.settings import KubernetesAccess, ServedCluster, Settings
from leeward.adapters.wiring import SystemClock, build
from leeward.interruption.batch import Record, process_batch
from leeward.policy.document import ClusterPolicies, GroupSelector, NodePolicy
from leeward.policy.document import ClusterSettings as Switches
from leeward.ports import Ports
from leeward.ports.kubernetes import Kubernetes
from leeward.time_budget import TimeBudget

BATCH = 100


class KubeConfig:
    """`KubeConfig` of the emulated cluster for its administrator: no STS is available to verify another token."""

    def __init__(self, directory: Path) -> None:
        raw = json.loads((directory / "endpoint.json").read_text())
        ca = base64.b64decode(raw["certificateAuthorityData"]).decode()
        self._endpoint = Endpoint(url=raw["endpoint"], ca=ca)
        self._token = (directory / "admin-token").read_text().strip()

    def endpoint(self, *, fresh: bool = False) -> Endpoint:
        """Return the API server's endpoint."""
        del fresh
        return self._endpoint

    def token(self, *, fresh: bool = False) -> str:
        """Return a token that never expires."""
        del fresh
        return self._token


class OneCluster:
    """`ports.kubernetes.Clusters`."""

    def __init__(self, api: ClusterApi) -> None:
        self._api = api
        policy = NodePolicy(name=GROUP, selector=GroupSelector(groups=(GROUP,)))
        self._policies = ClusterPolicies(settings=Switches(name=CLUSTER), policies=(policy,))

    def names(self) -> tuple[str, ...]:
        """Return the name of the only cluster."""
        return (CLUSTER,)

    def policies(self, _cluster: str) -> ClusterPolicies:
        """Return the policies, cached as in a warm function."""
        return self._policies

    def kubernetes(self, _cluster: str, *, within: TimeBudget | None = None) -> Kubernetes:
        """Return the cluster's API."""
        return self._api if within is None else self._api.within(within)


def ports(directory: Path) -> Ports:
    """Return the product's adapters over the storm's environment."""
    os.environ |= {
        "AWS_ENDPOINT_URL": json.loads((directory / READY).read_text())["aws"],
        "AWS_ACCESS_KEY_ID": "storm",
        "AWS_SECRET_ACCESS_KEY": "storm",
    }
    clients, clock = AwsClients(REGION), SystemClock()
    settings = Settings(
        clusters=(ServedCluster(name=CLUSTER, region=REGION, account=ACCOUNT),),
        deployment="bench",
        table_name="leeward",
        state_machine_arn=f"arn:aws:states:{REGION}:{ACCOUNT}:stateMachine:leeward-node-termination",
        queue_arn=f"arn:aws:sqs:{REGION}:{ACCOUNT}:leeward-interruption",
        dead_letter_queue_url=f"https://sqs.{REGION}.amazonaws.com/{ACCOUNT}/leeward-interruption-dead-letters",
        policy_prefix="/leeward",
        kubernetes_access=KubernetesAccess.ACT,
    )
    entry = ClusterEntry(access=lambda _: OwnCredentials(clients), event_lost=print)
    real = build(settings, clients, clock, entry=entry, say=print)
    return replace(real, clusters=OneCluster(ClusterApi(ClusterClient(CLUSTER, KubeConfig(directory), clock))))


def warnings(count: int) -> Sequence[Record]:
    """Return one spot warning an instance, as SQS delivers it."""
    now = datetime.now(UTC)
    return [Record(id=f"m-{n}", body=_body(n, now), received=now, receipt=f"r-{n}") for n in range(count)]


def _body(number: int, now: datetime) -> str:
    envelope = {
        "version": "0",
        "id": f"warning-{number}",
        "detail-type": "EC2 Spot Instance Interruption Warning",
        "source": "aws.ec2",
        "account": ACCOUNT,
        "region": REGION,
        "time": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "resources": [],
        "detail": {"instance-id": instance_id(number), "instance-action": "terminate"},
    }
    return json.dumps(envelope)


def count_calls() -> Counter[str]:
    """Count requests from now on, by their target: both clients send theirs through urllib3."""
    counts: Counter[str] = Counter()
    send = urllib3.connectionpool.HTTPConnectionPool.urlopen

    def counted(pool: Any, method: str, url: str, *arguments: Any, **more: Any) -> Any:
        counts["kubernetes" if pool.scheme == "https" else "aws"] += 1
        return send(pool, method, url, *arguments, **more)

    urllib3.connectionpool.HTTPConnectionPool.urlopen = counted  # type: ignore[assignment]
    return counts


def main(directory: Path, count: int) -> None:
    """Warm up on one warning, then run the storm."""
    known = ports(directory)
    records = warnings(count + 1)
    process_batch(records[count:], known)
    before = peak_megabytes()
    counts, cpu, wall = count_calls(), time.process_time(), time.perf_counter()
    tainted, failed = 0, 0
    for first in range(0, count, BATCH):
        result = process_batch(records[first : min(first + BATCH, count)], known)
        tainted, failed = tainted + len(result.tainted), failed + len(result.failures)
    print(
        json.dumps(
            {
                "cpu": time.process_time() - cpu,
                "wall": time.perf_counter() - wall,
                "tainted": tainted,
                "failed": failed,
                "aws": counts["aws"],
                "kubernetes": counts["kubernetes"],
                "megabytes": peak_megabytes(),
                "growth": peak_megabytes() - before,
            }
        )
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
