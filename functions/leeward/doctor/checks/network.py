"""Checks of the path from functions in a VPC to AWS's APIs: a route out of their subnets, or an endpoint for each
service."""

from collections.abc import Iterator

from leeward.doctor import expected
from leeward.doctor.facts import Facts, Network
from leeward.doctor.finding import About, Check, Finding
from leeward.doctor.reading import Unavailable


def endpoints(facts: Facts) -> Iterator[Finding]:
    """Report each endpoint that is missing, with the effect of its absence."""
    found = facts.network
    if found is None:
        yield About(Check.VPC_ENDPOINT, "all functions").ok("none runs in a VPC")
        return
    if isinstance(found, Unavailable):
        yield About(Check.VPC_ENDPOINT, "functions in a VPC").unknown(found)
        return
    about = About(Check.VPC_ENDPOINT, found.vpc)
    missing = [] if found.routed else [name for name in expected.ENDPOINTS if name not in found.endpoints]
    if not missing:
        yield about.ok("its subnets have a route out" if found.routed else "every service has its endpoint")
    for name in missing:
        yield _missing(facts.identity.region, name, found)


def _missing(region: str, name: str, found: Network) -> Finding:
    service, kind = f"com.amazonaws.{region}.{name}", "Gateway" if name == "dynamodb" else "Interface"
    about = About(Check.VPC_ENDPOINT, f"{service} in {found.vpc}")
    told = f"the functions do not reach {name}: no endpoint and no route out; {expected.ENDPOINTS[name]}"
    fix = (
        f"aws ec2 create-vpc-endpoint --vpc-id {found.vpc} --service-name {service} --vpc-endpoint-type {kind}, with "
        "subnets and security group (a gateway: route tables), or a NAT gateway (docs/deploy.md, Private API servers)"
    )
    return (about.warning if name in expected.NICE_TO_HAVE else about.failed)(told, fix)
