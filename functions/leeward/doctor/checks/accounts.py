"""Checks of clusters in other accounts and Regions: each function can assume its role there, with the external id.

The caller's own credentials reach no such cluster: what is checked at home of a cluster is not checked there."""

from collections.abc import Iterator

from leeward.doctor.facts import Facts, Served
from leeward.doctor.finding import About, Check, Finding
from leeward.doctor.reading import UnreadFact


def roles(facts: Facts) -> Iterator[Finding]:
    """Check that every function can act in the account and Region of each cluster elsewhere."""
    for cluster in facts.elsewhere:
        for function, answer in facts.accounts.items():
            role = f"{cluster.member_role.rpartition('/')[2]}-{function.removeprefix('leeward-')}"
            about = About(Check.MEMBER_ROLE, f"role {role} in {cluster.account}/{cluster.region}")
            if isinstance(answer, UnreadFact):
                yield about.unknown(answer)
            elif cluster.name not in answer:
                yield about.failed(f"{function} does not serve cluster {cluster.name}", "cdk deploy Leeward")
            elif answer[cluster.name]:
                yield about.failed(answer[cluster.name], _fix(cluster))
            else:
                yield about.ok(f"{function} assumes it")


def _fix(cluster: Served) -> str:
    """Return the way to deploy the member stack again. The external id is no secret: CLUSTERS shows it as well."""
    stack = f"Leeward-member-{cluster.account}-{cluster.region}"
    return (
        f"cdk deploy {stack} with credentials of account {cluster.account}: its roles then trust the functions with "
        f"the external id {cluster.external_id}"
    )
