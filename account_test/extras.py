"""Checks before anything is made that the key, the secret, the other account and the subnets of functions exist and can
be used.
"""

from collections.abc import Iterator
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from account_test.aws import Aws, is_gone
from account_test.errors import PreflightError
from account_test.run import Run

SYMMETRIC = "SYMMETRIC_DEFAULT"


def check(run: Run, aws: Aws) -> list[str]:
    """Return notes that do not stop the run. Raises PreflightError."""
    notes: list[str] = []
    if run.kms_key:
        notes += _key(run, aws)
    if run.webhook_secret:
        notes += _secret(run, aws)
    if run.function_subnets:
        notes += _way_out(run, aws)
    return notes


def member_of(run: Run, aws: Aws) -> Aws:
    """Return the clients of the other account. Raises PreflightError where its role cannot be assumed."""
    try:
        return aws.assumed(run.member)
    except (ClientError, BotoCoreError) as error:
        raise PreflightError(
            f"--member: role {run.member} cannot be assumed: {error}. Fix: its trust policy must name your role"
        ) from error


def _key(run: Run, aws: Aws) -> Iterator[str]:
    try:
        found = aws("kms").describe_key(KeyId=run.kms_key)["KeyMetadata"]
    except (ClientError, BotoCoreError) as error:
        if is_gone(error):
            raise PreflightError(f"--kms-key: there is no key {run.kms_key}. Fix: aws kms list-keys") from error
        yield f"the KMS key was not looked at: {error}"
        return
    if (found.get("KeyState", "Enabled"), found.get("KeySpec", SYMMETRIC)) != ("Enabled", SYMMETRIC):
        raise PreflightError(
            f"--kms-key: the key is {found.get('KeyState')}, {found.get('KeySpec')}, expected an enabled symmetric one"
        )
    yield (
        f"the key's policy must name what this test deploys: {run.names.prefix}-* or *leeward-* where "
        "docs/deploy.md, `A KMS key of your own`, has leeward-*"
    )


def _secret(run: Run, aws: Aws) -> Iterator[str]:
    try:
        aws("secretsmanager").describe_secret(SecretId=run.webhook_secret)
    except (ClientError, BotoCoreError) as error:
        if is_gone(error):
            raise PreflightError(
                f"--webhook-secret: there is no secret {run.webhook_secret}. Fix: aws secretsmanager list-secrets"
            ) from error
        yield f"the secret was not looked at: {error}"


def _way_out(run: Run, aws: Aws) -> Iterator[str]:
    """Return a note where a subnet of functions has no route out: a function has no public address of its own."""
    try:
        blind = [subnet for subnet in run.function_subnets if not _routed(aws, subnet)]
    except (ClientError, BotoCoreError) as error:
        yield f"the routes of the subnets were not looked at: {error}"
        return
    if blind:
        yield (
            f"{', '.join(blind)} have no route to a NAT gateway: functions there need the VPC endpoints of "
            "docs/deploy.md, `Private API servers`, or the step `deploy with vpc` will be broken"
        )


def _routed(aws: Aws, subnet: str) -> bool:
    """Return whether the subnet's route table, else its VPC's main one, leads out by other than an internet gateway."""
    ec2 = aws("ec2")
    tables = _tables(ec2, {"association.subnet-id": subnet})
    if not tables:
        vpc = ec2.describe_subnets(SubnetIds=[subnet])["Subnets"][0]["VpcId"]
        tables = _tables(ec2, {"vpc-id": vpc, "association.main": "true"})
    routes = [route for table in tables for route in table["Routes"]]
    return any(
        route.get("DestinationCidrBlock") == "0.0.0.0/0" and not str(route.get("GatewayId") or "").startswith("igw-")
        for route in routes
    )


def _tables(ec2: Any, filters: dict[str, str]) -> list[dict[str, Any]]:
    given = [{"Name": name, "Values": [value]} for name, value in filters.items()]
    return list(ec2.describe_route_tables(Filters=given)["RouteTables"])
