"""Environment of a storm's handler, in a process of its own: an emulated cluster of N nodes, and as much of AWS as one
batch of spot warnings calls, answered in AWS's own formats.

`python -m bench.storm_world DIR N` writes the files that a client needs into DIR and serves until SIGTERM. The answers
are prepared or cheap, so that the handler never waits for work that would be AWS's.
"""

import json
import signal
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs

from leeward.model import well_known
from local.cluster.nodes import NodeSpec
from local.cluster.server import ClusterServer
from local.cluster.settings import ClusterSettings

CLUSTER, GROUP, REGION, ACCOUNT = "storm", "web", "us-east-1", "111122223333"
ZONES = ("us-east-1a", "us-east-1b", "us-east-1c")
READY = "ready.json"
_EC2 = "http://ec2.amazonaws.com/doc/2016-11-15/"
_AUTOSCALING = "http://autoscaling.amazonaws.com/doc/2011-01-01/"


def instance_id(number: int) -> str:
    """Return `i-` and seventeen digits, as EC2 does."""
    return f"i-{number:017x}"


def zone_of(number: int) -> str:
    """Return the zone of a node; nodes are assigned to the zones in turn."""
    return ZONES[number % len(ZONES)]


class CannedAws:
    """Canned answers by action. DynamoDB keeps no items: in one storm every claim is the first of its instance."""

    def __init__(self, count: int) -> None:
        self._numbers = {instance_id(number): number for number in range(count)}
        self._group = _group(count)

    def answer(self, target: str, body: bytes) -> tuple[str, bytes]:
        """Return (content type, body) for a JSON service's `X-Amz-Target` or a query service's form."""
        if target:
            return "application/x-amz-json-1.0", json.dumps(self._json(target.rsplit(".", 1)[-1], body)).encode()
        form = parse_qs(body.decode())
        action = form["Action"][0]
        if action == "DescribeInstances":
            wanted = [values[0] for name, values in form.items() if name.startswith("Filter.1.Value")]
            return "text/xml", self._instances(wanted).encode()
        if action == "DescribeAutoScalingGroups":
            return "text/xml", self._group.encode()
        raise NotImplementedError(action)

    def _json(self, action: str, body: bytes) -> object:
        if action == "StartExecution":
            name = json.loads(body)["name"]
            return {"executionArn": f"arn:aws:states:{REGION}:{ACCOUNT}:execution:m:{name}", "startDate": 1772366400.0}
        if action == "PutItem":
            return {}
        if action == "UpdateItem":  # a shortage of spot capacity that is remembered
            return {"Attributes": {"pk": {"S": f"reservations#{CLUSTER}"}}}
        raise NotImplementedError(action)

    def _instances(self, wanted: list[str]) -> str:
        items = "".join(_instance(name, self._numbers[name]) for name in wanted if name in self._numbers)
        return (
            f'<DescribeInstancesResponse xmlns="{_EC2}"><reservationSet><item><instancesSet>{items}</instancesSet>'
            "</item></reservationSet></DescribeInstancesResponse>"
        )


def _instance(name: str, number: int) -> str:
    tags = {well_known.GROUP_TAG: GROUP, f"{well_known.CLUSTER_TAG_PREFIX}{CLUSTER}": "owned", "Name": GROUP}
    tagged = "".join(f"<item><key>{key}</key><value>{value}</value></item>" for key, value in tags.items())
    return (
        f"<item><instanceId>{name}</instanceId><instanceState><code>16</code><name>running</name></instanceState>"
        f"<instanceType>m5.large</instanceType><launchTime>2026-03-01T08:00:00.000Z</launchTime>"
        f"<placement><availabilityZone>{zone_of(number)}</availabilityZone></placement><subnetId>subnet-0a</subnetId>"
        f"<instanceLifecycle>spot</instanceLifecycle><tagSet>{tagged}</tagSet></item>"
    )


def _group(count: int) -> str:
    members = "".join(
        f"<member><InstanceId>{instance_id(n)}</InstanceId><AvailabilityZone>{zone_of(n)}</AvailabilityZone>"
        "<LifecycleState>InService</LifecycleState><HealthStatus>Healthy</HealthStatus>"
        "<ProtectedFromScaleIn>false</ProtectedFromScaleIn></member>"
        for n in range(count)
    )
    key = f"{well_known.CLUSTER_TAG_PREFIX}{CLUSTER}"
    return (
        f'<DescribeAutoScalingGroupsResponse xmlns="{_AUTOSCALING}"><DescribeAutoScalingGroupsResult>'
        f"<AutoScalingGroups><member><AutoScalingGroupName>{GROUP}</AutoScalingGroupName><MinSize>0</MinSize>"
        f"<MaxSize>{2 * count}</MaxSize><DesiredCapacity>{count}</DesiredCapacity>"
        f"<AvailabilityZones>{''.join(f'<member>{zone}</member>' for zone in ZONES)}</AvailabilityZones>"
        f"<VPCZoneIdentifier>subnet-0a</VPCZoneIdentifier><Instances>{members}</Instances>"
        f"<Tags><member><Key>{key}</Key><Value>owned</Value></member></Tags></member></AutoScalingGroups>"
        "</DescribeAutoScalingGroupsResult></DescribeAutoScalingGroupsResponse>"
    )


class CannedServer(ThreadingHTTPServer):
    """Server that answers a function's calls concurrently.

    On a busy machine the standard queue of five drops a connection of sixteen, and botocore's second try would count
    as a call of the product.
    """

    request_queue_size = 128


def serve(directory: Path, count: int) -> None:
    """Serve until SIGTERM."""
    aws = CannedAws(count)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # an answer is one packet: in two, the second would wait for the first one's acknowledgement

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            kind, answer = aws.answer(self.headers.get("X-Amz-Target") or "", body)
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    server = CannedServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with ClusterServer(name=CLUSTER, settings=ClusterSettings()) as cluster:
        with cluster.lock:
            for number in range(count):
                name = instance_id(number)
                spec = NodeSpec(name=f"node-{number}", zone=zone_of(number), instance_id=name, instance_type="m5.large")
                cluster.model.add_node(spec)
        cluster.write_files(directory)
        (directory / READY).write_text(json.dumps({"aws": f"http://127.0.0.1:{server.server_port}"}))
        stop.wait()


if __name__ == "__main__":
    serve(Path(sys.argv[1]), int(sys.argv[2]))
