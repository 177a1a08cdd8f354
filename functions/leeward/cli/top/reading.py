"""Reading of a cluster for `leeward top`, again and again.

Decides what each refresh reads (nodes, pods, budgets, open terminations) and what it keeps: groups for a minute,
instances for good, prices for an hour."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TypeVar

from leeward.cli.context import ClusterContext
from leeward.cli.top.nodes import OfferedNode, TopFacts, offered_node, running_pod
from leeward.cluster.joins import listed_groups
from leeward.errors import LeewardError, ObjectGoneError
from leeward.isolation import attempt
from leeward.model import well_known
from leeward.model.facts import Prices
from leeward.model.instance import Instance
from leeward.model.termination import Status, TerminationRecord
from leeward.ports.kubernetes import Listed
from leeward.snapshot.gather import known_prices

T = TypeVar("T")
GROUPS_KEPT, PRICES_KEPT = timedelta(minutes=1), timedelta(hours=1)


class TopReader:
    """Reader of one cluster. Reads change nothing."""

    def __init__(self, context: ClusterContext) -> None:
        self._context, self._ports = context, context.ports
        self._listed: Mapping[str, str] = {}
        self._groups_read: datetime | None = None
        self._instances: dict[str, Instance] = {}
        self._asked: set[str] = set()
        self._prices, self._price_warnings = Prices(), list[str]()
        self._prices_read: datetime | None = None
        self._priced: frozenset[tuple[str, str]] = frozenset()

    def read(self, now: datetime) -> TopFacts:
        """Read the cluster. Raises LeewardError where the cluster's API does not answer; what AWS or the table does not
        answer is a warning.
        """
        kubernetes = self._ports.clusters.kubernetes(self._context.cluster)
        nodes = kubernetes.read(Listed.NODES, offered_node)
        pods = [pod for pod in kubernetes.read(Listed.PODS, running_pod) if pod is not None]
        budgets = kubernetes.budgets()
        warnings: list[str] = []
        ids = {one.node.instance_id for one in nodes} - {""}
        self._read_instances(ids, now, warnings)
        self._read_prices(nodes, now)
        return TopFacts(
            nodes=nodes,
            pods=pods,
            budgets=budgets,
            listed=self._listed,
            instances=self._instances,
            prices=self._prices,
            records=_read("terminations under way", lambda: self._records(ids), {}, warnings),
            warnings=(*warnings, *self._price_warnings),
        )

    def _read_instances(self, ids: set[str], now: datetime, warnings: list[str]) -> None:
        """Read the groups when they are old or an instance is new, and the instances that are new."""
        new = {name for name in ids - self._asked if name.startswith("i-")}
        if new or _older(self._groups_read, now, GROUPS_KEPT):
            groups = _read("Auto Scaling groups", self._groups, None, warnings)
            if groups is not None:
                self._listed, self._groups_read = groups, now
        found = _read("instances", lambda: self._ports.instances.describe(sorted(new)), None, warnings) if new else {}
        if found is not None:
            self._instances |= found
            self._asked |= new

    def _groups(self) -> Mapping[str, str]:
        return listed_groups(self._ports.groups.of_clusters([self._context.cluster]))

    def _read_prices(self, nodes: Sequence[OfferedNode], now: datetime) -> None:
        """Read the prices when they are old or a type or zone is new; after a failure a minute later."""
        wanted = frozenset(self._type_and_zone(one) for one in nodes)
        kept = GROUPS_KEPT if self._price_warnings else PRICES_KEPT
        if wanted <= self._priced and not _older(self._prices_read, now, kept):
            return
        types, zones = {kind for kind, _ in wanted if kind}, {zone for _, zone in wanted if zone}
        price_list, catalog = self._ports.price_list, self._ports.catalog
        self._prices, self._price_warnings = known_prices(
            price_list, catalog, self._context.cluster, types, sorted(zones), now
        )
        self._priced, self._prices_read = self._priced | wanted, now

    def _type_and_zone(self, offered: OfferedNode) -> tuple[str, str]:
        instance, labels = self._instances.get(offered.node.instance_id), offered.node.labels
        if instance is not None:
            return instance.type, instance.zone
        return labels.get(well_known.INSTANCE_TYPE_LABEL, ""), labels.get(well_known.ZONE_LABEL, "")

    def _records(self, ids: set[str]) -> Mapping[str, TerminationRecord]:
        """Return the open terminations; none without a table, because nothing is deployed then."""
        try:
            under_way = self._ports.claims.open_instances()
        except ObjectGoneError:
            return {}
        records = self._ports.claims.read_all(sorted(ids.intersection(under_way)))
        return {instance: record for instance, record in records.items() if record.status is Status.OPEN}


def _older(read: datetime | None, now: datetime, span: timedelta) -> bool:
    return read is None or now - read >= span


def _read(what: str, read: Callable[[], T], otherwise: T, warnings: list[str]) -> T:
    answer = attempt(read)
    if isinstance(answer, LeewardError):
        warnings.append(f"{what} cannot be read: {answer}")
        return otherwise
    return answer
