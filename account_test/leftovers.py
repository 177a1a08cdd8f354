"""Resources that are still there after a deletion, listed by the names that a run gives them.

Nothing is deleted here. A list that AWS or the endpoint refuses is named as not looked at.
"""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from account_test.aws import Aws, code
from account_test.judge import Finding
from account_test.run import Run
from account_test.stack_removal import interfaces

GONE_SECONDS = 180  # a state machine, a table and a queue are listed for a while after their deletion
STAYS_NOTHING = "nothing of it stays in the account"


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """List of AWS. `at`: where the names are in the answer; `name`: the field of an item, empty where the item is the
    name.
    """

    kind: str
    service: str
    call: str
    at: str
    name: str = ""
    asked: Mapping[str, Any] = field(default_factory=dict)


LISTINGS = (
    Listing(kind="function", service="lambda", call="list_functions", at="Functions", name="FunctionName"),
    Listing(kind="log group", service="logs", call="describe_log_groups", at="logGroups", name="logGroupName"),
    Listing(kind="role", service="iam", call="list_roles", at="Roles", name="RoleName"),
    Listing(
        kind="policy",
        service="iam",
        call="list_policies",
        at="Policies",
        name="PolicyName",
        asked={"Scope": "Local"},
    ),
    Listing(kind="queue", service="sqs", call="list_queues", at="QueueUrls"),
    Listing(kind="table", service="dynamodb", call="list_tables", at="TableNames"),
    Listing(kind="rule or schedule", service="events", call="list_rules", at="Rules", name="Name"),
    Listing(kind="event bus", service="events", call="list_event_buses", at="EventBuses", name="Name"),
    Listing(kind="connection", service="events", call="list_connections", at="Connections", name="Name"),
    Listing(kind="API destination", service="events", call="list_api_destinations", at="ApiDestinations", name="Name"),
    Listing(kind="state machine", service="stepfunctions", call="list_state_machines", at="stateMachines", name="name"),
    Listing(kind="alarm", service="cloudwatch", call="describe_alarms", at="MetricAlarms", name="AlarmName"),
    Listing(
        kind="dashboard", service="cloudwatch", call="list_dashboards", at="DashboardEntries", name="DashboardName"
    ),
    Listing(kind="parameter", service="ssm", call="describe_parameters", at="Parameters", name="Name"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Leftovers:
    """Resources that are there, and lists that could not be read."""

    there: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()

    def finding(self, promise: str = STAYS_NOTHING) -> Finding:
        """Return the finding: an unread list leaves the promise unproven."""
        parts = [f"still there: {', '.join(self.there)}"] if self.there else []
        parts += [f"not looked at: {', '.join(self.unread)}"] if self.unread else []
        return Finding(
            promise=promise,
            kept=not self.there and not self.unread,
            found="; ".join(parts) or f"{len(LISTINGS)} kinds of resources looked at",
            unproven=bool(self.unread) and not self.there,
        )


def of(aws: Aws, prefixes: tuple[str, ...], *, subnets: tuple[str, ...] = ()) -> Leftovers:
    """Return what is there whose name begins with one of these. `subnets`: where functions of these names were."""
    there: list[str] = []
    unread: list[str] = []
    for listing in LISTINGS:
        try:
            there += [f"{listing.kind} {name}" for name in _names(aws, listing) if _is_of(name, prefixes)]
        except (ClientError, BotoCoreError) as error:
            unread.append(f"{listing.kind} ({code(error) if isinstance(error, ClientError) else error})")
    if subnets:
        there += [
            f"network interface {one['NetworkInterfaceId']} ({one['Status']})"
            for prefix in prefixes
            for one in interfaces(aws, prefix, list(subnets))
        ]
    return Leftovers(there=tuple(there), unread=tuple(unread))


def after_removal(aws: Aws, run: Run, *, whole: bool) -> Leftovers:
    """Return what stays: what AWS still lists is looked at again until GONE_SECONDS have passed. `whole`: of all that
    the run made, else of its deployment alone.
    """
    prefixes = (f"{run.deployment}-",) if whole else (run.names.prefix, run.names.stack)
    deadline = time.monotonic() + GONE_SECONDS
    while (found := of(aws, prefixes, subnets=run.function_subnets)).there and time.monotonic() < deadline:
        time.sleep(run.look)
    return found


def _is_of(name: str, prefixes: tuple[str, ...]) -> bool:
    """Return whether the name is one of the run's, behind a path or in a URL as well."""
    last = name.rpartition("/")[2]
    return any(last.startswith(prefix) or f"/{prefix}" in name for prefix in prefixes)


def _names(aws: Aws, listing: Listing) -> Iterator[str]:
    client = aws(listing.service)
    asked: dict[str, Any] = dict(listing.asked)
    if client.can_paginate(listing.call):
        pages = client.get_paginator(listing.call).paginate(**asked)
    else:
        pages = _pages(client, listing, asked)
    for page in pages:
        for item in page.get(listing.at) or ():
            yield str(item[listing.name]) if listing.name else str(item)


def _pages(client: Any, listing: Listing, asked: dict[str, Any]) -> Iterator[Mapping[str, Any]]:
    while True:
        page = getattr(client, listing.call)(**asked)
        yield page
        if not page.get("NextToken"):
            return
        asked["NextToken"] = page["NextToken"]
