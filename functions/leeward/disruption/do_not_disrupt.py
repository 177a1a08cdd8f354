"""Opt-outs from disruption, by annotation: Karpenter's keys, our own, and Cluster Autoscaler's.

They block voluntary methods only (docs/features.md, K17, K18): interruptions, manual drains and upgrades ignore them.
The first opt-out that holds decides whether a node may be disrupted; `leeward.blockers` lists each with its end.

A disruption window, `leeward.dev/disruption-window: "0 14 * * 6/3h Europe/Berlin"`, is a cron line, a slash, the
duration of the window, and the IANA time zone of the cron line (UTC without one). Outside its window the annotation
keeps the node as `do-not-disrupt` does. A value that cannot be read keeps the node at all times: its author wants a
limit, and the safe reading is the narrowest one."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache

from leeward.model.node import Node
from leeward.model.pod import Pod
from leeward.model.times import format_instant
from leeward.model.well_known import DISRUPTION_WINDOW, SAFE_TO_EVICT, SCALE_DOWN_DISABLED
from leeward.policy.document import Window
from leeward.policy.durations import parse_duration
from leeward.policy.fields import legible
from leeward.policy.schedule import is_active, next_start, parse_schedule, zone

WINDOW_EXPECTED = '"CRON/DURATION [TIME ZONE]" such as "0 14 * * 6/3h Europe/Berlin"'
_CRON_FIELDS = 5
_LONGEST = 300  # characters of a value that is read
_SHOWN = 80  # characters of a value that an Event or a table shows
DO_NOT_DISRUPT = ("leeward.dev/do-not-disrupt", "karpenter.sh/do-not-disrupt")
DO_NOT_EVICT = "karpenter.sh/do-not-evict"  # Karpenter's older key, without durations
DO_NOT_CONSOLIDATE = "karpenter.sh/do-not-consolidate"
TRUE, FALSE = "true", "false"
NOT_SAFE = (FALSE, "on-completion")  # of safe-to-evict; the second: until the pod has ended
_KEPT = {
    DO_NOT_CONSOLIDATE: "the node opts out of consolidation",
    SCALE_DOWN_DISABLED: "the node opts out of scale-down",
}  # against shrinking the cluster by the node


@lru_cache(maxsize=1024)
def parse_window(value: str) -> Window | None:
    """Return the window that an annotation names, None where it cannot be read."""
    words = value.split() if len(value) <= _LONGEST else []
    cron = 1 if value.lstrip().startswith("@") else _CRON_FIELDS
    if len(words) not in {cron, cron + 1}:
        return None
    last, slash, length = words[cron - 1].rpartition("/")
    try:
        schedule, duration = parse_schedule(" ".join((*words[: cron - 1], last))), parse_duration(length)
        zone(words[cron] if len(words) > cron else "UTC")
    except ValueError:
        return None
    if not slash or duration <= timedelta():
        return None
    return Window(schedule=schedule, duration=duration, time_zone=words[cron] if len(words) > cron else "UTC")


@lru_cache(maxsize=4096)
def is_window_open(value: str, now: datetime) -> bool:
    """Return whether the annotation allows voluntary disruption now; False where it cannot be read."""
    window = parse_window(value)
    return window is not None and is_active(window, now)


@lru_cache(maxsize=4096)
def window_opens(value: str, now: datetime) -> datetime | None:
    """Return when a closed window opens next; None where it never does or cannot be read."""
    window = parse_window(value)
    return None if window is None else next_start(window, now)


def window_shown(value: str) -> str:
    """Return the value as an Event or a table may show it: on one line, cut to eighty characters. Pods' authors write
    it.
    """
    return legible(value, _SHOWN)


@dataclass(frozen=True, slots=True, kw_only=True)
class OptOut:
    """Annotation that holds now. `until` None: for as long as it is present, or while its pod has not started. Of a
    disruption window `until` is its next start.
    """

    key: str
    value: str
    until: datetime | None = None


def pod_opt_outs(pod: Pod, now: datetime) -> tuple[OptOut, ...]:
    """Return the opt-outs of a pod that hold now.

    Karpenter (pkg/utils/pod, IsDisruptable) checks every pod that is neither finished nor being deleted, those of
    DaemonSets and static ones too; a duration counts from the pod's start; a value that is neither `true` nor a
    duration is ignored. A disruption window is Leeward's own, and one that cannot be read holds. Cluster Autoscaler
    (its drainability rules) checks neither static pods nor those of DaemonSets.
    """
    if pod.finished or pod.deletion is not None or not pod.annotations:
        return ()
    opt_outs = [one for key in DO_NOT_DISRUPT if (one := _do_not_disrupt(key, pod, now))]
    if pod.annotations.get(DO_NOT_EVICT) == TRUE:
        opt_outs.append(OptOut(key=DO_NOT_EVICT, value=TRUE))
    safe = pod.annotations.get(SAFE_TO_EVICT)
    if safe in NOT_SAFE and not (pod.of_daemon_set or pod.mirror):
        opt_outs.append(OptOut(key=SAFE_TO_EVICT, value=safe))
    window = pod.annotations.get(DISRUPTION_WINDOW)
    if window is not None and not is_window_open(window, now):
        until = window_opens(window, now)
        opt_outs.append(OptOut(key=DISRUPTION_WINDOW, value=window_shown(window), until=until))
    return tuple(opt_outs)


def windows_of(pods: Iterable[Pod]) -> frozenset[str]:
    """Return the disruption windows that pods name, as they are written."""
    return frozenset(window for pod in pods if (window := pod.annotations.get(DISRUPTION_WINDOW)))


def node_opt_outs(node: Node) -> tuple[OptOut, ...]:
    """Return the opt-outs of a node: first those against every voluntary method, then those against shrinking the
    cluster by the node.
    """
    keys = (*DO_NOT_DISRUPT, *_KEPT)
    return tuple(OptOut(key=key, value=TRUE) for key in keys if node.annotations.get(key) == TRUE)


def why_pod_stays(pod: Pod, now: datetime) -> str:
    """Return which annotation of a running pod forbids disrupting its node, empty when none does."""
    for one in pod_opt_outs(pod, now):
        if one.key == SAFE_TO_EVICT:
            return f'pod {pod.key} is not safe to evict ({one.key}: "{one.value}")'
        if one.key == DISRUPTION_WINDOW:
            return f'pod {pod.key} {_why_closed(one)} ({one.key}: "{one.value}")'
        span = "" if one.value == TRUE else f" for {one.value} from its start"
        return f"pod {pod.key} opts out of disruption{span} ({one.key})"
    return ""


def _why_closed(window: OptOut) -> str:
    if window.until is None:
        return f"has no disruption window that ever opens: it has to be {WINDOW_EXPECTED}"
    return f"opts out of disruption until its window opens at {format_instant(window.until)}"


def why_node_stays(node: Node) -> str:
    """Return which annotation of the node forbids every voluntary method, empty when none does."""
    key = next((one.key for one in node_opt_outs(node) if one.key in DO_NOT_DISRUPT), "")
    return f"the node opts out of disruption ({key})" if key else ""


def why_node_is_kept(node: Node) -> str:
    """Return which annotation of the node forbids shrinking the cluster by it, empty when none does."""
    key = next((one.key for one in node_opt_outs(node) if one.key in _KEPT), "")
    return f"{_KEPT[key]} ({key})" if key else ""


def _do_not_disrupt(key: str, pod: Pod, now: datetime) -> OptOut | None:
    value = pod.annotations.get(key)
    if value is None or value == TRUE:
        return OptOut(key=key, value=value) if value else None
    try:
        span = parse_duration(value)
    except ValueError:
        return None
    until = pod.started + span if pod.started else None  # not started yet: all of it lies ahead
    return OptOut(key=key, value=value, until=until) if until is None or until > now else None
