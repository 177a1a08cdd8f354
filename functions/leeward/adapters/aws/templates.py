"""`ports.compute.Templates` on EC2 and SSM: versions of launch templates, and the images for them."""

import json
from typing import Any

from botocore.exceptions import ClientError

from leeward.adapters.aws.clients import AwsClients
from leeward.adapters.aws.errors import aws_call, code_of, message_of
from leeward.adapters.aws.launch_templates import NO_TEMPLATE
from leeward.errors import InvalidInputError, ObjectGoneError
from leeward.model.launch import LaunchTemplateRef

NO_IMAGE = frozenset({"InvalidAMIID.Malformed", "InvalidAMIID.NotFound", "InvalidAMIID.Unavailable"})


class Ec2Templates:
    """Templates by CreateLaunchTemplateVersion, DescribeLaunchTemplateVersions, DescribeImages and GetParameter."""

    def __init__(self, clients: AwsClients) -> None:
        self._clients = clients

    def version_for(self, template: LaunchTemplateRef, image: str, *, token: str) -> LaunchTemplateRef:
        """Return the version itself where it has the image already. Else idempotent twice: by EC2's client token, which
        expires, and by the version's description, which holds the token, as long as that version is the latest.

        Raises ObjectGoneError for a template or version that does not exist.
        """
        source, latest = self._described(template), self._described(_latest(template))
        mark = f"leeward {token}"
        for one in (source, latest):
            made = one.get("VersionDescription") == mark
            if made or (one is source and (one.get("LaunchTemplateData") or {}).get("ImageId") == image):
                return _ref(one)
        with aws_call("ec2:CreateLaunchTemplateVersion", f"{template.told} with {image}"):
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
        with aws_call("ec2:DescribeLaunchTemplateVersions", template.told):
            try:
                answer = self._clients.get("ec2").describe_launch_template_versions(
                    **_which(template), Versions=[template.version]
                )
            except ClientError as error:
                if code_of(error) not in NO_TEMPLATE:
                    raise
                raise ObjectGoneError(f"{template.told}: {code_of(error)}: {message_of(error)}") from error
        found: dict[str, Any] | None = next(iter(answer.get("LaunchTemplateVersions", ())), None)
        if found is None:
            raise ObjectGoneError(f"{template.told}: there is no such version")
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
