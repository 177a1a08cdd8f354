"""Options of the command as a person types them, checked before anything is made. Each error names the option, what
it found and what it expected.
"""

import re
from collections.abc import Sequence

from account_test.errors import PreflightError

_SUBNET = re.compile(r"subnet-[0-9a-f]{8,17}")
_SECURITY_GROUP = re.compile(r"sg-[0-9a-f]{8,17}")
_KEY = re.compile(r"arn:aws[a-z-]*:kms:([a-z0-9-]+):\d{12}:key/(mrk-)?[0-9a-f-]{32,36}")
_SECRET = re.compile(r"arn:aws[a-z-]*:secretsmanager:([a-z0-9-]+):\d{12}:secret:[\w/+=.@-]+")
_MEMBER = re.compile(r"(\d{12})/([\w+=,.@/-]+)")
_RUN = re.compile(r"[0-9a-z]+")


def listed(option: str, text: str) -> tuple[str, ...]:
    """Return the ids of `--subnets` or `--security-groups`. Raises PreflightError."""
    pattern, example = {
        "--subnets": (_SUBNET, "subnet-0123456789abcdef0"),
        "--security-groups": (_SECURITY_GROUP, "sg-0123456789abcdef0"),
    }[option]
    ids = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    for one in ids:
        if not pattern.fullmatch(one):
            raise PreflightError(f"{option}: found {one!r}, expected ids by commas, such as {example}")
    return ids


def kms_key(text: str, region: str) -> str:
    """Return the ARN of `--kms-key`. Raises PreflightError."""
    return _arn_in(region, "--kms-key", text, _KEY, "the ARN of a KMS key, arn:aws:kms:REGION:ACCOUNT:key/ID, no alias")


def webhook_secret(text: str, region: str) -> str:
    """Return the ARN of `--webhook-secret`. Raises PreflightError."""
    expected = "the ARN of a secret, as `aws secretsmanager create-secret` prints it"
    return _arn_in(region, "--webhook-secret", text, _SECRET, expected)


def member(text: str, account: str, partition: str) -> str:
    """Return the ARN of the role that `--member ACCOUNT/ROLE` names. Raises PreflightError."""
    if not text:
        return ""
    found = _MEMBER.fullmatch(text)
    if not found:
        raise PreflightError(
            f"--member: found {text!r}, expected ACCOUNT/ROLE: another account, and a role there that you may assume "
            "and that may deploy, such as 222233334444/OrganizationAccountAccessRole"
        )
    if found[1] == account:
        raise PreflightError(f"--member: found the run's own account {account}, expected another one")
    return f"arn:{partition}:iam::{found[1]}:role/{found[2]}"


def run_id(text: str) -> str:
    """Return the id of `--remove`. Raises PreflightError."""
    if not _RUN.fullmatch(text):
        raise PreflightError(f"--remove: found {text!r}, expected the id of a run, as its first line names it")
    return text


def words(text: str, names: Sequence[str]) -> list[str]:
    """Return the words of `--only`; each must be part of a step's name. Raises PreflightError."""
    wanted = [word.strip() for word in text.split(",") if word.strip()]
    for word in wanted:
        if not any(word in name for name in names):
            raise PreflightError(f"--only: no step is named like {word!r}. The steps: {', '.join(names)}")
    return wanted


def _arn_in(region: str, option: str, text: str, pattern: re.Pattern[str], expected: str) -> str:
    if not text:
        return ""
    found = pattern.fullmatch(text)
    if not found:
        raise PreflightError(f"{option}: found {text!r}, expected {expected}")
    if found[1] != region:
        raise PreflightError(f"{option}: found one in {found[1]}, expected one in {region}, the Region of the test")
    return text
