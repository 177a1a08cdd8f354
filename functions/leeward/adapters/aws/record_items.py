"""Termination records as DynamoDB items and back. Layout of the table, no calls.

A cause is a map under its id, so that two causes can join at the same moment without overwriting each other; `joined`
keeps the order in which they came and `period` the opening of the record to which they belong. Absent attributes stand
for None and for empty. `offsets` is a map from the key of a ledger entry, so that the first settlement is kept by a
conditional write, to a map of its own; `surge` of a cause is the entry that it requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from leeward.errors import NewerRecordError
from leeward.model.capacity import NoOffset, Offset, Settlement, SurgeInstance, SurgeOwner
from leeward.model.group import HookResult
from leeward.model.instance import CapacityType
from leeward.model.seen import Seen
from leeward.model.termination import (
    Cause,
    CauseKind,
    DrainOptions,
    LaunchOption,
    LaunchPlan,
    Outcome,
    Replacement,
    Status,
    Subject,
    TerminationRecord,
)
from leeward.model.times import format_instant, parse_instant

if TYPE_CHECKING:
    from leeward.model.termination import Reboot

TERMINATION = "termination"  # value of the sparse index's hash key, and first part of a record's key
ONCE = "once"
COUNT = "count"
MALFORMED = (AttributeError, KeyError, TypeError, ValueError)  # of an item in another shape than expected

Item = dict[str, Any]  # plain Python values; `claims` handles the wire's types


def record_key(instance: str) -> str:
    """Return `termination#i-…`."""
    return f"{TERMINATION}#{instance}"


def once_key(key: str) -> str:
    """Return `once#KEY`."""
    return f"{ONCE}#{key}"


def count_key(key: str) -> str:
    """Return `count#KEY`."""
    return f"{COUNT}#{key}"


def instance_of(key: str) -> str:
    """Return the instance of a record's key."""
    return key.removeprefix(f"{TERMINATION}#")


def new_record(subject: Subject, cause: Cause, now: datetime, *, deployment: str, also: Sequence[Cause] = ()) -> Item:
    """Return the item of a first claim. It has all maps from the start: DynamoDB cannot write into an absent one."""
    return {
        "pk": record_key(subject.instance),
        "open": TERMINATION,
        "deployment": deployment,
        "status": Status.OPEN.value,
        "attempt": 1,
        "version": 1,
        "period": 1,
        "surgePeriod": 1,
        "namesTaken": 0,
        "subject": subject_item(subject),
        "causes": {
            each.id: cause_item(each, now + timedelta(milliseconds=place), period=1)
            for place, each in enumerate((cause, *also))
        },
        "times": {"claimed": format_instant(now)},
        "heartbeats": {},
        "offsets": {},
        "surges": {},
        "reboots": {},
        "blockedBy": [],
        "evicted": 0,
    }


def subject_item(subject: Subject) -> Item:
    """Return the map `subject`."""
    return _without_none(
        {
            "instance": subject.instance,
            "cluster": subject.cluster,
            "group": subject.group,
            "zone": subject.zone,
            "subnet": subject.subnet,
            "instanceType": subject.instance_type,
            "capacityType": subject.capacity_type.value,
            "node": subject.node,
            "policy": subject.policy or None,
            "state": subject.state or None,
            "networks": list(subject.networks) or None,
        }
    )


def cause_item(cause: Cause, joined: datetime, *, period: int) -> Item:
    """Return one map under `causes`."""
    return _without_none(
        {
            "kind": cause.kind.value,
            "at": format_instant(cause.at),
            "joined": format_instant(joined),
            "period": period,
            "deadline": format_instant(cause.deadline) if cause.deadline else None,
            "reason": cause.reason or None,
            "hook": cause.hook,
            "hookOurs": cause.hook_ours,
            "hookDefault": cause.hook_default.value if cause.hook_default else None,
            "force": cause.force or None,
            "state": cause.state or None,
            "options": cause.options.to_json() if cause.options else None,
            "surge": surge_item(cause.surge) if cause.surge else None,
            "reboot": _reboot_item(cause.reboot) if cause.reboot else None,
            "together": cause.together or None,
            "awaitsLaunch": cause.awaits_launch or None,
            "withdrawn": cause.withdrawn or None,
        }
    )


def _reboot_item(reboot: Reboot) -> Item:
    return {"by": reboot.by.value, "condition": reboot.condition, "status": reboot.status}


def replacement_item(replacement: Replacement) -> Item:
    """Return the map `replacement`."""
    return {
        "launched": list(replacement.launched),
        "reason": replacement.reason,
        "subnet": replacement.subnet,
        "noCapacity": replacement.no_capacity,
        "isRefused": replacement.refused,
    }


def plan_item(plan: LaunchPlan) -> Item:
    """Return the map `plan`."""
    options = [
        {"subnet": option.subnet, "zone": option.zone, "why": option.why, "ips": option.ips} for option in plan.options
    ]
    return {"options": options, "refused": list(plan.refused), "nowhere": plan.nowhere}


def times_item(times: Mapping[str, datetime]) -> Item:
    """Return the maps `times` and `heartbeats`."""
    return {name: format_instant(at) for name, at in times.items()}


def record_of(item: Mapping[str, Any]) -> TerminationRecord:
    """Return the record that an item holds. Raises NewerRecordError for a word that decides and is not known here, or
    for another shape.

    During an update, and after its rollback, functions read what a newer version wrote. A cause of an unknown kind
    counts as `other`, so that the node is drained and terminated, and not held until the record expires; an unknown
    outcome of a closed record is None.
    """
    try:
        return _record_of(item)
    except MALFORMED as error:
        said = error if isinstance(error, ValueError) else repr(error)
        raise NewerRecordError(f"{item['pk']}: {said}; another version of Leeward may have written it") from error


def _record_of(item: Mapping[str, Any]) -> TerminationRecord:
    causes = sorted(item.get("causes", {}).items(), key=lambda entry: _order(entry[1]))
    period = int(item["period"])
    replacement, plan, outcome = item.get("replacement"), item.get("plan"), item.get("outcome")
    return TerminationRecord(
        subject=_subject_of(item["subject"]),
        deployment=item["deployment"],
        status=Status(item["status"]),
        attempt=int(item["attempt"]),
        version=int(item["version"]),
        names_taken=int(item["namesTaken"]),
        causes=tuple(_cause_of(id, raw) for id, raw in causes if _decides(raw, period)),
        earlier_causes=tuple(_cause_of(id, raw) for id, raw in causes if not _decides(raw, period)),
        period=period,
        surge_period=int(item["surgePeriod"]),
        times=_instants(item.get("times", {})),
        replacement=_replacement_of(replacement) if replacement else None,
        plan=_plan_of(plan) if plan else None,
        offsets=offsets_of(item.get("offsets", {})),
        blocked_by=tuple(item.get("blockedBy", ())),
        pods_evicted=int(item.get("evicted", 0)),
        heartbeats=_instants(item.get("heartbeats", {})),
        token=item.get("token"),
        outcome=Outcome(outcome) if outcome in list(Outcome) else None,
        failure=item.get("failure", ""),
        surges=dict(item.get("surges", {})),
        seen=Seen.from_json(item["seen"]) if item.get("seen") else None,
        boot=item.get("boot", ""),
        reboots=_instants(item.get("reboots", {})),
    )


def _subject_of(raw: Mapping[str, Any]) -> Subject:
    return Subject(
        instance=raw["instance"],
        cluster=raw["cluster"],
        group=raw.get("group"),
        zone=raw.get("zone", ""),
        subnet=raw.get("subnet", ""),
        instance_type=raw.get("instanceType", ""),
        capacity_type=CapacityType(raw["capacityType"]),
        node=raw.get("node"),
        policy=raw.get("policy", ""),
        state=raw.get("state", ""),
        networks=tuple(raw.get("networks", ())),
    )


def _cause_of(id: str, raw: Mapping[str, Any]) -> Cause:
    deadline = raw.get("deadline")
    return Cause(
        id=id,
        kind=CauseKind(raw["kind"]) if raw["kind"] in list(CauseKind) else CauseKind.OTHER,
        at=parse_instant(raw["at"]),
        deadline=parse_instant(deadline) if deadline else None,
        reason=raw.get("reason", ""),
        hook=raw.get("hook"),
        hook_ours=bool(raw.get("hookOurs", False)),
        hook_default=HookResult(raw["hookDefault"]) if "hookDefault" in raw else None,
        force=bool(raw.get("force", False)),
        state=raw.get("state", ""),
        options=DrainOptions.from_json(raw["options"]) if "options" in raw else None,
        surge=surge_of(raw["surge"]) if "surge" in raw else None,
        reboot=_reboot_of(raw["reboot"]) if "reboot" in raw else None,
        together=int(raw.get("together", 0)),
        awaits_launch=bool(raw.get("awaitsLaunch", False)),
        withdrawn=bool(raw.get("withdrawn", False)),
    )


def _order(raw: Mapping[str, Any]) -> tuple[datetime, datetime]:
    """Return when a cause joined, then when it happened: as moments, for texts of whole seconds sort after others."""
    at = parse_instant(raw["at"])
    return parse_instant(raw["joined"]) if raw.get("joined") else at, at


def _decides(raw: Mapping[str, Any], period: int) -> bool:
    return bool(raw["period"] == period and not raw.get("withdrawn", False))


def _reboot_of(raw: Mapping[str, Any]) -> Reboot:
    from leeward.model.termination import Reboot, RebootBy  # late: few records reboot

    return Reboot(by=RebootBy(raw["by"]), condition=raw["condition"], status=raw["status"])


def _replacement_of(raw: Mapping[str, Any]) -> Replacement:
    return Replacement(
        launched=tuple(raw.get("launched", ())),
        reason=raw.get("reason", ""),
        subnet=raw.get("subnet", ""),
        no_capacity=bool(raw.get("noCapacity", False)),
        refused=bool(raw.get("isRefused", False)),
    )


def _plan_of(raw: Mapping[str, Any]) -> LaunchPlan:
    options = tuple(
        LaunchOption(subnet=one["subnet"], zone=one["zone"], why=one["why"], ips=int(one.get("ips", 0)))
        for one in raw.get("options", ())
    )
    return LaunchPlan(options=options, refused=tuple(raw.get("refused", ())), nowhere=raw.get("nowhere", ""))


def _instants(raw: Mapping[str, str]) -> dict[str, datetime]:
    return {name: parse_instant(at) for name, at in raw.items()}


def _without_none(item: Item) -> Item:
    return {name: value for name, value in item.items() if value is not None}


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
