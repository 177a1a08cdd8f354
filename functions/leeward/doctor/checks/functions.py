"""Checks of the functions, the state machines and the table: they exist, can run, run without errors, and reach the
APIs of AWS."""

from collections.abc import Iterator

from leeward import __version__
from leeward.doctor import expected
from leeward.doctor.facts import ClusterNetwork, Counts, Facts, Function, RecordTable
from leeward.doctor.finding import About, Check, Finding
from leeward.doctor.reading import UnreadFact

VERSION = "LEEWARD_VERSION"  # variable of each function's environment
REVERT = "cdk deploy --revert-drift"
_LOGS = "aws logs tail /aws/lambda/{name} --since 1h --filter-pattern ERROR"


def functions(facts: Facts) -> Iterator[Finding]:
    """Check that each function exists, and can be called."""
    for name, found in facts.functions.items():
        about = About(Check.FUNCTION, f"function {name}")
        if isinstance(found, UnreadFact):
            yield about.unknown(found)
        elif found is None:
            yield about.failed("it is not there", REVERT)
        else:
            yield _function(about, name, found)


def _function(about: About, name: str, found: Function) -> Finding:
    if found.concurrency == 0:
        return about.failed(
            "its reserved concurrency is 0: nothing can call it",
            f"aws lambda delete-function-concurrency --function-name {name}, then {REVERT}",
        )
    if "Failed" in {found.state, found.update}:
        return about.failed(f"its state is {found.state}, its last update {found.update}", "cdk deploy")
    if found.state == "Pending" or found.update == "InProgress":
        return about.warning(
            f"its state is {found.state}, its last update {found.update}", "run leeward doctor again in a minute"
        )
    return about.ok(found.state)


def version(facts: Facts) -> Iterator[Finding]:
    """Compare the version of the deployed functions with that of this command: a newer one may know what the older one
    does not.
    """
    readable = [one for one in facts.functions.values() if one is not None and not isinstance(one, UnreadFact)]
    deployed = sorted({one.environment.get(VERSION) or "unknown" for one in readable})
    about = About(Check.DEPLOYMENT, "version")
    if len(deployed) > 1:
        yield about.warning(
            f"the functions are of versions {' and '.join(deployed)}: an update is under way, or has failed",
            "look at the CloudFormation stack's events, then deploy again",
        )
    elif deployed and deployed != [__version__]:
        yield about.warning(
            f"the functions are of version {deployed[0]}, this command is {__version__}",
            f"install leeward {deployed[0]} for this deployment, or deploy {__version__}",
        )
    elif deployed:
        yield about.ok(__version__)


def errors(facts: Facts) -> Iterator[Finding]:
    """Report failures in the last hour. Most are retried; check the log."""
    if isinstance(facts.counts, UnreadFact):
        yield About(Check.FUNCTION_ERRORS, "all functions").unknown(facts.counts)
        return
    for name in facts.functions:
        counts = facts.counts.get(name, Counts())
        about = About(Check.FUNCTION_ERRORS, f"function {name}")
        throttled = counts.throttles and name != expected.CAPPED
        if counts.errors or throttled:
            found = f"{counts.errors} errors and {counts.throttles} throttles in the last hour"
            more = "ask for more concurrent executions in Service Quotas" if throttled and not counts.errors else ""
            yield about.warning(found, more or _LOGS.format(name=name))
        else:
            yield about.ok("no error in the last hour")


def machines(facts: Facts) -> Iterator[Finding]:
    """Check that each state machine exists and is active."""
    for name, status in facts.machines.items():
        about = About(Check.STATE_MACHINE, f"state machine {name}")
        if isinstance(status, UnreadFact):
            yield about.unknown(status)
        elif status != "ACTIVE":
            yield about.failed("it is not there" if status is None else f"its status is {status}", REVERT)
        else:
            yield about.ok(status)


def table(facts: Facts) -> Iterator[Finding]:
    """Check that the table exists, with the index that finds open records and the stream that feeds events."""
    about = About(Check.TABLE, f"table {expected.TABLE}")
    if isinstance(facts.table, UnreadFact):
        yield about.unknown(facts.table)
    elif facts.table is None:
        yield about.failed("it is not there", REVERT)
    else:
        wrong = list(_wrong_with(facts.table))
        yield about.failed("; ".join(wrong), REVERT) if wrong else about.ok(facts.table.status)


def _wrong_with(found: RecordTable) -> Iterator[str]:
    if found.status not in {"ACTIVE", "UPDATING"}:
        yield f"its status is {found.status}"
    if expected.INDEX not in found.indexes:
        yield f"it has no index {expected.INDEX}: open records are not found"
    elif found.indexes[expected.INDEX] not in {"ACTIVE", "UPDATING"}:
        yield f"its index {expected.INDEX} is {found.indexes[expected.INDEX]}"
    if not found.stream:
        yield "it has no stream: no event is sent"


def endpoints(facts: Facts) -> Iterator[Finding]:
    """Report each endpoint that is missing, with the effect of its absence."""
    found = facts.network
    if found is None:
        yield About(Check.VPC_ENDPOINT, "all functions").ok("none runs in a VPC")
        return
    if isinstance(found, UnreadFact):
        yield About(Check.VPC_ENDPOINT, "functions in a VPC").unknown(found)
        return
    about = About(Check.VPC_ENDPOINT, found.vpc)
    missing = [] if found.routed else [name for name in expected.ENDPOINTS if name not in found.endpoints]
    if not missing:
        yield about.ok("its subnets have a route out" if found.routed else "every service has its endpoint")
    for name in missing:
        yield _missing(facts.identity.region, name, found)


def _missing(region: str, name: str, found: ClusterNetwork) -> Finding:
    service, kind = f"com.amazonaws.{region}.{name}", "Gateway" if name == "dynamodb" else "Interface"
    about = About(Check.VPC_ENDPOINT, f"{service} in {found.vpc}")
    sentence = f"the functions do not reach {name}: no endpoint and no route out; {expected.ENDPOINTS[name]}"
    fix = (
        f"aws ec2 create-vpc-endpoint --vpc-id {found.vpc} --service-name {service} --vpc-endpoint-type {kind}, with "
        "subnets and security group (a gateway: route tables), or a NAT gateway (docs/deploy.md, Private API servers)"
    )
    return (about.warning if name in expected.NICE_TO_HAVE else about.failed)(sentence, fix)
