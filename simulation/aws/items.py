"""Termination records as the items that the product's partial writes leave in the table."""

from collections.abc import Mapping
from typing import Any

from leeward.adapters.aws.record_items import TERMINATION
from leeward.adapters.aws.table import from_wire, to_wire
from leeward.adapters.aws.whole_items import whole_item
from leeward.model.termination import TerminationRecord


def termination_item(record: TerminationRecord) -> dict[str, Any]:
    """Return the whole item, with its key of the index of open records."""
    return {"open": TERMINATION, **whole_item(record)}


def delivered(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return the item as DynamoDB delivers it."""
    return {name: from_wire(to_wire(value)) for name, value in item.items()}
