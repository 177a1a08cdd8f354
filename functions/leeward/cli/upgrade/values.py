"""Values that the options of an upgrade take, each refused with what was found and what was expected."""

import argparse
import re

from leeward.cli.nearest import did_you_mean
from leeward.upgrade.preflight.findings import Code


def image(text: str) -> str:
    """Check an image id, or the alias or SSM parameter of an image. Raises ArgumentTypeError."""
    if not re.fullmatch(r"ami-[0-9a-f]{8,17}|/[A-Za-z0-9_./-]{1,1000}|al2023@1\.\d{1,3}", text, re.ASCII):
        raise argparse.ArgumentTypeError(
            f"found {text!r}, expected an image id such as ami-0123456789abcdef0, an SSM parameter below "
            "/aws/service/eks/, or al2023@VERSION such as al2023@1.33"
        )
    return text


def version(text: str) -> str:
    """Check a launch template version. Raises ArgumentTypeError."""
    if not re.fullmatch(r"\$Latest|\$Default|[1-9]\d{0,8}", text, re.ASCII):
        raise argparse.ArgumentTypeError(f"found {text!r}, expected a version number, $Latest or $Default")
    return text


def kubernetes(text: str) -> str:
    """Check a Kubernetes version. Raises ArgumentTypeError."""
    if not re.fullmatch(r"1\.\d{1,3}", text, re.ASCII):
        raise argparse.ArgumentTypeError(f"found {text!r}, expected a Kubernetes version such as 1.31")
    return text


def code(text: str) -> Code:
    """Parse the code of a finding. Raises ArgumentTypeError."""
    try:
        return Code(text)
    except ValueError:
        hint = did_you_mean(text, Code)
        raise argparse.ArgumentTypeError(f"found {text!r}, expected one of {', '.join(Code)}{hint}") from None
