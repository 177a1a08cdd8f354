"""Classic load balancers as targets: those that the cloud provider creates for a Service that requests no other type.

They have no target groups: an instance is registered with the load balancer itself."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any

from botocore.exceptions import ClientError

from leeward.adapters.aws.clients import AwsClients, chunks, pages
from leeward.adapters.aws.errors import aws_call, code_of
from leeward.adapters.cache import ExpiringCache
from leeward.model.instance import Instance, cluster_of
from leeward.model.load_balancing import Health, Target, TargetKind
from leeward.ports.clock import Clock

LISTED = timedelta(seconds=60)
TAGS_PER_CALL = 20
NOT_FOUND = "LoadBalancerNotFound"
LEAVING = "deregistration currently in progress"  # the only sign of connection draining, in a description


class ClassicLoadBalancers:
    """Classic load balancers, for reads only."""

    def __init__(self, clients: AwsClients, clock: Clock) -> None:
        self._clients = clients
        self._listed: ExpiringCache[str, tuple[str, ...]] = ExpiringCache(clock, LISTED)
        self._tags: dict[str, Mapping[str, str]] = {}

    def targets(self, cluster: str, instance: Instance) -> Sequence[Target]:
        """Return the instance's targets, with one call for each of the cluster's load balancers."""
        names = self._listed.get("all", self._list)
        self._learn([name for name in names if name not in self._tags])
        mine = [name for name in names if cluster_of(self._tags.get(name, {}), [cluster])]
        return tuple(target for name in mine for target in self._health(name) if target.id == instance.id)

    @property
    def _client(self) -> Any:
        return self._clients.get("elb")

    def _list(self) -> tuple[str, ...]:
        """List the names. A name may be reused: its tags are read again once the first load balancer is gone."""
        with aws_call("elasticloadbalancing:DescribeLoadBalancers", "all"):
            found = [
                str(raw["LoadBalancerName"])
                for page in pages(self._client, "describe_load_balancers")
                for raw in page["LoadBalancerDescriptions"]
            ]
        self._tags = {name: tags for name, tags in self._tags.items() if name in found}
        return tuple(found)

    def _learn(self, names: Sequence[str]) -> None:
        for chunk in chunks(names, TAGS_PER_CALL):
            if not self._read_tags(chunk):
                for name in chunk:
                    self._read_tags([name])

    def _read_tags(self, names: Sequence[str]) -> bool:
        """Read the tags; False when one of the names is gone, which fails the whole call."""
        with aws_call("elasticloadbalancing:DescribeTags", f"{len(names)} load balancers from {names[0]}"):
            try:
                answer = self._client.describe_tags(LoadBalancerNames=names)
            except ClientError as error:
                if code_of(error) != NOT_FOUND:
                    raise
                return False
        for raw in answer["TagDescriptions"]:
            self._tags[raw["LoadBalancerName"]] = {tag["Key"]: tag.get("Value", "") for tag in raw["Tags"]}
        return True

    def _health(self, name: str) -> Iterator[Target]:
        with aws_call("elasticloadbalancing:DescribeInstanceHealth", name):
            try:
                answer = self._client.describe_instance_health(LoadBalancerName=name)
            except ClientError as error:
                if code_of(error) != NOT_FOUND:
                    raise
                return
        for raw in answer["InstanceStates"]:
            leaving = LEAVING in str(raw.get("Description", "")).lower()
            state = Health.DRAINING.value if leaving else str(raw.get("State", ""))
            yield Target(group=name, kind=TargetKind.INSTANCE, id=raw["InstanceId"], port=0, state=state)
