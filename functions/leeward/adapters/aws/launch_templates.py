"""`ports.compute.LaunchSources` and `Templates` on EC2, Auto Scaling and SSM: the launch settings of groups, the
properties of instance types, versions of launch templates, and the images for them."""

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from botocore.exceptions import ClientError

from leeward.adapters.aws.clients import AwsClients, chunks, pages
from leeward.adapters.aws.errors import aws_call, code_of, message_of
from leeward.errors import InvalidInputError, ObjectGoneError, TerminalError
from leeward.model.counts import count_of
from leeward.model.group import Group
from leeward.model.image import Image
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
NO_IMAGE = frozenset({"InvalidAMIID.Malformed", "InvalidAMIID.NotFound", "InvalidAMIID.Unavailable"})


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
        self._images: dict[str, Image | None] = {}

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
            self._read(
                f"{count_of(len(chunk), 'type')} from {chunk[0]}", Filters=[{"Name": "instance-type", "Values": chunk}]
            )
        return {name: self._types[name] for name in wanted if name in self._types}

    def all_instance_types(self) -> Mapping[str, InstanceType]:
        """Return every type of the Region, about ten pages, read once: InstanceRequirements choose among them."""
        if not self._all_read:
            self._read("all types")
            self._all_read = True
        return dict(self._types)

    def image(self, name: str) -> Image | None:
        """Return the image, deprecated ones too, read by filter and once: an image's platform and architecture never
        change. None for an unknown id, and where the role lacks the right.
        """
        if name not in self._images:
            filters = [{"Name": "image-id", "Values": [name]}]
            with suppress(TerminalError), aws_call("ec2:DescribeImages", name):
                answer = self._clients.get("ec2").describe_images(Filters=filters, IncludeDeprecated=True)
                self._images[name] = next(map(Image.from_json, answer.get("Images", ())), None)
        return self._images.setdefault(name, None)

    def _version(self, wanted: LaunchTemplateRef) -> LaunchSettings | None:
        raw = self._described(wanted)
        if raw is None:
            return None
        if not has_alias(raw):
            return LaunchSettings.from_template(raw)
        resolved = LaunchSettings.from_template(self._resolved(wanted) or raw)
        return replace(resolved, alias=str(raw["LaunchTemplateData"]["ImageId"]))

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
        with aws_call("ec2:DescribeLaunchTemplateVersions", wanted.label):
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


class Ec2Templates:
    """Templates by CreateLaunchTemplateVersion, DescribeLaunchTemplateVersions, DescribeImages and GetParameter."""

    def __init__(self, clients: AwsClients) -> None:
        self._clients = clients

    def version_for(
        self, template: LaunchTemplateRef, image: str, *, token: str, again: bool = False
    ) -> LaunchTemplateRef:
        """Return the version itself where it has the image already, unless `again`. Else idempotent twice: by EC2's
        client token, which expires, and by the version's description, which holds the token, as long as that version is
        the latest.

        Raises ObjectGoneError for a template or version that does not exist.
        """
        source, latest = self._described(template), self._described(_latest(template))
        mark = f"leeward {token}"
        for one in (source, latest):
            made = one.get("VersionDescription") == mark
            same = (one.get("LaunchTemplateData") or {}).get("ImageId") == image
            if made or (one is source and same and not again):
                return _ref(one)
        with aws_call("ec2:CreateLaunchTemplateVersion", f"{template.label} with {image}"):
            answer = self._clients.get("ec2").create_launch_template_version(
                **_which(_ref(source)),
                SourceVersion=str(source["VersionNumber"]),
                VersionDescription=mark,
                LaunchTemplateData={"ImageId": image},
                ClientToken=token,
            )
        return _ref(answer["LaunchTemplateVersion"])

    def numbered(self, template: LaunchTemplateRef) -> LaunchTemplateRef:
        """Resolve the version's number with one DescribeLaunchTemplateVersions. Raises ObjectGoneError."""
        return _ref(self._described(template))

    def image_behind(self, parameter: str) -> str:
        """Return the image id: EKS' `…/recommended/image_id` holds the id, `…/recommended` a JSON object with it.
        Raises ObjectGoneError, InvalidInputError for a value with no AMI id in it.
        """
        with aws_call("ssm:GetParameter", parameter):
            value = str(self._clients.get("ssm").get_parameter(Name=parameter)["Parameter"]["Value"])
        found = _image_of(value)
        if not found.startswith("ami-"):
            raise InvalidInputError(f"SSM parameter {parameter}: found {value[:100]!r}, expected an AMI id")
        return found

    def image_exists(self, image: str) -> bool:
        """Return whether the image exists. It is read by id, which finds deprecated images too."""
        with aws_call("ec2:DescribeImages", image):
            try:
                answer = self._clients.get("ec2").describe_images(ImageIds=[image])
            except ClientError as error:
                if code_of(error) not in NO_IMAGE:
                    raise
                return False
        return any(one.get("State") == "available" for one in answer.get("Images", ()))

    def _described(self, template: LaunchTemplateRef) -> dict[str, Any]:
        with aws_call("ec2:DescribeLaunchTemplateVersions", template.label):
            try:
                answer = self._clients.get("ec2").describe_launch_template_versions(
                    **_which(template), Versions=[template.version]
                )
            except ClientError as error:
                if code_of(error) not in NO_TEMPLATE:
                    raise
                raise ObjectGoneError(f"{template.label}: {code_of(error)}: {message_of(error)}") from error
        found: dict[str, Any] | None = next(iter(answer.get("LaunchTemplateVersions", ())), None)
        if found is None:
            raise ObjectGoneError(f"{template.label}: there is no such version")
        return found


def _which(template: LaunchTemplateRef) -> dict[str, str]:
    """Name the template by id or by name: EC2 refuses both."""
    return {"LaunchTemplateId": template.id} if template.id else {"LaunchTemplateName": template.name}


def _latest(template: LaunchTemplateRef) -> LaunchTemplateRef:
    return LaunchTemplateRef(id=template.id, name=template.name, version="$Latest")


def _ref(described: dict[str, Any]) -> LaunchTemplateRef:
    return LaunchTemplateRef(
        id=described.get("LaunchTemplateId") or "",
        name=described.get("LaunchTemplateName") or "",
        version=str(described["VersionNumber"]),
    )


def _image_of(value: str) -> str:
    if not value.lstrip().startswith("{"):
        return value.strip()
    try:
        return str(json.loads(value).get("image_id", ""))
    except ValueError:
        return ""
