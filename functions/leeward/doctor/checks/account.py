"""Checks of the caller's credentials, of the account's Lambda concurrency, and for an account without a deployment."""

from collections.abc import Iterator

from leeward.doctor import expected
from leeward.doctor.facts import CallerIdentity, Facts
from leeward.doctor.finding import About, Check, Finding
from leeward.doctor.reading import UnreadFact
from leeward.model.concurrency import QUOTA, RAISE, STARTER, shortage
from leeward.model.counts import count_of

LOG_IN = "log in (aws sso login, or set AWS_PROFILE or --profile) and name the Region (--region or AWS_REGION)"
REACH = "see whether the endpoint can be reached from here: network, HTTPS_PROXY, AWS_ENDPOINT_URL, the Region's name"
_ABOUT = About(Check.CREDENTIALS, "AWS credentials")


def credentials(facts: Facts) -> Iterator[Finding]:
    """Report the identity of the caller; reading it has already succeeded."""
    identity = facts.identity
    yield _ABOUT.ok(f"{identity.arn}, account {identity.account}, region {identity.region}")


def concurrency(facts: Facts) -> Iterator[Finding]:
    """Check the quota of concurrent executions: before a first deployment whether the reserved concurrency fits,
    afterwards whether a burst of events does.
    """
    about = About(Check.CONCURRENCY, f"account {facts.identity.account}, region {facts.identity.region}")
    quota = facts.concurrency
    if isinstance(quota, UnreadFact):
        yield about.unknown(quota)
        return
    problem = ""
    if facts.nothing_deployed:
        problem = shortage(quota, wanted=expected.RESERVED)
    elif quota.limit <= STARTER:
        name = f"the quota 'Concurrent executions' of Lambda ({QUOTA})"
        problem = f"{name} is {quota.limit}: a burst of events is throttled"
    yield (
        about.warning(problem, RAISE) if problem else about.ok(f"{count_of(int(quota.limit), 'concurrent execution')}")
    )


def without_credentials(missing: UnreadFact) -> tuple[Finding, ...]:
    """Return the only finding of a run without credentials, which can read nothing else."""
    unreachable = "endpoint" in missing.reason  # botocore's word for an address that does not answer
    return (_ABOUT.failed(missing.reason, REACH if unreachable else LOG_IN),)


def nothing_deployed(identity: CallerIdentity) -> Finding:
    """Return the finding of an account and Region without a deployment, which replaces one finding for each part."""
    return About(Check.DEPLOYMENT, f"account {identity.account}, region {identity.region}").failed(
        "no function of Leeward is there", "cdk deploy, or name the account's profile and the region where it is"
    )
