"""`ports.raw.RawAws` on botocore: the output of the `aws` command, limited to the requested objects.

Like the command it leaves the response's metadata and page tokens out and writes times as ISO 8601."""

import json
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

from botocore.exceptions import ClientError

from leeward.adapters.aws.clients import AwsClients, chunks, pages
from leeward.adapters.aws.errors import aws_call, code_of, is_not_found
from leeward.adapters.aws.groups import NAMES_PER_CALL, TAG_KEYS_PER_CALL
from leeward.adapters.aws.instances import CHECKS, FILTER_VALUES
from leeward.adapters.aws.launch_templates import NO_TEMPLATE, TYPES_PER_CALL, has_alias
from leeward.errors import InvalidPolicyError, TerminalError
from leeward.model.instance_status import IMPAIRED
from leeward.model.launch import LaunchTemplateRef
from leeward.policy.document import AppliedPolicies
from leeward.ports.raw import Raw

CONFIGURATIONS_PER_CALL = 50  # DescribeLaunchConfigurations' names
VERSIONS_PER_CALL = 200  # of one launch template


class AwsRawOutput:
    """Raw output of the clients' Region, with the caller's own credentials. `policy_prefix`: of the policy parameters;
    `applied` returns the policies that were applied to a cluster. `home`: clients of the deployment, which has the
    policies; None: the same.
    """

    def __init__(
        self,
        clients: AwsClients,
        policy_prefix: str,
        applied: Callable[[str], AppliedPolicies],
        home: AwsClients | None = None,
    ) -> None:
        self._clients = clients
        self._home = home or clients
        self._applied = applied
        self._prefix = policy_prefix

    def groups_tagged(self, tag_keys: Iterable[str]) -> Sequence[Raw]:
        """Return each group once, however many of the keys it has."""
        found: dict[str, Raw] = {}
        for chunk in chunks(tag_keys, TAG_KEYS_PER_CALL):
            arguments = {"Filters": [{"Name": "tag-key", "Values": chunk}], "MaxRecords": NAMES_PER_CALL}
            for one in self._paged("autoscaling", "DescribeAutoScalingGroups", "AutoScalingGroups", chunk, **arguments):
                found[one["AutoScalingGroupName"]] = one
        return tuple(found.values())

    def hooks(self, group: str) -> Sequence[Raw]:
        """Read the hooks with one call, not paged."""
        with aws_call("autoscaling:DescribeLifecycleHooks", group):
            try:
                answer = self._clients.get("autoscaling").describe_lifecycle_hooks(AutoScalingGroupName=group)
            except ClientError as error:
                if not is_not_found(error):
                    raise
                return ()
        return _members(answer, "LifecycleHooks")

    def launch_configurations(self, names: Iterable[str]) -> Sequence[Raw]:
        """Read the launch configurations. No names, no call: an empty list would mean all of the account's."""
        found: list[Raw] = []
        for chunk in chunks(names, CONFIGURATIONS_PER_CALL):
            what = "autoscaling", "DescribeLaunchConfigurations", "LaunchConfigurations"
            found += self._paged(*what, chunk, LaunchConfigurationNames=chunk)
        return tuple(found)

    def template_versions(self, template: LaunchTemplateRef, versions: Iterable[str]) -> Sequence[Raw]:
        """Read the versions. One unknown version fails the whole call: then they are read one at a time."""
        found: list[Raw] = []
        for chunk in chunks(versions, VERSIONS_PER_CALL):
            together = self._versions(template, chunk)
            if together is None and len(chunk) > 1:
                together = [raw for one in chunk for raw in self._versions(template, [one]) or ()]
            found += together or ()
        return tuple(found)

    def reservations(self, ids: Iterable[str]) -> Sequence[Raw]:
        """Read the instances by filter: a call by id fails as a whole for one that is unknown."""
        return self._filtered("DescribeInstances", "Reservations", "instance-id", ids)

    def impaired(self) -> Sequence[Raw]:
        """Read impaired instances, with one call for each kind of check, because EC2 joins filters with AND."""
        found: list[Raw] = []
        for check in CHECKS:
            found += self._filtered("DescribeInstanceStatus", "InstanceStatuses", check, [IMPAIRED])
        return tuple(found)

    def instance_types(self, names: Iterable[str]) -> Sequence[Raw]:
        """Read the types by filter: an unknown name is absent."""
        return self._filtered("DescribeInstanceTypes", "InstanceTypes", "instance-type", names, TYPES_PER_CALL)

    def all_instance_types(self) -> Sequence[Raw]:
        """Read all types, about ten pages."""
        return tuple(self._paged("ec2", "DescribeInstanceTypes", "InstanceTypes", ["all types"]))

    def images(self, ids: Iterable[str]) -> Sequence[Raw]:
        """Read the images by filter: an unknown one is absent. Deprecated ones too, which groups launch as well."""
        found: list[Raw] = []
        for chunk in chunks(ids, FILTER_VALUES):
            filters = [{"Name": "image-id", "Values": chunk}]
            found += self._paged("ec2", "DescribeImages", "Images", chunk, Filters=filters, IncludeDeprecated=True)
        return tuple(found)

    def subnets(self, ids: Iterable[str]) -> Sequence[Raw]:
        """Read the subnets by filter."""
        return self._filtered("DescribeSubnets", "Subnets", "subnet-id", ids)

    def subnets_tagged(self, vpcs: Iterable[str], key: str) -> Sequence[Raw]:
        """Read the subnets by two filters."""
        found: list[Raw] = []
        for chunk in chunks(vpcs, FILTER_VALUES):
            filters = [{"Name": "vpc-id", "Values": chunk}, {"Name": "tag-key", "Values": [key]}]
            found += self._paged("ec2", "DescribeSubnets", "Subnets", chunk, Filters=filters)
        return tuple(found)

    def nodegroup(self, cluster: str, name: str) -> Raw:
        """Read the node group with one call."""
        with aws_call("eks:DescribeNodegroup", f"{cluster}/{name}"):
            answer = self._clients.get("eks").describe_nodegroup(clusterName=cluster, nodegroupName=name)
        return {"nodegroup": _plain(answer["nodegroup"])}

    def cluster(self, name: str) -> Raw:
        """Read the cluster with one call."""
        with aws_call("eks:DescribeCluster", name):
            answer = self._clients.get("eks").describe_cluster(name=name)
        return {"cluster": _plain(answer["cluster"])}

    def policies(self, cluster: str) -> Sequence[Raw]:
        """Return the policies as stored: canonical JSON without defaults, in the order of the parameters' names; those
        that were applied where the deployment names none.
        """
        path = f"{self._prefix}/{cluster}/policies"
        found = self._paged("ssm", "GetParametersByPath", "Parameters", [path], Path=path)
        named = sorted((str(one["Name"]), str(one["Value"])) for one in found) or self._applied(cluster).documents
        return tuple(_document(name, text) for name, text in named)

    def _versions(self, template: LaunchTemplateRef, versions: list[str], **more: bool) -> list[Raw] | None:
        """Read the versions; None when the template or one of them is unknown. Images by SSM parameter are resolved."""
        which = {"LaunchTemplateId": template.id} if template.id else {"LaunchTemplateName": template.name}
        name = template.id or template.name
        with aws_call("ec2:DescribeLaunchTemplateVersions", f"{name} versions {', '.join(versions)}"):
            try:
                answer = self._clients.get("ec2").describe_launch_template_versions(**which, Versions=versions, **more)
            except ClientError as error:
                if code_of(error) not in NO_TEMPLATE:
                    raise
                return None
        found = list(_members(answer, "LaunchTemplateVersions"))
        if not more and any(has_alias(raw) for raw in found):
            with suppress(TerminalError):  # the parameter is gone or denied: its name stays, which is no drift
                return self._versions(template, versions, ResolveAlias=True)
        return found

    def _filtered(
        self, call: str, member: str, name: str, values: Iterable[str], size: int = FILTER_VALUES
    ) -> tuple[Raw, ...]:
        found: list[Raw] = []
        for chunk in chunks(values, size):
            found += self._paged("ec2", call, member, chunk, Filters=[{"Name": name, "Values": chunk}])
        return tuple(found)

    def _paged(self, service: str, call: str, member: str, on: Sequence[str], **arguments: Any) -> list[Raw]:
        """Return every element of the member, from all pages; `on` names the objects of the call."""
        client = (self._home if service == "ssm" else self._clients).get(service)
        more = f" and {len(on) - 1} more" if len(on) > 1 else ""
        with aws_call(f"{service}:{call}", f"{on[0]}{more}"):
            operation = next(name for name, known in client.meta.method_to_api_mapping.items() if known == call)
            return [one for page in pages(client, operation, **arguments) for one in _members(page, member)]


def _members(answer: Raw, member: str) -> tuple[Raw, ...]:
    return tuple(_plain(one) for one in answer.get(member, ()))


def _plain(value: Any) -> Any:
    """Convert a value to JSON: times become text, with their offset."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value.isoformat() if isinstance(value, datetime) else value


def _document(name: str, text: str) -> Raw:
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise InvalidPolicyError(f"{name}: found no JSON ({error}), expected a policy document") from error
    if not isinstance(document, dict):
        raise InvalidPolicyError(f"{name}: found {text[:40]!r}, expected a policy document")
    return document
