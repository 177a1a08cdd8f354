"""What the `aws` command would print, in memory: everything that an account holds, asked as AWS is asked."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from leeward.errors import ObjectGoneError
from leeward.model.launch import LaunchTemplateRef
from tests.fakes.calls import Calls

Raw = Mapping[str, Any]


class FakeRawAws(Calls):
    """`holds` by the file that a snapshot has of it: raw elements of the whole account, other clusters' too."""

    def __init__(self, holds: Mapping[str, Sequence[Raw]]) -> None:
        super().__init__()
        self.holds = {name: list(elements) for name, elements in holds.items()}
        self.deployed: list[Raw] = []

    def groups_tagged(self, tag_keys: Iterable[str]) -> Sequence[Raw]:
        """By key, whatever the value."""
        self._call("groups_tagged")
        wanted = set(tag_keys)
        return [one for one in self._of("auto-scaling-groups") if wanted & {tag["Key"] for tag in one.get("Tags", ())}]

    def hooks(self, group: str) -> Sequence[Raw]:
        """Of the group."""
        self._call("hooks")
        return [one for one in self._of("lifecycle-hooks") if one["AutoScalingGroupName"] == group]

    def launch_configurations(self, names: Iterable[str]) -> Sequence[Raw]:
        """By name."""
        return self._named("launch-configurations", "LaunchConfigurationName", names)

    def template_versions(self, template: LaunchTemplateRef, versions: Iterable[str]) -> Sequence[Raw]:
        """By number, `$Latest` and `$Default`; one that is asked for twice comes twice."""
        self._call("template_versions")
        key, value = ("LaunchTemplateId", template.id) if template.id else ("LaunchTemplateName", template.name)
        mine = [one for one in self._of("launch-template-versions") if one[key] == value]
        latest = max((one["VersionNumber"] for one in mine), default=0)
        default = next((one["VersionNumber"] for one in mine if one["DefaultVersion"]), 0)
        meant = {"$Latest": str(latest), "$Default": str(default)}
        return [one for version in versions for one in mine if str(one["VersionNumber"]) == meant.get(version, version)]

    def reservations(self, ids: Iterable[str]) -> Sequence[Raw]:
        """Each instance in one of its own."""
        return [{"Instances": [one]} for one in self._named("instances", "InstanceId", ids)]

    def impaired(self) -> Sequence[Raw]:
        """Of the whole Region."""
        self._call("impaired")
        return self._of("instance-status")

    def instance_types(self, names: Iterable[str]) -> Sequence[Raw]:
        """By name."""
        return self._named("instance-types", "InstanceType", names)

    def all_instance_types(self) -> Sequence[Raw]:
        """All of them."""
        self._call("all_instance_types")
        return self._of("instance-types")

    def images(self, ids: Iterable[str]) -> Sequence[Raw]:
        """By id."""
        return self._named("images", "ImageId", ids)

    def subnets(self, ids: Iterable[str]) -> Sequence[Raw]:
        """By id."""
        return self._named("subnets", "SubnetId", ids)

    def subnets_tagged(self, vpcs: Iterable[str], key: str) -> Sequence[Raw]:
        """By VPC and tag key."""
        self._call("subnets_tagged")
        wanted = set(vpcs)
        return [
            one
            for one in self._of("subnets")
            if one["VpcId"] in wanted and key in {tag["Key"] for tag in one.get("Tags", ())}
        ]

    def nodegroup(self, cluster: str, name: str) -> Raw:
        """The whole answer."""
        self._call("nodegroup")
        for one in self._of("nodegroups"):
            if (one["nodegroup"]["clusterName"], one["nodegroup"]["nodegroupName"]) == (cluster, name):
                return one
        raise ObjectGoneError(f"eks:DescribeNodegroup on {cluster}/{name}: ResourceNotFoundException: none")

    def cluster(self, name: str) -> Raw:
        """The whole answer."""
        self._call("cluster")
        for one in self._of("cluster"):
            if one["cluster"]["name"] == name:
                return one
        raise ObjectGoneError(f"eks:DescribeCluster on {name}: ResourceNotFoundException: No cluster found")

    def policies(self, cluster: str) -> Sequence[Raw]:
        """What the test has deployed."""
        del cluster
        self._call("policies")
        return self.deployed

    def _of(self, name: str) -> list[Raw]:
        return self.holds.get(name, [])

    def _named(self, name: str, key: str, values: Iterable[str]) -> list[Raw]:
        self._call(name)
        wanted = set(values)
        return [one for one in self._of(name) if one[key] in wanted]
