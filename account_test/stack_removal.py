"""Removal of a stack and of what AWS leaves of its functions: network interfaces and late log groups.

CloudFormation waits for Lambda's network interfaces, for up to 40 minutes; where it stops waiting, the interfaces stay
in the subnets and block their deletion. An interface that is available is deleted here, one in use is waited for.
"""

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from botocore.exceptions import ClientError

from account_test.aws import Aws, gone_is_fine
from account_test.cloudformation import GONE, Failure, failure_of, status_of
from account_test.errors import AccountTestError

Say = Callable[[str], None]
TRIES = 3  # a deletion that failed for a dependency succeeds once that is gone
DELETE_SECONDS = 3600
INTERFACE_SECONDS = 2400
REPORT_SECONDS = 120
LATE_LOGS_LOOKS = 3
DESCRIPTION = "AWS Lambda VPC ENI-"  # of a function's network interface; the function's name and an id follow
DESCRIBE = "describe_network_interfaces"


def remove_stack(aws: Aws, name: str, *, pause: float, say: Say) -> None:
    """Delete a stack and wait for it. A failed deletion is repeated. Raises AccountTestError with the resource that
    stays and the reason.
    """
    failure: Failure | None = None
    for _ in range(TRIES):
        gone_is_fine(lambda: aws("cloudformation").delete_stack(StackName=name))
        if _deleted(aws, name, pause, say):
            return
        failure = failure_of(aws, name)
        say(f"{failure.sentence if failure else f'stack {name} is DELETE_FAILED'}; it is deleted again")
    raise AccountTestError(failure.sentence if failure else f"stack {name} is DELETE_FAILED")


def _deleted(aws: Aws, name: str, pause: float, say: Say) -> bool:
    """Wait until the stack is gone; return False where its deletion has failed. Raises AccountTestError."""
    began = reported = time.monotonic()
    while (status := status_of(aws, name)) != GONE:
        if status == "DELETE_FAILED":
            return False
        now = time.monotonic()
        if now - began > DELETE_SECONDS:
            raise AccountTestError(f"stack {name} is {status} for {DELETE_SECONDS // 60} minutes")
        if now - reported > REPORT_SECONDS:
            reported = now
            say(f"stack {name} is {status} for {(now - began) / 60:.0f} min; network interfaces of functions take 40")
        time.sleep(pause)
    return True


def remove_late_logs(aws: Aws, prefix: str, pause: float) -> None:
    """Delete log groups that Lambda recreates when a call ends after the stack has deleted function and log group."""
    client = aws("logs")
    for look in range(LATE_LOGS_LOOKS):
        if look:
            time.sleep(pause)
        pages = client.get_paginator("describe_log_groups").paginate(logGroupNamePrefix=prefix)
        for name in [group["logGroupName"] for page in pages for group in page["logGroups"]]:
            gone_is_fine(partial(client.delete_log_group, logGroupName=name))


def interfaces(aws: Aws, prefix: str, subnets: list[str]) -> Iterator[dict[str, Any]]:
    """Return the network interfaces in these subnets that Lambda has made for functions of these names."""
    filters = [
        {"Name": "subnet-id", "Values": subnets},
        {"Name": "description", "Values": [f"{DESCRIPTION}{prefix}*"]},
    ]
    for page in aws("ec2").get_paginator(DESCRIBE).paginate(Filters=filters):
        yield from page["NetworkInterfaces"]


def remove_interfaces(aws: Aws, prefix: str, subnets: list[str], *, pause: float, say: Say) -> None:
    """Delete the interfaces that are available, and wait for the others. One that stays is named: AWS keeps it while
    another function uses the same subnets and security groups.
    """
    began = reported = time.monotonic()
    while found := list(interfaces(aws, prefix, subnets)):
        for one in found:
            if one["Status"] == "available":
                _delete(aws, one["NetworkInterfaceId"])
        now = time.monotonic()
        if now - began > INTERFACE_SECONDS:
            say(f"network interfaces stay: {', '.join(one['NetworkInterfaceId'] for one in found)}")
            return
        if now - reported > REPORT_SECONDS:
            reported = now
            say(f"waiting for {len(found)} network interfaces of functions, which AWS removes within 40 minutes")
        time.sleep(pause)


def _delete(aws: Aws, interface: str) -> None:
    try:
        gone_is_fine(lambda: aws("ec2").delete_network_interface(NetworkInterfaceId=interface))
    except ClientError as error:
        if "InUse" not in str(error) and "in use" not in str(error):
            raise
