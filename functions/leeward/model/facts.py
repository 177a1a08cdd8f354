"""Facts that `fn sync` has stored about a cluster, so that a step reads them with one call instead of from AWS."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Self

from leeward.model.capacity_block import CapacityBlock
from leeward.model.codec import decode, encode
from leeward.model.instance_type import InstanceType
from leeward.model.nodegroup import NodeRepair
from leeward.model.subnet import Subnet
from leeward.model.zonal_shift import NOT_SHIFTED, ZonalShifts, ZoneRecord


class FactKind(StrEnum):
    """Kinds of facts, each with its own age."""

    SUBNETS = "subnets"
    INSTANCE_TYPES = "instance-types"
    PRICES = "prices"
    NODES = "nodes"
    CNI = "cni"
    TEMPLATES = "templates"
    CAPACITY_BLOCKS = "capacity-blocks"
    ZONAL_SHIFTS = "zonal-shifts"  # kept by the minute reconciler and fn interruption
    NODE_REPAIR = "node-repair"
    NAMED_HOOKS = "named-hooks"
    ZONE_RECORD = "zone-record"  # no facts: evacuations of zones, written at the version that was read


KEPT_BY_SYNC = tuple(kind for kind in FactKind if kind not in {FactKind.ZONAL_SHIFTS, FactKind.ZONE_RECORD})
FRESH_FOR = timedelta(minutes=15)  # three runs of fn sync
PRICES_FRESH_FOR = timedelta(minutes=75)  # they are gathered once an hour


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """Facts of one kind about one cluster, as JSON, and when they were gathered."""

    synced: datetime
    content: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """Prices in US dollars an hour: on demand by instance type, spot by instance type and zone."""

    on_demand: Mapping[str, float] = field(default_factory=dict)
    spot: Mapping[str, Mapping[str, float]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupTemplate:
    """Template of a group's next launch. `node`: the next one as a Kubernetes Node; `types`, `zones` as
    `leeward.node_template.choices` gives them; `capacity` None if the group mixes on-demand and spot.
    """

    types: tuple[str, ...]
    zones: tuple[str, ...]
    capacity: str | None
    node: Mapping[str, Any]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedHooks:
    """Names of the hooks that the policy of a group has given to Leeward, and when it was last in force."""

    names: tuple[str, ...]
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFacts:
    """Facts of one cluster. `cores`: capacity of all nodes in thousandths of a core, by zone. `closed`: zones whose
    nodes are all NotReady or cordoned by others. `ready`: instances whose Node was Ready. `templates`: of selected
    groups, by name. `shifts`: zonal shifts in effect.

    `cni`: the environment of aws-node, None if that DaemonSet does not exist. `named_hooks`: by group. A kind that is
    missing from `synced` was never gathered: its part is empty.
    """

    synced: Mapping[FactKind, datetime] = field(default_factory=dict)
    subnets: tuple[Subnet, ...] = ()
    types: Mapping[str, InstanceType] = field(default_factory=dict)
    prices: Prices = Prices()
    cores: Mapping[str, int] = field(default_factory=dict)
    closed: frozenset[str] = frozenset()
    ready: frozenset[str] = frozenset()
    cni: Mapping[str, str] | None = None
    templates: Mapping[str, GroupTemplate] = field(default_factory=dict)
    shifts: ZonalShifts = NOT_SHIFTED
    named_hooks: Mapping[str, NamedHooks] = field(default_factory=dict)

    @classmethod
    def from_sheets(cls, sheets: Mapping[FactKind, Sheet]) -> Self:
        """Parse the contents of the sheets."""
        content = {kind: sheet.content for kind, sheet in sheets.items()}
        prices, nodes = content.get(FactKind.PRICES, {}), content.get(FactKind.NODES, {})
        return cls(
            synced={kind: sheet.synced for kind, sheet in sheets.items()},
            subnets=tuple(decode(Subnet, raw) for raw in content.get(FactKind.SUBNETS, {}).get("subnets", ())),
            types={
                raw["name"]: decode(InstanceType, raw)
                for raw in content.get(FactKind.INSTANCE_TYPES, {}).get("types", ())
            },
            prices=Prices(on_demand=prices.get("on-demand", {}), spot=prices.get("spot", {})),
            cores=nodes.get("cores", {}),
            closed=frozenset(nodes.get("closed", ())),
            ready=frozenset(nodes.get("ready", ())),
            cni=content.get(FactKind.CNI, {}).get("variables"),
            templates={
                name: decode(GroupTemplate, raw)
                for name, raw in content.get(FactKind.TEMPLATES, {}).get("groups", {}).items()
            },
            shifts=shifts_of(sheets.get(FactKind.ZONAL_SHIFTS), sheets.get(FactKind.ZONE_RECORD)),
            named_hooks=named_hooks_of(sheets.get(FactKind.NAMED_HOOKS)),
        )

    def stale(self, now: datetime, of: Iterable[FactKind] = KEPT_BY_SYNC) -> tuple[FactKind, ...]:
        """Return the kinds that are older than they should be. A kind never gathered is not stale, but missing."""
        return tuple(kind for kind in of if kind in self.synced and now - self.synced[kind] > fresh_for(kind))

    def missing(self, of: Iterable[FactKind] = KEPT_BY_SYNC) -> tuple[FactKind, ...]:
        """Return the kinds that were never gathered."""
        return tuple(kind for kind in of if kind not in self.synced)


def shifts_of(sheet: Sheet | None, record: Sheet | None) -> ZonalShifts:
    """Parse the sheet of zonal shifts, with the zones that the record closes; none without either."""
    shifts = NOT_SHIFTED if sheet is None else ZonalShifts.from_json(sheet.content, sheet.synced)
    return shifts if record is None else shifts.with_record(decode(ZoneRecord, record.content))


def fresh_for(kind: FactKind) -> timedelta:
    """Return how old facts of the kind may be before their readers report it."""
    return PRICES_FRESH_FOR if kind is FactKind.PRICES else FRESH_FOR


def subnets_content(subnets: Iterable[Subnet]) -> dict[str, Any]:
    """Return the subnets by id, so that the same subnets are the same text."""
    return {"subnets": [encode(subnet) for subnet in sorted(subnets, key=lambda subnet: subnet.id)]}


def types_content(types: Iterable[InstanceType]) -> dict[str, Any]:
    """Return the types by name."""
    return {"types": [encode(kind) for kind in sorted(types, key=lambda kind: kind.name)]}


def prices_content(prices: Prices) -> dict[str, Any]:
    """Return the prices with the keys of a snapshot folder's prices.json."""
    return {"on-demand": dict(prices.on_demand), "spot": {name: dict(by) for name, by in prices.spot.items()}}


def nodes_content(cores: Mapping[str, int], ready: Iterable[str], closed: Iterable[str] = ()) -> dict[str, Any]:
    """Return thousandths of a core by zone, the instances whose Node is Ready, and the closed zones."""
    return {"cores": dict(cores), "ready": sorted(ready), "closed": sorted(closed)}


def cni_content(variables: Mapping[str, str] | None) -> dict[str, Any]:
    """Return the variables, None if there is no aws-node."""
    return {"variables": None if variables is None else dict(variables)}


def templates_content(templates: Mapping[str, GroupTemplate], failed: Mapping[str, str]) -> dict[str, Any]:
    """Return the templates by group; `failed`: why the stored template of a group is not new."""
    return {
        "groups": {name: encode(template) for name, template in sorted(templates.items())},
        "failed": dict(sorted(failed.items())),
    }


def blocks_content(blocks: Mapping[str, CapacityBlock]) -> dict[str, Any]:
    """Return the Capacity Blocks by instance, with their ends."""
    return {"blocks": {instance: encode(block) for instance, block in sorted(blocks.items())}}


def blocks_of(content: Mapping[str, Any]) -> dict[str, CapacityBlock]:
    """Parse what `blocks_content` returns."""
    return {instance: decode(CapacityBlock, raw) for instance, raw in content.get("blocks", {}).items()}


def node_repair_content(groups: Mapping[str, NodeRepair]) -> dict[str, Any]:
    """Return EKS' node auto repair by managed group."""
    return {"groups": {name: encode(repair) for name, repair in sorted(groups.items())}}


def node_repair_of(content: Mapping[str, Any]) -> dict[str, NodeRepair]:
    """Parse what `node_repair_content` returns."""
    return {name: decode(NodeRepair, raw) for name, raw in content.get("groups", {}).items()}


def named_hooks_content(groups: Mapping[str, NamedHooks]) -> dict[str, Any]:
    """Return the hooks that policies name, by group."""
    return {"groups": {name: encode(hooks) for name, hooks in sorted(groups.items())}}


def named_hooks_of(sheet: Sheet | None) -> dict[str, NamedHooks]:
    """Parse the sheet; empty without one."""
    groups = sheet.content.get("groups", {}) if sheet is not None else {}
    return {name: decode(NamedHooks, raw) for name, raw in groups.items()}
