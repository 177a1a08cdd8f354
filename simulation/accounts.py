"""Accounts and Regions of a simulated deployment that serves clusters in several: what each of them knows, and which
calls name what is another's.

The models are those of one fleet. Each place sees the groups, instances, templates and subnets of its own clusters, as
the APIs of an account do. A call that names another account's is noted for the rules (`account_rules.py`)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, NoReturn, Protocol

from leeward.errors import AccessDeniedError, InvalidInputError
from leeward.ports import AwsPorts, Ports
from leeward.ports.places import AwsPlace, ports_of_no_account
from simulation.aws import events
from simulation.aws.compute import SimGroup, SimInstance, subnet_of
from simulation.aws.recovery import zone_id_of
from simulation.journal import Journal
from simulation.plans import FleetPlan

MEMBER_ACCOUNT, MEMBER_REGION = "222233334444", "eu-west-1"
OF_THE_TABLE = frozenset({"upgrades", "maxima"})  # ports to the deployment's own table: no role is assumed
CACHED = frozenset({"nodegroups"})  # they answer without a call, and never raise
RESERVATION = "cr-"


@dataclass(slots=True, kw_only=True, eq=False)
class Account:
    """Account and Region with its clusters. `denied`: its role may not be assumed now; `refusals`: begin and end of
    each time for which it refuses its role.
    """

    account: str
    region: str
    clusters: tuple[str, ...]
    denied: bool = False
    refusals: list[tuple[float, float]] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Misdirected:
    """Call in an account that names what is another's: `call` as PORT.METHOD, and the name."""

    account: str
    call: str
    name: str
    cluster: str


class Fleet(Protocol):
    """Lookup of the cluster to which a name belongs."""

    groups: dict[str, SimGroup]
    instances: dict[str, SimInstance]
    served: dict[str, str]
    homes: dict[str, str]


@dataclass(slots=True, kw_only=True)
class Accounts:
    """Accounts of one deployment, the hub first. `misdirected`: calls in the wrong one, in their order.
    `named_by_strangers`: instances about which another account has sent a message, and their groups: looked up there.
    """

    fleet: Fleet
    of: tuple[Account, ...]
    misdirected: Journal[Misdirected] = field(default_factory=Journal)
    named_by_strangers: set[str] = field(default_factory=set)
    _names: dict[str, str] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self._names = {cluster: cluster for account in self.of for cluster in account.clusters}
        for name, group in self.fleet.groups.items():
            cluster = self.fleet.served[name]
            self._names |= {name: cluster, group.template.id: cluster}
            for zone in group.plan.zones:
                self._names |= {subnet_of(zone): cluster, zone_id_of(zone): cluster}

    def cluster_of(self, name: str) -> str | None:
        """Return the cluster of a cluster, group, instance, template, subnet, zone id or Capacity Block; None for
        another name.
        """
        if name in self.fleet.homes:
            return self.fleet.served[self.fleet.homes[name]]
        if name.startswith(RESERVATION):
            members = (m for m in self.fleet.instances.values() if m.reservation == name)
            return next((self.fleet.served[m.group] for m in members), None)
        return self._names.get(name)

    def account_of(self, cluster: str) -> Account:
        """Return the account of a cluster."""
        return next(account for account in self.of if cluster in account.clusters)

    def addressed(self, event: events.Event) -> events.Event:
        """Return the event with the account and Region of what it names."""
        names = [name for name in _texts(event["detail"]) if self.cluster_of(name)]
        if not names:
            return event
        account = self.account_of(str(self.cluster_of(names[0])))
        detail = event["detail"]
        if "affectedAccount" in detail:
            detail = {**detail, "affectedAccount": account.account, "eventRegion": account.region}
        return {**event, "account": account.account, "region": account.region, "detail": detail}

    def ports(self, ports: Ports) -> Ports:
        """Return the ports of a deployment over all accounts: they act in none before a cluster is named."""
        return replace(
            ports,
            **ports_of_no_account().by_name(),
            origins=frozenset((account.account, account.region) for account in self.of),
            places=tuple(self._place(account, ports) for account in self.of),
        )

    def _place(self, account: Account, ports: Ports) -> AwsPlace:
        seen: dict[str, Any] = {
            name: AccountPort(port, name, account, self) for name, port in AwsPorts.by_name(ports).items()
        }
        return AwsPlace(
            account=account.account,
            region=account.region,
            clusters=account.clusters,
            aws=AwsPorts(**seen),
        )


class AccountPort:
    """AWS port of one account and Region. It knows no name of another: lists leave it out, other calls raise
    InvalidInputError. AccessDeniedError while the account's role may not be assumed.
    """

    def __init__(self, port: Any, name: str, account: Account, accounts: Accounts) -> None:
        self._port, self._name, self._account, self._accounts = port, name, account, accounts

    def __getattr__(self, method: str) -> Any:
        call, name = getattr(self._port, method), f"{self._name}.{method}"

        def there(*args: Any, **kwargs: Any) -> Any:
            if self._account.denied and self._name not in OF_THE_TABLE | CACHED:
                raise AccessDeniedError(f"{name}: not authorized to perform sts:AssumeRole")
            given = [self._known(name, argument) for argument in args]
            named = {key: self._known(name, argument) for key, argument in kwargs.items()}
            return self._own(call(*given, **named))

        return there

    def _known(self, call: str, argument: Any) -> Any:
        """Return the argument without other accounts' names, each of which is noted."""
        if isinstance(argument, str):
            if self._is_foreign(argument):
                self._refuse(call, argument)
        elif is_dataclass(argument):
            for value in (getattr(argument, one.name) for one in fields(argument)):
                if isinstance(value, str) and self._is_foreign(value):
                    self._refuse(call, value)
        elif isinstance(argument, (Iterator, list, tuple, set, frozenset)):
            names = list(argument)
            for name in filter(self._is_foreign, names):
                self._note(call, name)
            return [name for name in names if not self._is_foreign(name)]
        return argument

    def _own(self, answer: Any) -> Any:
        if not isinstance(answer, Mapping):
            return answer
        return {key: value for key, value in answer.items() if not self._is_foreign(key)}

    def _is_foreign(self, name: object) -> bool:
        cluster = self._accounts.cluster_of(name) if isinstance(name, str) else None
        return cluster is not None and cluster not in self._account.clusters

    def _note(self, call: str, name: str) -> None:
        cluster = str(self._accounts.cluster_of(name))
        noted = Misdirected(account=self._account.account, call=call, name=name, cluster=cluster)
        self._accounts.misdirected.append(noted)

    def _refuse(self, call: str, name: str) -> NoReturn:
        self._note(call, name)
        raise InvalidInputError(f"{call}: ValidationError: account {self._account.account} has no {name}")


def accounts_of(fleet: Fleet, first: FleetPlan, beside: FleetPlan | None) -> Accounts:
    """Return the accounts of a world: the second cluster's own, where its zones are in another Region."""
    hub = Account(account=events.ACCOUNT, region=events.REGION, clusters=(first.cluster,))
    if beside is None:
        return Accounts(fleet=fleet, of=(hub,))
    if not is_elsewhere(beside):
        hub.clusters += (beside.cluster,)
        return Accounts(fleet=fleet, of=(hub,))
    member = Account(account=MEMBER_ACCOUNT, region=MEMBER_REGION, clusters=(beside.cluster,))
    return Accounts(fleet=fleet, of=(hub, member))


def is_elsewhere(plan: FleetPlan) -> bool:
    """Return whether the cluster is in the member's Region."""
    return any(zone.startswith(MEMBER_REGION) for group in plan.groups for zone in group.zones)


def _texts(detail: Mapping[str, Any] | Sequence[Any]) -> Iterator[str]:
    """Yield every text of an event's detail."""
    values: Iterable[Any] = detail.values() if isinstance(detail, Mapping) else detail
    for value in values:
        if isinstance(value, str):
            yield value
        elif isinstance(value, (Mapping, list)):
            yield from _texts(value)
