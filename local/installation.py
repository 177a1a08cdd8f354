"""Installation of a package (`make package`) on the local stack, by the calls that docs/install.md makes by command:
the asset into a bucket, then the stack from its template.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from local.stack import LocalStack, LocalStackError

BUCKET = "leeward-assets"
PREFIX = "leeward/"
NAME = "Leeward"  # of the CloudFormation stack
CAPABILITIES = ["CAPABILITY_NAMED_IAM"]
OFTEN = {"Delay": 1, "MaxAttempts": 600}  # the local CloudFormation takes seconds, more on a busy machine


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """Files of one package: the template, and the asset whose name it knows."""

    template: Path
    asset: Path

    @classmethod
    def in_folder(cls, folder: Path) -> "Package":
        """Return the package that `make package` has written to a folder."""
        (template,) = folder.glob("*.template.json")
        (asset,) = folder.glob("*.zip")
        return cls(template=template, asset=asset)


def install(stack: LocalStack, package: Package, parameters: Mapping[str, str]) -> None:
    """Create the stack. Raises LocalStackError with the events of what failed."""
    stack.client("s3").create_bucket(Bucket=BUCKET)
    _deploy(stack, "create", package, [{"ParameterKey": key, "ParameterValue": parameters[key]} for key in parameters])


def update(stack: LocalStack, package: Package) -> None:
    """Update the stack in place, its parameters as they are. Raises LocalStackError as `install` does."""
    (found,) = stack.client("cloudformation").describe_stacks(StackName=NAME)["Stacks"]
    kept = [{"ParameterKey": each["ParameterKey"], "UsePreviousValue": True} for each in found["Parameters"]]
    _deploy(stack, "update", package, kept)


def outputs(stack: LocalStack) -> dict[str, str]:
    """Return the stack's outputs."""
    (found,) = stack.client("cloudformation").describe_stacks(StackName=NAME)["Stacks"]
    return {output["OutputKey"]: output["OutputValue"] for output in found.get("Outputs", ())}


def physical_ids(stack: LocalStack) -> dict[str, tuple[str, str]]:
    """Return logical id -> (type, physical id) of every resource of the stack."""
    pages = stack.client("cloudformation").get_paginator("list_stack_resources").paginate(StackName=NAME)
    found = [each for page in pages for each in page["StackResourceSummaries"]]
    return {each["LogicalResourceId"]: (each["ResourceType"], each.get("PhysicalResourceId", "")) for each in found}


def _deploy(stack: LocalStack, verb: str, package: Package, parameters: list[dict[str, Any]]) -> None:
    s3, cloudformation = stack.client("s3"), stack.client("cloudformation")
    for path in (package.asset, package.template):
        s3.upload_file(str(path), BUCKET, f"{PREFIX}{path.name}")
    change = cloudformation.create_stack if verb == "create" else cloudformation.update_stack
    url = f"{stack.endpoint}/{BUCKET}/{PREFIX}{package.template.name}"
    change(StackName=NAME, TemplateURL=url, Parameters=parameters, Capabilities=CAPABILITIES)
    try:
        cloudformation.get_waiter(f"stack_{verb}_complete").wait(StackName=NAME, WaiterConfig=OFTEN)
    except Exception as error:
        raise LocalStackError(f"{verb}-stack: {error}; {json.dumps(failures(stack))}") from error
    stack.take_over_access_entries()


def failures(stack: LocalStack) -> list[str]:
    """Return the reason of each resource of the stack that failed."""
    events = stack.client("cloudformation").describe_stack_events(StackName=NAME)["StackEvents"]
    failed = [event for event in events if event["ResourceStatus"].endswith("FAILED")]
    return [f"{event['LogicalResourceId']}: {event.get('ResourceStatusReason', '')}" for event in failed]
