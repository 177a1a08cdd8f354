"""Checks of the credentials, and of whether their account and Region hold anything of Leeward."""

from collections.abc import Iterator

from leeward.doctor import expected
from leeward.doctor.facts import Facts, Identity
from leeward.doctor.finding import About, Check, Finding
from leeward.doctor.reading import Unavailable
from leeward.model.concurrency import QUOTA, RAISE, STARTER, shortage

_ABOUT = About(Check.CREDENTIALS, "AWS credentials")


def credentials(facts: Facts) -> Iterator[Finding]:
    """Report the identity of the caller."""
    who = facts.identity
    yield _ABOUT.ok(f"{who.arn}, account {who.account}, region {who.region}")


def concurrency(facts: Facts) -> Iterator[Finding]:
    """Check the account's quota: before a first deployment whether it fits, afterwards whether a burst does."""
    about = About(Check.CONCURRENCY, f"account {facts.identity.account}, region {facts.identity.region}")
    found = facts.concurrency
    if isinstance(found, Unavailable):
        yield about.unknown(found)
        return
    why = shortage(found, wanted=expected.RESERVED) if facts.nothing_deployed else ""
    if not why and not facts.nothing_deployed and found.limit <= STARTER:
        why = f"the quota 'Concurrent executions' of Lambda ({QUOTA}) is {found.limit}: a burst of events is throttled"
    yield about.warning(why, RAISE) if why else about.ok(f"{found.limit} concurrent executions")


def without_credentials(missing: Unavailable) -> tuple[Finding, ...]:
    """Return the only finding without credentials: nothing else can be read."""
    return (
        _ABOUT.failed(
            missing.reason, "log in (aws sso login, or set AWS_PROFILE) and name the region (--region or AWS_REGION)"
        ),
    )


def nothing_there(who: Identity) -> Finding:
    """Return one finding instead of one for each part."""
    return About(Check.DEPLOYMENT, f"account {who.account}, region {who.region}").failed(
        "no function of Leeward is there", "cdk deploy, or name the account's profile and the region where it is"
    )
