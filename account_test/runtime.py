"""Version of the SDK in Lambda's runtime, from a function of its own that reports it and is deleted."""

import io
import json
import time
import zipfile
from pathlib import Path

from botocore.exceptions import ClientError

from account_test.aws import served
from account_test.context import Context
from account_test.errors import StepError
from account_test.foundation import trust_of
from account_test.judge import Finding
from account_test.results import Difference, Result
from account_test.run import ROOT
from infra.bytecode import RUNTIME

PROVES = "the SDK of Lambda's runtime is one that Leeward's asset is tested with"
ROLE_SECONDS = 60
SOURCE = """import sys

import boto3
import botocore


def handle(event, context):
    client = boto3.client("autoscaling")
    return {
        "python": sys.version.split()[0],
        "botocore": botocore.__version__,
        "launches": hasattr(client, "launch_instances"),
    }
"""


def oldest(root: Path = ROOT) -> tuple[int, ...]:
    """Return the oldest botocore that tests run the asset with."""
    lines = (root / "functions" / "oldest-sdk.txt").read_text(encoding="utf-8").splitlines()
    found = next(line for line in lines if line.startswith("botocore=="))
    return version(found.removeprefix("botocore==").split()[0])


def version(text: str) -> tuple[int, ...]:
    """Return a version such as 1.40.76 as numbers."""
    return tuple(int(part) for part in text.split(".")[:3])


def check(context: Context) -> Result:
    """Check the runtime's SDK. Raises StepError where the function cannot be made."""
    reported = _ask(context)
    found, least = str(reported["botocore"]), oldest()
    same = bool(reported["launches"])
    return Result(
        name="SDK of the runtime",
        proves=PROVES,
        findings=[
            Finding(
                promise=f"botocore is {'.'.join(map(str, least))} or newer",
                kept=version(found) >= least,
                found=f"Python {reported['python']}, botocore {found}",
            )
        ],
        differences=[
            Difference(
                about="the runtime's own SDK and LaunchInstances",
                model="it may not know it: the asset brings the model along",
                measured=f"botocore {found} {'knows' if same else 'does not know'} it",
                same=True,
            )
        ],
    )


def _ask(context: Context) -> dict[str, object]:
    run, client, name = context.run, context.aws("lambda"), context.run.name("sdk")
    context.journal.making("role", name)
    tags = [{"Key": key, "Value": value} for key, value in run.tags.items()]
    role = context.aws("iam").create_role(
        RoleName=name, AssumeRolePolicyDocument=trust_of("lambda.amazonaws.com"), Tags=tags
    )["Role"]["Arn"]
    context.journal.making("log-group", f"/aws/lambda/{name}")
    context.journal.making("function", name)
    deadline = time.monotonic() + ROLE_SECONDS
    while True:
        try:
            with served("lambda:CreateFunction"):
                client.create_function(
                    FunctionName=name,
                    Runtime=f"python{RUNTIME}",
                    Architectures=["arm64"],
                    Role=role,
                    Handler="sdk.handle",
                    Code={"ZipFile": _zipped()},
                    Timeout=30,
                    Tags=run.tags,
                )
            break
        except ClientError as error:  # a role that was just made is not known to Lambda for some seconds
            if "role" not in str(error) or time.monotonic() > deadline:
                raise StepError(f"function {name}: {error}") from error
            time.sleep(3)
    client.get_waiter("function_active_v2").wait(FunctionName=name)
    answer = client.invoke(FunctionName=name)
    found: dict[str, object] = json.loads(answer["Payload"].read())
    if "FunctionError" in answer:
        raise StepError(f"function {name}: {found.get('errorMessage')}")
    return found


def _zipped() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("sdk.py", SOURCE)
    return buffer.getvalue()
