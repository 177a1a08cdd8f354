"""Live commands: whose credentials they use, and what an error says about account and Region.

Decides the fix that stands beside an error of AWS; the adapters decide which error it is."""

import argparse
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from leeward.cli.member import REFUSED, access_of, misplaced
from leeward.cli.nearest import did_you_mean
from leeward.errors import AccessDeniedError, AwsUnreachableError, InvalidInputError, LeewardError, ObjectGoneError

if TYPE_CHECKING:
    from leeward.ports import Ports

ELSEWHERE = "--region, --profile or AWS_PROFILE name another place"
BAD_CREDENTIALS = (
    "sts:GetCallerIdentity",  # needs no permission: it fails for want of valid credentials alone
    "Unable to locate credentials",
    "Error when retrieving",  # credentials or a token: of a process, of SSO
    "ExpiredToken",
    "InvalidClientTokenId",
    "UnrecognizedClientException",
    "MissingAuthenticationToken",
)
DESCRIBE_CLUSTER = "eks:DescribeCluster"
VARIABLES = ("AWS_REGION", "AWS_DEFAULT_REGION")


class UnknownGroupError(InvalidInputError):
    """No Auto Scaling group of this name has the cluster's tag where the command looks."""


def live_ports(arguments: argparse.Namespace) -> "Ports":
    """Return the ports of --cluster, and note account and Region in the arguments, for errors that come later."""
    from leeward.adapters import wiring  # late: offline needs no AWS library

    access = access_of(arguments)
    ports = wiring.command_line_ports(arguments.cluster, arguments.region, arguments.account, **access)
    note_origin(arguments, ports.origins)
    return ports


def note_origin(arguments: argparse.Namespace, origins: Iterable[tuple[str, str]]) -> None:
    """Note where the command looks, `account ID, Region NAME`."""
    arguments.origin = next((f"account {account}, Region {region}" for account, region in origins), "")


def explained(error: LeewardError, arguments: argparse.Namespace | None) -> LeewardError:
    """Return the error with account, Region and the fix, the error itself where it is not about AWS."""
    if arguments is None or arguments.snapshot is not None:
        return error
    text, origin = str(error), arguments.origin
    if isinstance(error, ObjectGoneError) and DESCRIBE_CLUSTER in text:
        return no_cluster(arguments, error)
    denied = isinstance(error, AccessDeniedError)
    if isinstance(error, UnknownGroupError) or (denied and DESCRIBE_CLUSTER in text):
        error = misplaced(arguments) or error
    if isinstance(error, InvalidInputError) or REFUSED in text:
        return error
    if denied and any(one in text for one in BAD_CREDENTIALS):
        from leeward.doctor.checks.account import LOG_IN  # late: a command that succeeds needs no check

        fix = LOG_IN.replace("aws sso login", f"aws sso login --profile {arguments.profile}")
        return type(error)(f"{text}; {fix if arguments.profile else LOG_IN}")
    place = f" ({origin})" if origin and origin not in text else ""
    if isinstance(error, AwsUnreachableError):
        from leeward.doctor.checks.account import REACH  # late, as above

        return type(error)(f"{text}{place}{_doubt(arguments) or f'; {REACH}'}")
    return type(error)(f"{text}{place}") if place else error


def no_cluster(arguments: argparse.Namespace, error: LeewardError) -> InvalidInputError:
    """Return the error for a cluster that EKS does not have in the account and Region of the call: where it is, if the
    deployment knows it elsewhere.
    """
    elsewhere = misplaced(arguments)
    if elsewhere is not None:
        return elsewhere
    where = arguments.origin or "this account and Region"
    return InvalidInputError(
        f"--cluster: found no cluster {arguments.cluster!r} in {where} ({error}), expected the name of one there: "
        f"aws eks list-clusters{_options(arguments)} shows them; {ELSEWHERE}"
    )


def _options(arguments: argparse.Namespace) -> str:
    """Return the options with which the AWS CLI looks where the command does."""
    given = {"profile": arguments.profile, "region": arguments.region}
    return "".join(f" --{name} {value}" for name, value in given.items() if value)


def _doubt(arguments: argparse.Namespace) -> str:
    """Return a doubt about the Region where botocore does not list it, empty where it does."""
    from leeward.adapters import wiring

    named = [("--region", arguments.region), *((name, os.environ.get(name)) for name in VARIABLES)]
    source, region = next(((source, value) for source, value in named if value), ("", ""))
    known = wiring.known_regions()
    if not region or region in known:
        return ""
    return f"; {source}: found {region!r}, expected an AWS Region{did_you_mean(region, known)}"
