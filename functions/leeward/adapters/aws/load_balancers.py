"""`ports.load_balancers.LoadBalancers` on Elastic Load Balancing: target groups by their cluster tags, targets with
their health.

The API lists target groups without their tags and cannot filter by them. So the list is kept for a minute, the tags of
a group for as long as the process lives, and only the health of the cluster's own groups is read. One answer holds the
targets of all nodes: it is kept for some seconds, since many drains may read it at the same time.

Classic load balancers as targets: those that the cloud provider creates for a Service that requests no other type.

They have no target groups: an instance is registered with the load balancer itself."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from botocore.exceptions import ClientError

from leeward.adapters.aws.clients import AwsClients, chunks, pages
from leeward.adapters.aws.errors import aws_call, code_of
from leeward.adapters.cache import ExpiringCache
from leeward.model.counts import count_of
from leeward.model.instance import Instance, cluster_of
from leeward.model.load_balancing import Health, LoadBalancerTarget, TargetKind, is_of
from leeward.ports.clock import Clock

CLASSIC_LISTED = timedelta(seconds=60)
CLASSIC_TAGS_PER_CALL = 20
CLASSIC_NOT_FOUND = "LoadBalancerNotFound"
LEAVING = "deregistration currently in progress"  # the only sign of connection draining, in a description
LISTED = timedelta(seconds=60)
SEEN = timedelta(seconds=5)  # a target may be reported as registered for this long after it has gone
TAGS_PER_CALL = 20
CONTROLLER_TAG = "elbv2.k8s.aws/cluster"  # of the AWS Load Balancer Controller
NOT_FOUND = "TargetGroupNotFound"
KINDS = frozenset(TargetKind)


class ClassicLoadBalancers:
    """Classic load balancers, for reads only."""

    def __init__(self, clients: AwsClients, clock: Clock) -> None:
        self._clients = clients
        self._listed: ExpiringCache[str, tuple[str, ...]] = ExpiringCache(clock, CLASSIC_LISTED)
        self._tags: dict[str, Mapping[str, str]] = {}

    def targets(self, cluster: str, instance: Instance) -> Sequence[LoadBalancerTarget]:
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
        for chunk in chunks(names, CLASSIC_TAGS_PER_CALL):
            if not self._read_tags(chunk):
                for name in chunk:
                    self._read_tags([name])

    def _read_tags(self, names: Sequence[str]) -> bool:
        """Read the tags; False when one of the names is gone, which fails the whole call."""
        with aws_call("elasticloadbalancing:DescribeTags", f"{len(names)} load balancers from {names[0]}"):
            try:
                answer = self._client.describe_tags(LoadBalancerNames=names)
            except ClientError as error:
                if code_of(error) != CLASSIC_NOT_FOUND:
                    raise
                return False
        for raw in answer["TagDescriptions"]:
            self._tags[raw["LoadBalancerName"]] = {tag["Key"]: tag.get("Value", "") for tag in raw["Tags"]}
        return True

    def _health(self, name: str) -> Iterator[LoadBalancerTarget]:
        with aws_call("elasticloadbalancing:DescribeInstanceHealth", name):
            try:
                answer = self._client.describe_instance_health(LoadBalancerName=name)
            except ClientError as error:
                if code_of(error) != CLASSIC_NOT_FOUND:
                    raise
                return
        for raw in answer["InstanceStates"]:
            leaving = LEAVING in str(raw.get("Description", "")).lower()
            state = Health.DRAINING.value if leaving else str(raw.get("State", ""))
            yield LoadBalancerTarget(group=name, kind=TargetKind.INSTANCE, id=raw["InstanceId"], port=0, state=state)


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetGroup:
    """Cached properties of a target group."""

    arn: str
    name: str
    kind: TargetKind


class AwsLoadBalancers:
    """Load balancers of both generations, for reads only."""

    def __init__(self, clients: AwsClients, clock: Clock) -> None:
        self._groups = TargetGroups(clients, clock)
        self._classic = ClassicLoadBalancers(clients, clock)

    def targets(self, cluster: str, instance: Instance) -> Sequence[LoadBalancerTarget]:
        """Return the instance's targets. Without a load balancer in the account this costs two calls a minute."""
        return (*self._groups.targets(cluster, instance), *self._classic.targets(cluster, instance))


class TargetGroups:
    """Application and network load balancers."""

    def __init__(self, clients: AwsClients, clock: Clock) -> None:
        self._clients = clients
        self._listed: ExpiringCache[str, tuple[TargetGroup, ...]] = ExpiringCache(clock, LISTED)
        self._seen: ExpiringCache[str, tuple[LoadBalancerTarget, ...]] = ExpiringCache(clock, SEEN)
        self._tags: dict[str, Mapping[str, str]] = {}

    def targets(self, cluster: str, instance: Instance) -> Sequence[LoadBalancerTarget]:
        """Return its targets, at most one call for each target group of the cluster; a group that is gone has none."""
        groups = self._of_cluster(cluster, self._listed.get("all", self._list))
        found = (target for group in groups for target in self._now(group))
        return tuple(target for target in found if target.registered and is_of(target, instance))

    def _now(self, group: TargetGroup) -> tuple[LoadBalancerTarget, ...]:
        return self._seen.get(group.arn, lambda: self._health(group))

    @property
    def _client(self) -> Any:
        return self._clients.get("elbv2")

    def _list(self) -> tuple[TargetGroup, ...]:
        with aws_call("elasticloadbalancing:DescribeTargetGroups", "all"):
            raws = [raw for page in pages(self._client, "describe_target_groups") for raw in page["TargetGroups"]]
        return tuple(
            TargetGroup(arn=raw["TargetGroupArn"], name=raw["TargetGroupName"], kind=TargetKind(raw["TargetType"]))
            for raw in raws
            if raw.get("TargetType") in KINDS
        )

    def _of_cluster(self, cluster: str, groups: Sequence[TargetGroup]) -> Iterator[TargetGroup]:
        self._learn(group.arn for group in groups)
        for group in groups:
            tags = self._tags.get(group.arn, {})
            if tags.get(CONTROLLER_TAG) == cluster or cluster_of(tags, [cluster]):
                yield group

    def _learn(self, arns: Iterable[str]) -> None:
        """Read the tags of new groups. One group that is gone fails its whole call: then one by one."""
        for chunk in chunks((arn for arn in arns if arn not in self._tags), TAGS_PER_CALL):
            found = self._read_tags(chunk)
            if found is None:
                for arn in chunk:
                    self._tags.update(self._read_tags([arn]) or {})
            self._tags.update(found or {})

    def _read_tags(self, arns: Sequence[str]) -> Mapping[str, Mapping[str, str]] | None:
        with aws_call("elasticloadbalancing:DescribeTags", f"{count_of(len(arns), 'target group')} from {arns[0]}"):
            try:
                answer = self._client.describe_tags(ResourceArns=arns)
            except ClientError as error:
                if code_of(error) != NOT_FOUND:
                    raise
                return None
        return {
            raw["ResourceArn"]: {tag["Key"]: tag.get("Value", "") for tag in raw["Tags"]}
            for raw in answer["TagDescriptions"]
        }

    def _health(self, group: TargetGroup) -> tuple[LoadBalancerTarget, ...]:
        with aws_call("elasticloadbalancing:DescribeTargetHealth", group.name):
            try:
                answer = self._client.describe_target_health(TargetGroupArn=group.arn)
            except ClientError as error:
                if code_of(error) != NOT_FOUND:
                    raise
                return ()
        return tuple(_target(group, raw) for raw in answer["TargetHealthDescriptions"])


def _target(group: TargetGroup, raw: Mapping[str, Any]) -> LoadBalancerTarget:
    return LoadBalancerTarget(
        group=group.name,
        kind=group.kind,
        id=raw["Target"]["Id"],
        port=int(raw["Target"].get("Port", 0)),
        state=raw["TargetHealth"]["State"],
    )
