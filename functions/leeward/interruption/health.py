"""AWS Health events about our instances: the instances, the start, and why an event is ignored.

Field names: "AWS Health events Amazon EventBridge schema" in AWS Health's user guide."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from leeward.interruption import fields
from leeward.interruption.fields import MalformedMessageError

FIRST_PAGE = frozenset({"", "1"})
PLANNED_LIFECYCLE = "_PLANNED_LIFECYCLE_EVENT"  # suffix of a type: the end of support of a version, and the like
RESOLVED = "RESOLVED"  # status of an entity that needs nothing any more


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthChange:
    """Scheduled change. `reboots`: its type says that EC2 boots the instances again. `ignored`: why nothing follows;
    empty for a change of instances of this account.
    """

    id: str = ""
    instances: tuple[str, ...] = ()
    starts: datetime | None = None
    account: str = ""
    region: str = ""
    reboots: bool = False
    ignored: str = ""


def read(detail: Mapping[str, Any]) -> HealthChange:
    """Parse the detail. Every affected instance counts. Fields that older events lack default to their usual values."""
    service = fields.text(detail, "service")
    category = fields.text(detail, "eventTypeCategory")
    if (service, category) != ("EC2", "scheduledChange"):
        return HealthChange(ignored=f"Health event of {service}, {category}: only EC2, scheduledChange counts")
    instances = tuple(dict.fromkeys(_instances(detail)))
    ignored = _ignored(detail, instances)
    return HealthChange(
        id=_id(detail),
        instances=instances,
        starts=fields.moment(detail.get("startTime")),
        account=fields.optional_text(detail, "affectedAccount"),
        region=fields.optional_text(detail, "eventRegion"),
        reboots="_REBOOT_" in fields.optional_text(detail, "eventTypeCode"),
        ignored=ignored,
    )


def _ignored(detail: Mapping[str, Any], instances: tuple[str, ...]) -> str:
    scope = fields.optional_text(detail, "eventScopeCode")
    status = fields.optional_text(detail, "statusCode")
    code = fields.optional_text(detail, "eventTypeCode")
    if code.endswith(PLANNED_LIFECYCLE):
        return f"Health event {code}: it announces a change of a service, and names what to update"
    if scope not in {"", "ACCOUNT_SPECIFIC"}:
        return f"Health event with scope {scope}: only ACCOUNT_SPECIFIC counts"
    if status not in {"", "open", "upcoming"}:
        return f"Health event with status {status}: only open and upcoming count"
    return "" if instances else "Health event that names no instance"


def _id(detail: Mapping[str, Any]) -> str:
    """Return the id that identifies duplicates. The primary and the backup Region deliver the same event under
    different envelope ids, so ARN and communicationId identify it. A page with further entities is not a duplicate of
    the first, and neither is the same maintenance moved to another date.
    """
    arn = fields.optional_text(detail, "eventArn")
    page = str(detail.get("page") or "")
    communication = fields.optional_text(detail, "communicationId")
    starts = fields.moment(detail.get("startTime"))
    parts = [
        arn,
        communication,
        "" if page in FIRST_PAGE else f"page-{page}",
        f"from-{starts:%Y%m%dT%H%M%S}" if starts else "",
    ]
    return "#".join(part for part in parts if part) if arn else ""


def _instances(detail: Mapping[str, Any]) -> Iterator[str]:
    """Yield the instances among the entities, by id or ARN; other resources (a host, a volume), entities without a
    value and resolved ones are skipped.
    """
    entities = detail.get("affectedEntities")
    if entities is None:
        return
    if not isinstance(entities, list):
        raise MalformedMessageError(f"affectedEntities: found {fields.shown(entities)}, expected a list")
    for entity in entities:
        if not isinstance(entity, dict):
            raise MalformedMessageError(f"affectedEntities: found {fields.shown(entity)}, expected objects")
        value = fields.optional_text(entity, "entityValue").rsplit("/", 1)[-1]
        if value.startswith("i-") and fields.optional_text(entity, "status") != RESOLVED:
            yield fields.instance_id({"entityValue": value}, "entityValue")
