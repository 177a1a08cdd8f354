"""General options, and values that options take, each refused with what was found and what was expected.

Every command takes the general options; `leeward options` shows them, and no other help does."""

import argparse
import re
from datetime import datetime
from pathlib import Path

from leeward.cli.output import Output
from leeward.model.times import parse_instant

GENERAL = "general options"


def instant(text: str) -> datetime:
    """Parse an RFC 3339 time. Raises ArgumentTypeError."""
    try:
        return parse_instant(text)
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(
            f"found {text!r}, expected an RFC 3339 time such as 2024-05-01T12:00:00Z"
        ) from None


def seed(text: str) -> int:
    """Parse a whole number. Raises ArgumentTypeError."""
    if not re.fullmatch(r"-?\d{1,18}", text, re.ASCII):
        raise argparse.ArgumentTypeError(f"found {text!r}, expected a whole number")
    return int(text)


def cluster(text: str) -> str:
    """Check an EKS cluster's name by EKS's own rule. Raises ArgumentTypeError."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}", text):
        raise argparse.ArgumentTypeError(f"found {text!r}, expected the name of an EKS cluster")
    return text


def account(text: str) -> str:
    """Check an AWS account id. Raises ArgumentTypeError."""
    if not re.fullmatch(r"\d{12}", text, re.ASCII):
        raise argparse.ArgumentTypeError(f"found {text!r}, expected twelve digits")
    return text


def region(text: str) -> str:
    """Check the name of an AWS Region. Raises ArgumentTypeError."""
    if not re.fullmatch(r"[a-z]{2,}(-[a-z0-9]+)+", text):
        raise argparse.ArgumentTypeError(f"found {text!r}, expected an AWS region such as us-east-1")
    return text


def add_general_options(parser: argparse.ArgumentParser) -> None:
    """Add the general options without defaults: options before the verb must survive the command's own parsing."""
    group = parser.add_argument_group(GENERAL)
    absent = argparse.SUPPRESS
    group.add_argument("--cluster", metavar="NAME", type=cluster, default=absent, help="the EKS cluster (live)")
    group.add_argument(
        "--snapshot", metavar="DIR", type=Path, default=absent, help="work offline on a folder of raw tool output"
    )
    group.add_argument(
        "--now", metavar="TIME", type=instant, default=absent, help="the present, RFC 3339 (default: the clock's)"
    )
    group.add_argument(
        "-o",
        "--output",
        choices=[output.value for output in Output],
        default=absent,
        help="default: table, of inspect template: yaml; wide: more columns, name: only names",
    )
    group.add_argument("--no-headers", action="store_true", default=absent, help="tables: only their rows")
    group.add_argument(
        "--sort-by", metavar="COLUMN", default=absent, help="tables: rows by this column, such as NODE or price"
    )
    group.add_argument("--seed", metavar="N", type=seed, default=absent, help="decides what is random (default: 0)")
    group.add_argument("--account", metavar="ID", type=account, default=absent, help="AWS account, twelve digits")
    group.add_argument("--region", metavar="NAME", type=region, default=absent, help="AWS Region")
    group.add_argument("--profile", metavar="NAME", default=absent, help="profile of your AWS configuration")
    group.add_argument(
        "--cluster-profile",
        metavar="NAME",
        default=absent,
        help="profile of the account that has the cluster, where the deployment is in another",
    )
    group.add_argument(
        "--cluster-region",
        metavar="NAME",
        type=region,
        default=absent,
        help="AWS Region of the cluster, where the deployment is in another (default: known to the deployment)",
    )
