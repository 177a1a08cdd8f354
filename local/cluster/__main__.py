"""`python -m local.cluster`: one emulated EKS cluster, or a given one, until SIGTERM or SIGINT.

Writes DIR/kubeconfig, DIR/ca.crt, DIR/admin-token and DIR/endpoint.json, then prints one line.
"""

from __future__ import annotations

import argparse
import logging
import signal
import sys
import threading
import time
from pathlib import Path
from types import FrameType

from urllib3.exceptions import HTTPError

from local.cluster.authn import Identify
from local.cluster.bridge import BridgeSettings, BridgeThread, NodeBridge
from local.cluster.errors import ApiError
from local.cluster.https import ServerDidNotStart
from local.cluster.instances import Ec2Instances
from local.cluster.registry import ModelNodes, NodeRegistry
from local.cluster.server import ClusterServer
from local.cluster.settings import ClusterSettings
from local.cluster.sts import sts_identify
from local.foreign.contents import NotEmptyError
from local.foreign.kubeconfig import KubeconfigError
from local.foreign.server import ForeignCluster


def main(arguments: list[str] | None = None) -> int:
    """Run until a signal; return the exit code."""
    options = _parser().parse_args(arguments)
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s")
    stop = threading.Event()

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, on_signal)
    try:
        return _serve(options, stop)
    except (ServerDidNotStart, KubeconfigError, NotEmptyError, ApiError, HTTPError) as failure:
        print(failure, file=sys.stderr)
        return 1


def _serve(options: argparse.Namespace, stop: threading.Event) -> int:
    with _foreign(options) if options.kubeconfig else _server(options) as server:
        nodes = server.nodes if isinstance(server, ForeignCluster) else ModelNodes(server.model)
        bridge = _bridge(options, nodes, server.lock)
        if bridge is not None:
            bridge.start()
        server.write_files(options.dir)
        print(f"cluster {options.name} ready at {server.url}, kubeconfig {options.dir / 'kubeconfig'}", flush=True)
        stop.wait()
        if bridge is not None:
            bridge.stop()
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m local.cluster", description="An emulated EKS cluster.")
    parser.add_argument("--name", default="demo", help="the cluster's name, also in its instances' tags")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--dir", type=Path, required=True, help="where kubeconfig and the other files go")
    parser.add_argument("--kubeconfig", type=Path, help="an empty cluster to use in place of an emulated one")
    parser.add_argument("--sts-endpoint", help="where EKS tokens are verified; none: they are refused")
    parser.add_argument("--aws-endpoint", help="where instances are listed; none: no nodes come by themselves")
    parser.add_argument("--region", default="us-east-1")
    parser.add_argument("--seed", type=int, default=0)
    for name, default, text in (
        ("boot-delay", 2.0, "seconds from a running instance to its Node"),
        ("removal-delay", 5.0, "seconds from a terminated instance to the deletion of its Node"),
        ("poll-interval", 0.5, "seconds between two looks at the instances"),
        ("pod-start", 1.0, "seconds from a bound pod to a ready one"),
        ("termination-scale", 0.1, "share of its grace period that a pod needs to stop"),
        ("pod-gc-quarantine", 1.0, "seconds that the pods of a missing node stay; a real cluster takes 40 to 60"),
    ):
        parser.add_argument(f"--{name}", type=float, default=default, help=f"{text} (default {default})")
    return parser


def _server(options: argparse.Namespace) -> ClusterServer:
    settings = ClusterSettings(
        pod_start=options.pod_start,
        termination_scale=options.termination_scale,
        pod_gc_period=0,
        node_leases=True,
        pod_gc_quarantine=options.pod_gc_quarantine,
    )
    return ClusterServer(
        name=options.name,
        host=options.host,
        port=options.port,
        seed=options.seed,
        settings=settings,
        identify=_identify(options),
    )


def _foreign(options: argparse.Namespace) -> ForeignCluster:
    return ForeignCluster(
        name=options.name,
        kubeconfig=options.kubeconfig,
        port=options.port,
        identify=_identify(options),
        pod_start=options.pod_start,
        scale=options.termination_scale,
    )


def _identify(options: argparse.Namespace) -> Identify | None:
    return sts_identify(options.sts_endpoint) if options.sts_endpoint else None


def _bridge(options: argparse.Namespace, nodes: NodeRegistry, lock: threading.RLock) -> BridgeThread | None:
    if not options.aws_endpoint:
        return None
    settings = BridgeSettings(
        boot_delay=options.boot_delay,
        removal_delay=options.removal_delay,
        poll_interval=options.poll_interval,
    )
    source = Ec2Instances(options.name, endpoint_url=options.aws_endpoint, region=options.region)
    return BridgeThread(NodeBridge(nodes=nodes, source=source, settings=settings), lock=lock, clock=time.time)


if __name__ == "__main__":
    raise SystemExit(main())
