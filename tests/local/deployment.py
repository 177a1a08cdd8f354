"""Deployment of the app on a local stack without the CDK's command line: the same template, made in this process.

Bootstrap and deployment by the command line start Node.js four times and take three times the CPU. `test_demo.py`
proves them, and the account test, which deploys as a user does."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from local.installation import CAPABILITIES, OFTEN, failures
from local.stack import ROOT, LocalStack, LocalStackError

NAME = "Leeward"
BOOTSTRAPPED = "/cdk-bootstrap/hnb659fds/version"  # the parameter that the template reads


def deploy(stack: LocalStack, settings: Mapping[str, Any]) -> None:
    """Create the CloudFormation stack of these settings. Raises LocalStackError with the events of what failed."""
    assembly = synthesize(stack, settings)
    stack.client("ssm").put_parameter(Name=BOOTSTRAPPED, Value="99", Type="String", Overwrite=True)
    upload(stack, assembly)
    cloudformation = stack.client("cloudformation")
    text = (assembly / f"{NAME}.template.json").read_text()
    url = f"{stack.endpoint}/{bucket(stack)}/{NAME}.template.json"
    stack.client("s3").put_object(Bucket=bucket(stack), Key=f"{NAME}.template.json", Body=text.encode())
    cloudformation.create_stack(StackName=NAME, TemplateURL=url, Capabilities=CAPABILITIES)
    try:
        cloudformation.get_waiter("stack_create_complete").wait(StackName=NAME, WaiterConfig=OFTEN)
    except Exception as error:
        raise LocalStackError(f"create-stack: {error}; {json.dumps(failures(stack))}") from error
    stack.take_over_access_entries()


def synthesize(stack: LocalStack, settings: Mapping[str, Any]) -> Path:
    """The folder of the cloud assembly."""
    from infra.program import build_app  # late: every worker collects the tests, few of them deploy

    context = json.loads((ROOT / "cdk.json").read_text())["context"]
    context["leeward"] = {"nodeRoles": [f"arn:aws:iam::{stack.account}:role/nodes"], **settings}
    folder = stack.directory / "cdk.out"
    home = {"CDK_DEFAULT_ACCOUNT": stack.account, "CDK_DEFAULT_REGION": stack.region}
    build_app(ROOT, home, context=context, outdir=str(folder)).synth()
    return folder


def upload(stack: LocalStack, assembly: Path) -> None:
    """Put the functions' code where the template says that it is."""
    s3 = stack.client("s3")
    s3.create_bucket(Bucket=bucket(stack))
    for asset in json.loads((assembly / f"{NAME}.assets.json").read_text())["files"].values():
        if asset["source"]["packaging"] == "zip":
            source = assembly / asset["source"]["path"]
            archive = shutil.make_archive(str(stack.directory / source.name), "zip", source)
            for place in asset["destinations"].values():
                s3.upload_file(archive, bucket(stack), place["objectKey"])


def bucket(stack: LocalStack) -> str:
    """The name of the bucket that `cdk bootstrap` makes."""
    return f"cdk-hnb659fds-assets-{stack.account}-{stack.region}"
