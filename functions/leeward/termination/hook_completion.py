"""Answer step of node-termination: completes the terminate hooks of ours, waits until EC2 has ended the instance, and
notices one that stays: retained by its group, detached, or back from its warm pool.

The hooks that no termination holds are in `hooks.py`."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from math import ceil
from typing import Any

from leeward.model.group import HookResult
from leeward.model.instance import ENDED
from leeward.model.lifecycle import IN_SERVICE, POOLED_AND_RUNNING, RETAINED, TERMINATING
from leeward.model.termination import ABRUPT, CauseKind, TerminationRecord
from leeward.ports import Ports
from leeward.ports.autoscaling import Groups
from leeward.termination import decisions
from leeward.termination.run import Next, Run, carrying, current, later
from leeward.termination.situation import (
    TRANSIENT_MAX_AGE,
    Freshness,
    Situation,
    instance_fact,
    seconds_left,
    survey,
)

HEARS_AFTER = (2, 1, 1)  # seconds: a message takes some two from EC2 to the record
SERVES_AGAIN = timedelta(minutes=1)  # in service for so long after its end was due: it may have returned
WHY_RETAINED = "a terminate hook was abandoned and the group retains the instance: leeward drain ends it"


def answer_hooks(run: Run, _: Mapping[str, Any], ports: Ports) -> Run:
    """Complete each terminate hook of ours as soon as the group waits, by instance id: the event that announces it is
    only best effort. Then wait until EC2 reports that the instance has ended. Hooks that are not ours are never
    touched.

    While another team's hook holds an instance whose Node has not joined, the kubelet may still register it: the drain
    step reads the Node again after each pause.
    """
    return run if run.next is Next.CANCEL else _answer(*current(run, ports), ports)


def _answer(run: Run, record: TerminationRecord, ports: Ports) -> Run:
    situation = survey(record, ports, Freshness.WORK)
    waited = _waited(situation.record, ports.clock.now())
    stays = _was_kept(situation) or (situation.lifecycle == IN_SERVICE and waited > SERVES_AGAIN)
    unread = _may_hold_unnoticed(situation) or (situation.held and situation.has_new_hook)
    if not situation.looked and (situation.unusual or unread or stays):
        situation = survey(situation.record, ports)
    record, now = situation.record, ports.clock.now()
    may_wait = (
        situation.held or situation.lifecycle == TERMINATING
    )  # if requested just now, Auto Scaling knows whether it waits
    answered = [hook.name for hook in situation.our_hooks if may_wait and _complete(situation, hook.name, ports.groups)]
    if "answered" not in record.times and (answered or (situation.held and situation.our_hooks)):
        run, record = later(run, record, answered=now)
    may_hear = answered and not situation.ended and not record.has(*ABRUPT)
    if may_hear and (heard := _hears_of_the_end(run, ports)):
        return _answer(*heard, ports)
    if situation.ended:
        run, record = later(run, record, terminated=now)
        ended = replace(run, version=record.version, next=Next.REMOVE, pause=0, why=f"EC2 says {situation.state}")
        return carrying(ended, record, ports.claims)
    if onward := _onward(run, situation):
        return onward
    cancelled = _why_cancelled(situation, waited)
    if cancelled:
        return replace(run, next=Next.CANCEL, why=cancelled)
    held = f"the group says {situation.lifecycle}, EC2 {situation.state}"
    why = f"answered {', '.join(answered)}" if answered else held
    pause = max(decisions.pause_seconds(waited=waited, now=now), _until_unsure(record, now))
    return _look_again(replace(run, version=record.version, pause=pause, why=why), situation)


def _was_kept(situation: Situation) -> bool:
    """Return whether no end has been requested, and the group has it in service: it has replaced its root volume."""
    return situation.lifecycle == IN_SERVICE and "terminating" not in situation.record.times


def _onward(run: Run, situation: Situation) -> Run | None:
    """Return the step after the wait for an instance that EC2 has not ended; None if its end is still to come."""
    run = replace(run, version=situation.record.version)
    if _was_kept(situation):
        why = "its group has replaced its root volume: now it is ended"
        return replace(run, next=Next.DRAIN, pause=decisions.SHORTEST_PAUSE, why=why)
    if situation.lifecycle == POOLED_AND_RUNNING:
        return replace(run, next=Next.REMOVE, why="it runs on in its warm pool")
    return None


def _waited(record: TerminationRecord, now: datetime) -> timedelta:
    """Return for how long the instance's end has been awaited."""
    since = max((record.times[name] for name in ("terminating", "drained") if name in record.times), default=now)
    return now - since


def _why_cancelled(situation: Situation, waited: timedelta) -> str:
    """Return why the instance stays although its end is awaited, or an empty string if it does not stay."""
    if situation.lifecycle is None and waited > decisions.DETACHED_AFTER:
        return "no group holds the instance any more: it was detached meanwhile"
    if _came_back(situation):
        return "its group has put it into service again, out of its warm pool"
    retained = situation.lifecycle == RETAINED and not situation.record.has(CauseKind.MANUAL)
    return WHY_RETAINED if retained else ""


def _came_back(situation: Situation) -> bool:
    """Return whether EC2 has started the instance again since the drain began, and its group has it in service:
    StartInstances renews the launch time of an instance that was stopped in its warm pool.
    """
    begun = situation.record.times.get("begun")
    launched = situation.instance.launched if situation.instance else None
    return situation.lifecycle == IN_SERVICE and begun is not None and launched is not None and launched > begun


def _hears_of_the_end(run: Run, ports: Ports) -> tuple[Run, TerminationRecord] | None:
    """Return the run and the record once a message has reported, within some seconds, that EC2 has ended the instance:
    mostly it does, and a pause with its step costs more than these seconds. With many instances that EC2 takes at once,
    none is waited for like this.
    """
    for seconds in HEARS_AFTER:
        ports.clock.sleep(seconds)
        run, record = current(run, ports, unless=lambda _: True)
        known = instance_fact(record, ports.clock.now())
        if known is not None and known.state in ENDED:
            return run, record
    return None


def _may_hold_unnoticed(situation: Situation) -> bool:
    """Return whether EC2 has ended the instance, no hook of ours was completed, and no message has reported whether one
    waits: it may be lost.
    """
    answered = "answered" in situation.record.times
    return situation.ended and bool(situation.our_hooks) and not (situation.held or answered)


def _until_unsure(record: TerminationRecord, now: datetime) -> int:
    """Return the seconds in which a step learns nothing: a message wakes the run, and AWS is called if none comes."""
    return min(ceil(seconds_left(record, now)), ceil(TRANSIENT_MAX_AGE.total_seconds()))


def _look_again(run: Run, situation: Situation) -> Run:
    """Read again after a pause: the hooks, or the Node not joined yet, every few seconds if EC2 takes the instance."""
    if not decisions.may_join_late(situation.record, situation.state):
        return replace(run, next=Next.WAIT)
    pause = min(run.pause, decisions.JOIN_PAUSE) if situation.record.has(*ABRUPT) else run.pause
    return replace(run, next=Next.DRAIN, pause=pause, why=f"{run.why}; no Node has joined yet")


def _complete(situation: Situation, hook: str, groups: Groups) -> bool:
    assert situation.group is not None  # only a group holds an instance
    return groups.complete(
        group=situation.group.name, hook=hook, instance=situation.record.instance, result=HookResult.CONTINUE
    )
