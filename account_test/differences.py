"""Differences between AWS and our model, from a recording: times, orders, sizes, and the shapes of events."""

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from account_test.context import Context
from account_test.recording import Event, Recording
from account_test.results import Difference
from account_test.run import ROOT

GOLDEN = ROOT / "tests" / "events"
SPOT = "EC2 Spot Instance Interruption Warning"
STATE = "EC2 Instance State-change Notification"
WARNING_SECONDS = 120
OPTIONAL = {"detail.NotificationMetadata:str"}  # present where the hook has some
ORDER = ("InService", "Terminating:Wait", "Terminating:Proceed", "Terminating", "Terminated")


def of(context: Context, seen: Recording, golden: Path = GOLDEN) -> list[Difference]:
    """Return all differences that a play shows. Figures that agree with the model are marked as such."""
    del context
    return [*shapes(seen.events, golden), *warning(seen), *launch(seen), *order(seen)]


def shapes(events: list[Event], golden: Path = GOLDEN) -> Iterator[Difference]:
    """Compare the fields of the envelope and the detail with the events that tests are made of: one row a kind of
    event.
    """
    known = {one["detail-type"]: one for one in _golden(golden)}
    reported = set()
    for event in events:
        kind = str(event.get("detail-type"))
        if kind not in known or kind in reported:
            continue
        ours, theirs = _fields(known[kind]), _fields(event)
        lost, more = sorted(ours - theirs - OPTIONAL), sorted(theirs - ours)
        if lost or more:
            reported.add(kind)
            words = [f"without {', '.join(lost)}"] if lost else []
            words += [f"also with {', '.join(more)}"] if more else []
            yield Difference(about=f"shape of {kind}", model=", ".join(sorted(ours)), measured="; ".join(words))


def _golden(folder: Path) -> Iterator[Mapping[str, Any]]:
    for path in sorted(folder.glob("*.json")):
        if path.stem == "unknown":
            continue  # an event that is cut short on purpose
        found = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(found, dict) and "detail-type" in found:
            yield found


def _fields(value: Any, path: str = "") -> set[str]:
    """Return the paths of all fields with the type of their values; times and names differ, types do not."""
    if isinstance(value, Mapping):
        return {found for name, inner in value.items() for found in _fields(inner, f"{path}.{name}" if path else name)}
    return {f"{path}:{type(value).__name__}"}


def warning(seen: Recording) -> Iterator[Difference]:
    """Compare the seconds from the spot warning until EC2 takes the instance."""
    warned = {e["detail"].get("instance-id"): _at(e) for e in seen.events if e.get("detail-type") == SPOT}
    for event in seen.events:
        detail = event.get("detail") or {}
        instance = detail.get("instance-id")
        if event.get("detail-type") == STATE and detail.get("state") == "shutting-down" and instance in warned:
            after = _at(event) - warned.pop(instance)
            early = any(one.instance == instance and "terminated" in one.times for one in seen.terminations)
            measured = f"{after:.0f} s after the warning" + (", Leeward had terminated it before" if early else "")
            same = early or abs(after - WARNING_SECONDS) <= 15
            yield Difference(
                about="end of the spot instance", model=f"{WARNING_SECONDS} s", measured=measured, same=same
            )


def launch(seen: Recording) -> Iterator[Difference]:
    """Compare the desired size: LaunchInstances raises it until a termination with decrement offsets it. In a spot
    interruption both follow faster than the observations; an upgrade holds its surge for minutes.
    """
    if seen.before is None or seen.play == "managed upgrade":
        return  # there EKS raises it itself
    most = max((one.desired for one in seen.samples), default=seen.before.desired)
    grown, surged = most - seen.before.desired, "upgrade" in seen.play
    if grown > 0 or (surged and len(seen.terminations) > 0):
        yield Difference(
            about="LaunchInstances and the desired size",
            model="raised until the old instance is terminated with decrement",
            measured=f"raised by {grown} at the most" if grown > 0 else "never seen raised",
            same=grown > 0,
        )
    for one in seen.terminations:
        if one.instance in seen.victims and one.replacement and not one.launched and seen.play == "spot interruption":
            yield Difference(about="LaunchInstances", model="launches", measured=one.replacement)


def order(seen: Recording) -> Iterator[Difference]:
    """Compare the order of the lifecycle states in which each instance was observed."""
    reported: dict[str, list[str]] = {}
    for sample in seen.samples:
        for instance, state in sample.members.items():
            path = reported.setdefault(instance, [])
            if not path or path[-1] != state:
                path.append(state)
    for instance, path in reported.items():
        known = [state for state in path if state in ORDER]
        if known != sorted(known, key=ORDER.index):
            yield Difference(about=f"lifecycle of {instance}", model=" → ".join(ORDER), measured=" → ".join(path))


def _at(event: Event) -> float:
    return datetime.fromisoformat(str(event["time"]).replace("Z", "+00:00")).timestamp()
