"""Limits of interfaces and addresses of an instance type, for types that a snapshot does not describe: a table.

It (`network_limits.json`: interfaces of the default network card, addresses of each, vCPUs) holds the answer of
EC2's DescribeInstanceTypes at the time it was made; a newer type has to come with a snapshot."""

import json
from functools import cache
from pathlib import Path

from leeward.model.instance_type import InstanceType

_TABLE = Path(__file__).with_name("network_limits.json")


@cache
def _table() -> dict[str, tuple[int, int, int]]:
    return {name: tuple(row) for name, row in json.loads(_TABLE.read_text(encoding="utf-8")).items()}


def built_in(name: str) -> InstanceType | None:
    """Return the type from the table, without memory; None when the table lacks it."""
    row = _table().get(name)
    if row is None:
        return None
    enis, addresses, vcpus = row
    return InstanceType(name=name, vcpus=vcpus, memory_mib=0, max_enis=enis, ips_per_eni=addresses)
