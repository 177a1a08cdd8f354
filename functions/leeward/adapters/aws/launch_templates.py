"""`ports.compute.LaunchSources` on EC2 and Auto Scaling: the launch settings of groups, and the properties of instance
types."""

from collections.abc import Iterable, Mapping
from typing import Any

from botocore.exceptions import ClientError

from leeward.adapters.aws.batches import chunks, pages
from leeward.adapters.aws.clients import AwsClients
from leeward.adapters.aws.errors import aws_call, code_of
from leeward.errors import TerminalError
from leeward.model.group import Group
from leeward.model.instance_type import InstanceType
from leeward.model.launch import LaunchSettings, LaunchTemplateRef

TYPES_PER_CALL = 100  # DescribeInstanceTypes takes at most 100 names
ALIAS = "resolve:ssm:"  # an image by the name of its SSM parameter, which EC2 resolves only on request
NO_TEMPLATE = frozenset(
    {
        "InvalidLaunchTemplateId.NotFound",
        "InvalidLaunchTemplateId.VersionNotFound",
        "InvalidLaunchTemplateName.NotFoundException",
    }
)


def has_alias(raw: Mapping[str, Any]) -> bool:
    """Return whether a described version names its image by an SSM parameter."""
    return str((raw.get("LaunchTemplateData") or {}).get("ImageId") or "").startswith(ALIAS)


class Ec2LaunchSources:
    """Source of launch settings. Launch templates are read each time, because `$Latest`, `$Default` and images behind
    an SSM parameter move; instance types once per process, because they never change.
    """

    def __init__(self, clients: AwsClients) -> None:
        self._clients = clients
        self._types: dict[str, InstanceType] = {}
        self._all_read = False

    def settings(self, group: Group) -> LaunchSettings | None:
        """Return the settings of its launch template version or launch configuration, None without one (any more)."""
        source = group.launch
        if source.template is not None:
            return self._version(source.template)
        return self._configuration(source.configuration) if source.configuration else None

    def instance_types(self, names: Iterable[str]) -> Mapping[str, InstanceType]:
        """Return the types that EC2 offers in the Region, by name. Read by filter: an unknown name is absent."""
        wanted = set(names)
        missing = sorted(wanted - self._types.keys())
        for chunk in chunks(missing if not self._all_read else (), TYPES_PER_CALL):
            self._read(f"{len(chunk)} types from {chunk[0]}", Filters=[{"Name": "instance-type", "Values": chunk}])
        return {name: self._types[name] for name in wanted if name in self._types}

    def all_instance_types(self) -> Mapping[str, InstanceType]:
        """Return every type of the Region, about ten pages, read once: InstanceRequirements choose among them."""
        if not self._all_read:
            self._read("all types")
            self._all_read = True
        return dict(self._types)

    def _version(self, wanted: LaunchTemplateRef) -> LaunchSettings | None:
        raw = self._described(wanted)
        if raw is None:
            return None
        if has_alias(raw):
            raw = self._resolved(wanted) or raw
        return LaunchSettings.from_template(raw)

    def _resolved(self, wanted: LaunchTemplateRef) -> dict[str, Any] | None:
        """Return the version with the image that its SSM parameter names now, or None where the parameter is gone or
        denied: an unknown image is no drift.
        """
        try:
            return self._described(wanted, ResolveAlias=True)
        except TerminalError:
            return None

    def _described(self, wanted: LaunchTemplateRef, **more: bool) -> dict[str, Any] | None:
        which = {"LaunchTemplateId": wanted.id} if wanted.id else {"LaunchTemplateName": wanted.name}
        with aws_call("ec2:DescribeLaunchTemplateVersions", wanted.told):
            try:
                answer = self._clients.get("ec2").describe_launch_template_versions(
                    **which, Versions=[wanted.version], **more
                )
            except ClientError as error:
                if code_of(error) not in NO_TEMPLATE:
                    raise
                return None
        found: dict[str, Any] | None = next(iter(answer.get("LaunchTemplateVersions", ())), None)
        return found

    def _configuration(self, name: str) -> LaunchSettings | None:
        with aws_call("autoscaling:DescribeLaunchConfigurations", name):
            answer = self._clients.get("autoscaling").describe_launch_configurations(LaunchConfigurationNames=[name])
        return next((LaunchSettings.from_configuration(raw) for raw in answer.get("LaunchConfigurations", ())), None)

    def _read(self, what: str, **which: object) -> None:
        with aws_call("ec2:DescribeInstanceTypes", what):
            for page in pages(self._clients.get("ec2"), "describe_instance_types", **which):
                found = (InstanceType.from_json(raw) for raw in page.get("InstanceTypes", ()))
                self._types.update((kind.name, kind) for kind in found)
