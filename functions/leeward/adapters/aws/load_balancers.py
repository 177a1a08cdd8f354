"""`ports.load_balancers.LoadBalancers` on Elastic Load Balancing: target groups by their cluster tags, targets with
their health; classic load balancers are in `classic_balancers.py`.

The API lists target groups without their tags and cannot filter by them. So the list is kept for a minute, the tags of
a group for as long as the process lives, and only the health of the cluster's own groups is read. One answer holds the
targets of all nodes: it is kept for some seconds, since many drains may read it at the same time."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from botocore.exceptions import ClientError

from leeward.adapters.aws.classic_balancers import ClassicLoadBalancers
from leeward.adapters.aws.clients import AwsClients, chunks, pages
from leeward.adapters.aws.errors import aws_call, code_of
from leeward.adapters.cache import ExpiringCache
from leeward.model.counts import count_of
from leeward.model.instance import Instance, cluster_of
from leeward.model.load_balancing import Target, TargetKind, is_of
from leeward.ports.clock import Clock

LISTED = timedelta(seconds=60)
SEEN = timedelta(seconds=5)  # a target may be reported as registered for this long after it has gone
TAGS_PER_CALL = 20
CONTROLLER_TAG = "elbv2.k8s.aws/cluster"  # of the AWS Load Balancer Controller
NOT_FOUND = "TargetGroupNotFound"
KINDS = frozenset(TargetKind)


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

    def targets(self, cluster: str, instance: Instance) -> Sequence[Target]:
        """Return the instance's targets. Without a load balancer in the account this costs two calls a minute."""
        return (*self._groups.targets(cluster, instance), *self._classic.targets(cluster, instance))


class TargetGroups:
    """Application and network load balancers."""

    def __init__(self, clients: AwsClients, clock: Clock) -> None:
        self._clients = clients
        self._listed: ExpiringCache[str, tuple[TargetGroup, ...]] = ExpiringCache(clock, LISTED)
        self._seen: ExpiringCache[str, tuple[Target, ...]] = ExpiringCache(clock, SEEN)
        self._tags: dict[str, Mapping[str, str]] = {}

    def targets(self, cluster: str, instance: Instance) -> Sequence[Target]:
        """Return its targets, at most one call for each target group of the cluster; a group that is gone has none."""
        groups = self._of_cluster(cluster, self._listed.get("all", self._list))
        found = (target for group in groups for target in self._now(group))
        return tuple(target for target in found if target.registered and is_of(target, instance))

    def _now(self, group: TargetGroup) -> tuple[Target, ...]:
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

    def _health(self, group: TargetGroup) -> tuple[Target, ...]:
        with aws_call("elasticloadbalancing:DescribeTargetHealth", group.name):
            try:
                answer = self._client.describe_target_health(TargetGroupArn=group.arn)
            except ClientError as error:
                if code_of(error) != NOT_FOUND:
                    raise
                return ()
        return tuple(_target(group, raw) for raw in answer["TargetHealthDescriptions"])


def _target(group: TargetGroup, raw: Mapping[str, Any]) -> Target:
    return Target(
        group=group.name,
        kind=group.kind,
        id=raw["Target"]["Id"],
        port=int(raw["Target"].get("Port", 0)),
        state=raw["TargetHealth"]["State"],
    )
