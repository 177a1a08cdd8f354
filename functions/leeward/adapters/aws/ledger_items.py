"""Entries of the capacity ledger as attributes of DynamoDB items and back; no other module writes or reads them.

`offsets` of a termination record is a map from the entry's key, so that the first settlement is kept by a conditional
write, to a map of its own. `surge` of a cause is the entry that it requests."""

from collections.abc import Mapping
from typing import Any

from leeward.model.surge_instance import NoOffset, Offset, Settlement, SurgeInstance, SurgeOwner

Item = dict[str, Any]


def surge_item(surge: SurgeInstance) -> Item:
    """Return the map of an entry."""
    item = {"owner": surge.owner.value, "instance": surge.instance}
    return {**item, "request": surge.request} if surge.request else item


def surge_of(raw: Mapping[str, Any]) -> SurgeInstance:
    """Return the entry that `surge_item` wrote."""
    return SurgeInstance(owner=SurgeOwner(raw["owner"]), instance=raw["instance"], request=raw.get("request", ""))


def offset_item(surge: SurgeInstance, settlement: Settlement) -> Item:
    """Return the map under `offsets`: the entry, and `by` (the instance whose termination offsets it) or `none` (why no
    termination does).
    """
    match settlement:
        case Offset(instance=instance):
            return {"surge": surge_item(surge), "by": instance}
        case NoOffset():
            return {"surge": surge_item(surge), "none": settlement.value}


def offsets_of(raw: Mapping[str, Mapping[str, Any]]) -> dict[SurgeInstance, Settlement]:
    """Return the settlements that the map `offsets` holds."""
    return {
        surge_of(entry["surge"]): Offset(instance=entry["by"]) if "by" in entry else NoOffset(entry["none"])
        for entry in raw.values()
    }
