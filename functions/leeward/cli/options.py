"""Values that options take, each refused with what was found and what was expected."""

import argparse
import re
from datetime import datetime

from leeward.model.times import parse_instant


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
