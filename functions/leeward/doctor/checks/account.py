"""Whose credentials these are, and whether anything of Leeward is where they lead."""

from collections.abc import Iterator

from leeward.doctor.facts import Facts, Identity, Unread
from leeward.doctor.finding import About, Check, Finding

_ABOUT = About(Check.CREDENTIALS, "AWS credentials")


def credentials(facts: Facts) -> Iterator[Finding]:
    """Who looks."""
    who = facts.identity
    yield _ABOUT.ok(f"{who.arn}, account {who.account}, region {who.region}")


def without_credentials(unread: Unread) -> tuple[Finding, ...]:
    """Nothing else can be read."""
    return (
        _ABOUT.failed(
            unread.why, "log in (aws sso login, or set AWS_PROFILE) and name the region (--region or AWS_REGION)"
        ),
    )


def nothing_there(who: Identity) -> Finding:
    """One sentence instead of one for each part."""
    return About(Check.DEPLOYMENT, f"account {who.account}, region {who.region}").failed(
        "no function of Leeward is there", "cdk deploy, or name the account's profile and the region where it is"
    )
