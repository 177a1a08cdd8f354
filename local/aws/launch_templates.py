"""CreateLaunchTemplateVersion with a source version and a client token, and DescribeLaunchTemplateVersions with
ResolveAlias, all of which moto accepts and ignores.

Rules from the EC2 API reference: the request's parameters override those of the source version, the rest is copied; the
same token with the same request answers with the version that it made, with another request it is refused.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import boto3
from moto.core.responses import ActionResult
from moto.ec2.exceptions import EC2ClientError
from moto.ec2.models.launch_templates import LaunchTemplate
from moto.ec2.responses.launch_templates import LaunchTemplates

from local.aws.pins import expect_parameters, replace

_SSM_PREFIX = "resolve:ssm:"


class IdempotentParameterMismatch(EC2ClientError):
    """Error: a client token was used before for another request."""

    code = "IdempotentParameterMismatch"

    def __init__(self) -> None:
        super().__init__(self.code, "The request uses the same client token as a previous, but non-identical request.")


def install() -> None:
    """Patch moto's answer."""
    expect_parameters("moto", LaunchTemplates.create_launch_template_version, "self")
    expect_parameters("moto", LaunchTemplate.create_version, "self", "data", "description")
    replace(
        LaunchTemplates,
        create_launch_template_version=_create_version,
        describe_launch_template_versions=_resolving(LaunchTemplates.describe_launch_template_versions),
    )


def image_behind(image_id: str, region: str) -> str:
    """Return the image itself, or the present value of the SSM parameter that it names."""
    if not image_id.startswith(_SSM_PREFIX):
        return image_id
    name = image_id.removeprefix(_SSM_PREFIX)
    return str(boto3.client("ssm", region_name=region).get_parameter(Name=name)["Parameter"]["Value"])


def _resolving(original: Callable[[Any], ActionResult]) -> Callable[[Any], ActionResult]:
    """Resolve images in the answer: with `ResolveAlias` it has the image itself; the version keeps the parameter's
    name.
    """

    @functools.wraps(original)
    def describe(response: Any) -> ActionResult:
        answer = original(response)
        if response._get_bool_param("ResolveAlias", False):
            result: Any = answer.result
            for version in result["LaunchTemplateVersions"]:
                data = version["LaunchTemplateData"]
                if data.get("ImageId"):
                    version["LaunchTemplateData"] = {**data, "ImageId": image_behind(data["ImageId"], response.region)}
        return answer

    return describe


def _create_version(response: Any) -> ActionResult:
    template = _template(response)
    given = response._get_param("LaunchTemplateData", {})
    source, token = response._get_param("SourceVersion"), response._get_param("ClientToken")
    asked = (str(source), given, response._get_param("VersionDescription"))
    response.error_on_dryrun()
    known = _by_token(template).get(token)
    if known is not None and known[0] != asked:
        raise IdempotentParameterMismatch
    if known is None:
        data = {**(template.get_version(str(source)).data if source else {}), **given}
        known = asked, template.create_version(data, asked[2])
        if token:
            _by_token(template)[token] = known
    version = known[1]
    made = {
        "CreateTime": version.create_time,
        "CreatedBy": f"arn:{response.partition}:iam::{response.current_account}:root",
        "DefaultVersion": template.is_default(version),
        "LaunchTemplateData": version.data,
        "LaunchTemplateId": template.id,
        "LaunchTemplateName": template.name,
        "VersionDescription": version.description,
        "VersionNumber": version.number,
    }
    return ActionResult({"LaunchTemplateVersion": made})


def _template(response: Any) -> Any:
    name, backend = response._get_param("LaunchTemplateName"), response.ec2_backend
    if name:
        return backend.get_launch_template_by_name(name)
    return backend.get_launch_template(response._get_param("LaunchTemplateId"))


def _by_token(template: Any) -> dict[str, Any]:
    """Map client token -> (request, version)."""
    if not hasattr(template, "local_tokens"):
        template.local_tokens = {}
    found: dict[str, Any] = template.local_tokens
    return found
