"""Limits of interfaces and addresses of an instance type: from the snapshot's instance-types.json, else from a table.

The table (`network_limits.json`: interfaces of the default network card, addresses of each, vCPUs) holds the answer of
EC2's DescribeInstanceTypes at the time it was made; a newer type has to come with a snapshot."""

import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from leeward.adapters.folder.snapshot import Snapshot
from leeward.model.instance_type import InstanceType

_TABLE = Path(__file__).with_name("network_limits.json")


@cache
def _table() -> dict[str, tuple[int, int, int]]:
    return {name: tuple(row) for name, row in json.loads(_TABLE.read_text(encoding="utf-8")).items()}


def limits_of(name: str, snapshot: Snapshot | None) -> InstanceType | None:
    """Return the type, None when neither snapshot nor table has it. Raises InvalidInputError for a broken file."""
    raw = () if snapshot is None else snapshot.raw("instance-types")
    found = next((one for one in raw if one["InstanceType"] == name), None)
    return built_in(name) if found is None else InstanceType.from_json(found)


def built_in(name: str) -> InstanceType | None:
    """Return the type from the table, without memory; None when the table lacks it."""
    row = _table().get(name)
    if row is None:
        return None
    enis, addresses, vcpus = row
    return InstanceType(name=name, vcpus=vcpus, memory_mib=0, max_enis=enis, ips_per_eni=addresses)


def types_named(names: Iterable[str], snapshot: Snapshot | None) -> tuple[InstanceType, ...]:
    """Return the types sorted by name; an unknown type comes without limits, so that accounting says so."""
    return tuple(
        limits_of(name, snapshot) or InstanceType(name=name, vcpus=0, memory_mib=0) for name in sorted(set(names))
    )


def vcpus_by_type(names: Iterable[str], snapshot: Snapshot | None) -> dict[str, int]:
    """Return thousandths of a core by type, for nodes whose status does not report them."""
    return {kind.name: kind.vcpus * 1000 for kind in types_named(names, snapshot)}
