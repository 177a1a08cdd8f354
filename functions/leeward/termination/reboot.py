"""Reboot step of node-termination: reboot the drained instance once, or wait for EC2 or its group to reboot it, until
its node is back.

Idempotent: the boot id that the reboot ends is recorded before the request, by a conditional write, so a step that is
repeated or killed requests no second one. A reboot whose request was lost looks like one that the node did not survive:
the node is replaced. Facts that are older than the drain decide nothing: condition, pods and circuit breaker are read
again before the request, and before the replacement of a node that does not come back. An API server that has been away
shows an old state first, so the node is looked at twice before that.

EC2 (`interruption.systemReboot: wait`) may reboot it at any time from the date on, move the date, or cancel the event.
The event's own state ends the wait; a boot id that has changed before is some other reboot.

A group that replaces the root volume of its instance reboots it as well. Our terminate hook holds the instance in
ReplacingRootVolume:Wait while it drains, and is answered then. The instance stays in its group, so nothing is launched
or ended here. If the replacement fails the group itself ends the instance.
Source: Auto Scaling user guide, "Replace root volumes during instance refresh"."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from leeward.errors import AwsUnavailableError, ClusterUnreachableError, ObjectGoneError, TerminalError, ThrottledError
from leeward.model.group import HookResult
from leeward.model.instance_status import ScheduledEvent
from leeward.model.lifecycle import ENDING, IN_SERVICE, LifecycleRole, role_of
from leeward.model.node import Node, disruption_taint
from leeward.model.termination import (
    BACK_WITHIN,
    MOST_A_DAY,
    Cause,
    CauseKind,
    Reboot,
    RebootBy,
    TerminationRecord,
    reboots_of_a_day,
)
from leeward.ports import Ports
from leeward.ports.records import Claims
from leeward.termination import decisions
from leeward.termination.eviction import plan_now
from leeward.termination.run import Next, Run, current
from leeward.termination.situation import DrainContext, Freshness, Situation, find_node, survey

MISSED = "missed"  # a key in the record's times: the last look at which the node was overdue
LOOKS_AGAIN = timedelta(seconds=60)  # a kubelet that lost its API server has reported long before
LOOKED = timedelta(minutes=3)  # a look before that says nothing: the API server may have been away since
LIMIT = f"it was rebooted {MOST_A_DAY} times within a day"
BACK = int(BACK_WITHIN.total_seconds() // 60)
EC2_LOOKS_EVERY = 30.0  # seconds
TAKEN_OUT = (LifecycleRole.STANDBY, LifecycleRole.DETACHING)
GROUP_LOOKS_EVERY = 20  # seconds, at most so often


def seen_once(record: TerminationRecord, claims: Claims, now: datetime) -> str:
    """Return that this is the first of two looks in a row, or too soon after it; empty at the second. The first is
    noted in the record.
    """
    missed = record.times.get(MISSED)
    if missed is None or now - missed > LOOKED:
        claims.note(record.instance, times={MISSED: now})
        return "seen once"
    return "seen a moment ago" if now - missed < LOOKS_AGAIN else ""


def reboot_or_wait(run: Run, _: Mapping[str, Any], ports: Ports) -> Run:
    """Reboot, or look whether the node is back. The next step is wait, rebooted, replace (it does not come back, or may
    not be rebooted), drain (a pod has come, or a cause that ends the instance), drained (its group ends it), cancel
    (the circuit breaker is open), or gone.
    """
    run, record = current(run, ports, unless=lambda _: True)
    by_group = record.reboot is not None and record.reboot.by is RebootBy.GROUP
    situation = survey(record, ports, Freshness.GROUP if by_group else Freshness.WORK)
    record = situation.record
    run = replace(run, version=record.version, pause=0)
    if situation.ended:
        return replace(run, next=Next.GONE, why=f"EC2 says {situation.state}")
    wanted = record.reboot
    if wanted is None:
        return replace(run, next=Next.DRAIN, why="a cause has joined that asks for more than a reboot")
    if role_of(situation.lifecycle) in ENDING:
        return replace(run, next=Next.DRAINED, why="the group itself is ending the instance")
    if by_group and situation.in_work:
        return let_the_group_work(run, situation, ports)
    return _with_node(run, situation, wanted, ports)


def _with_node(run: Run, situation: Situation, wanted: Reboot, ports: Ports) -> Run:
    """Compare the Node with the one before the reboot, or request the reboot. A taint that was removed is repeated, and
    pods that have come are drained: the reboot would end them without notice.
    """
    record = situation.record
    kubernetes = ports.clusters.kubernetes(record.subject.cluster)
    node = find_node(record, kubernetes)
    if node is None:
        return replace(run, next=Next.CANCEL, why="its Node is gone, and with it the boot id that shows a reboot")
    missing = not_back(node, record.boot or node.boot, wanted)
    if wanted.by is RebootBy.GROUP:
        return await_group(run, situation, node, missing, ports)
    if node.disrupted_by is None and missing:
        with suppress(ClusterUnreachableError, ObjectGoneError, ThrottledError):  # the reboot comes all the same
            kubernetes.taint(node, disruption_taint(ports.deployment), exclude=True)
            if node.ready and record.rebooting is None:
                return replace(run, next=Next.DRAIN, why="its taint was removed: pods may have come")
    if wanted.by is RebootBy.EC2:
        return _await_ec2(run, record, wanted, node, ports)
    requested = record.rebooting is not None
    return _await_return(run, record, wanted, node, ports) if requested else _request(run, situation, node, ports)


def _request(run: Run, situation: Situation, node: Node, ports: Ports) -> Run:
    """Request the reboot of an empty node, unless something is against it."""
    record, now = situation.record, ports.clock.now()
    kubernetes = ports.clusters.kubernetes(record.subject.cluster)
    started = record.times.get("draining", now)
    plan = plan_now(node, DrainContext(situation=situation, started=started, ports=ports))
    if not plan.drained:
        return replace(run, next=Next.DRAIN, why="a pod that has to leave is on it again")
    over = _over(record, node)
    if not over and (against := _reason_not_to_reboot(record, node, now)):
        return _replace(run, record, node, against, ports)
    if held := over or _circuit_breaker(record, node, ports):
        return replace(run, next=Next.CANCEL, why=f"not rebooted: {held}"[:500])
    if not ports.claims.note_reboot(record.instance, node.boot, now):
        return _wait(run, now, now, "its reboot has been requested")
    try:
        with suppress(AwsUnavailableError):  # EC2 may have begun it: the boot id will tell
            ports.instances.reboot(record.instance)
    except ThrottledError:
        ports.claims.forget_reboot(record.instance, node.boot)
        raise
    except TerminalError as error:
        return _replace(run, record, node, f"EC2 refused the reboot: {error}", ports)
    message = f"Leeward has drained this node and reboots it; if it is not back within {BACK} min it is replaced"
    kubernetes.event(node, reason="Rebooting", message=message, warning=False, now=now)
    return _wait(run, now, now, "reboot requested")


def _over(record: TerminationRecord, node: Node) -> str:
    """Return that the condition of the reboot is gone, empty while the node has it, or if the reboot is for none."""
    wanted = record.reboot
    if wanted is None or not wanted.condition or _still_unhealthy(node, wanted):
        return ""
    return f"{wanted.condition} is no longer {wanted.status}"


def _reason_not_to_reboot(record: TerminationRecord, node: Node, now: datetime) -> str:
    """Return why the node is replaced instead, empty if it may be rebooted."""
    if not node.boot:
        return "its kubelet reports no boot id, so a reboot could not be recognized"
    if node.boot in record.reboots:
        return "an earlier reboot has not changed its boot id"
    return LIMIT if reboots_of_a_day(record.reboots.values(), now) >= MOST_A_DAY else ""


def _circuit_breaker(record: TerminationRecord, node: Node, ports: Ports) -> str:
    """Return why no node may be repaired now, empty if none is against it."""
    from leeward.reconcile.repair import reason_to_wait  # late: one read of the cluster for a whole reboot

    return reason_to_wait(node, record.subject.cluster, ports)


def _await_return(run: Run, record: TerminationRecord, wanted: Reboot, node: Node, ports: Ports) -> Run:
    """Compare the node with the one that was rebooted."""
    before, requested = record.rebooting or ("", ports.clock.now())
    now = ports.clock.now()
    missing = not_back(node, before, wanted)
    if not missing:
        why = f"rebooted in {int((now - requested).total_seconds())} s: it is Ready with a new boot id"
        return replace(run, next=Next.REBOOTED, why=why)
    if now >= requested + BACK_WITHIN:
        return _give_up(run, record, node, f"{missing} {BACK} min after its reboot", ports)
    return _wait(run, now, requested, missing)


def _await_ec2(run: Run, record: TerminationRecord, wanted: Reboot, node: Node, ports: Ports) -> Run:
    """Compare the node with the one whose drain began. The boot id is noted now where its taint was not written."""
    if not record.boot:
        ports.claims.note(record.instance, boot=node.boot)
    before = record.boot or node.boot
    events = ports.instances.scheduled_events().get(record.instance, ())
    wait = Ec2RebootWait(record=record, node=node, before=before, missing=not_back(node, before, wanted), events=events)
    following = after_ec2_reboot(run, wait, ports.clock.now())
    return _give_up(run, record, node, following.why, ports) if following.next is Next.REPLACE else following


def not_back(node: Node, before: str, wanted: Reboot) -> str:
    """Return what the node still lacks after a reboot, as a clause; empty once it is back. `before`: the boot id that
    the reboot ends.
    """
    if not node.boot or node.boot == before:
        return "it has no new boot id"
    if not node.ready:
        return "it is NotReady"
    return f"{wanted.condition} is still {wanted.status}" if _still_unhealthy(node, wanted) else ""


def _still_unhealthy(node: Node, wanted: Reboot) -> bool:
    return any((condition.type, condition.status) == (wanted.condition, wanted.status) for condition in node.monitored)


def _give_up(run: Run, record: TerminationRecord, node: Node, why: str, ports: Ports) -> Run:
    """Replace a node that does not come back, at the second of two looks in a row: an API server that has been away
    shows an old state first. Ec2RebootWait while the circuit breaker is open: the node is drained, and serves nothing.
    """
    now = ports.clock.now()
    waiting = replace(run, next=Next.WAIT, pause=int(LOOKS_AGAIN.total_seconds()))
    if early := seen_once(record, ports.claims, now):
        return replace(waiting, why=f"{why}; {early}")
    if held := _circuit_breaker(record, node, ports):
        pause = decisions.pause_seconds(waited=now - record.times.get("claimed", now), now=now)
        return replace(waiting, pause=pause, why=f"{why}, not replaced: {held}"[:500])
    return _replace(run, record, node, why, ports)


def _wait(run: Run, now: datetime, since: datetime, why: str) -> Run:
    pause = decisions.pause_seconds(waited=now - since, limits=[since + BACK_WITHIN], now=now)
    return replace(run, next=Next.WAIT, pause=pause, why=why)


def _replace(run: Run, record: TerminationRecord, node: Node, why: str, ports: Ports) -> Run:
    """Join a cause that ends the instance; a repeat of the step finds it in the record. The node stays tainted."""
    now = ports.clock.now()
    cause_id = f"not-rebooted#{record.instance}#{record.attempt}"
    cause = Cause(id=cause_id, kind=CauseKind.UNHEALTHY, at=now, reason=why)
    joined = ports.claims.claim(record.subject, cause, now)
    kubernetes = ports.clusters.kubernetes(record.subject.cluster)
    message = f"Leeward will replace this node instead of rebooting it: {why}"
    kubernetes.event(node, reason="RebootFailed", message=message, warning=True, now=now)
    return replace(run, version=joined.version, next=Next.REPLACE, why=why[:500])


@dataclass(frozen=True, slots=True, kw_only=True)
class Ec2RebootWait:
    """Inputs of one look."""

    record: TerminationRecord
    node: Node
    before: str  # boot id at the beginning of the drain
    missing: str  # what the node lacks after a reboot, empty if it is back
    events: tuple[ScheduledEvent, ...]  # EC2's scheduled events of the instance


def after_ec2_reboot(run: Run, wait: Ec2RebootWait, now: datetime) -> Run:
    """Return the next step: rebooted, cancel (the event is over, and the node was not rebooted), replace (it does not
    become Ready), or wait.
    """
    starts, node = _starts(wait.record, now), wait.node
    reboots = [event for event in wait.events if event.reboots]
    listed, late = any(not event.over for event in reboots), now >= starts + BACK_WITHIN
    if not wait.missing and (late or not listed):
        return replace(run, next=Next.REBOOTED, why="EC2 has rebooted it: it is Ready with a new boot id")
    if node.ready and node.boot == wait.before and not listed:
        if any(event.canceled for event in reboots):
            return replace(run, next=Next.CANCEL, why="EC2 has canceled the reboot")
        if late:
            return replace(run, next=Next.CANCEL, why="EC2 no longer lists the reboot, and has not rebooted it")
    silent = node.not_ready_since
    if not node.ready and late and silent is not None and now >= silent + BACK_WITHIN:
        return replace(run, next=Next.REPLACE, why=f"{wait.missing} {int(BACK_WITHIN.total_seconds() // 60)} min later")
    limits = [moment for moment in (starts, starts + BACK_WITHIN) if moment > now]
    pause = decisions.pause_seconds(waited=BACK_WITHIN, hint=EC2_LOOKS_EVERY, limits=limits, now=now)
    return replace(
        run, next=Next.WAIT, pause=pause, why=f"waits for EC2's reboot at {starts:%H:%M:%SZ}: {wait.missing}"
    )


def _starts(record: TerminationRecord, now: datetime) -> datetime:
    """Return the latest date that was announced: EC2 moves reboots, usually to a later one."""
    by_ec2 = (cause for cause in record.causes if cause.reboot == Reboot(by=RebootBy.EC2))
    return max((cause.deadline for cause in by_ec2 if cause.deadline is not None), default=now)


def let_the_group_work(run: Run, situation: Situation, ports: Ports) -> Run:
    """Answer the hooks of ours that hold the drained instance, then wait. A node that has pods again, because the state
    was read too early, is drained first. Repeated, it finds nothing waiting.
    """
    record, now = situation.record, ports.clock.now()
    kubernetes = ports.clusters.kubernetes(record.subject.cluster)
    undrained = situation.held and "drained" not in record.times
    if undrained and find_node(record, kubernetes) is not None:  # a Node that has never joined is not drained
        return replace(run, next=Next.DRAIN, why=f"the group says {situation.lifecycle}: it is drained first")
    if situation.held and situation.group is not None and situation.our_hooks:
        for hook in situation.our_hooks:
            ports.groups.complete(
                group=situation.group.name, hook=hook.name, instance=record.instance, result=HookResult.CONTINUE
            )
        ports.claims.note(record.instance, times={"answered": now})
        return _await_the_group(run, record, now, f"answered {', '.join(hook.name for hook in situation.our_hooks)}")
    return _await_the_group(run, record, now, _group_says(situation))


def _group_says(situation: Situation) -> str:
    return f"the group says {situation.lifecycle}" if situation.lifecycle else "no group lists the instance any more"


def await_group(run: Run, situation: Situation, node: Node, missing: str, ports: Ports) -> Run:
    """Return the next step once the group has finished: rebooted, cancel (the node was not rebooted, or does not become
    Ready: node repair then decides by the policy), or wait. `missing`: what the node lacks after a reboot.
    """
    record, now = situation.record, ports.clock.now()
    taken_out = role_of(situation.lifecycle) in TAKEN_OUT
    if situation.lifecycle != IN_SERVICE and not taken_out:
        return _await_the_group(run, record, now, _group_says(situation))
    if not missing:
        return replace(run, next=Next.REBOOTED, why="its root volume was replaced: it is Ready with a new boot id")
    silent = node.not_ready_since
    if taken_out:
        why = f"{_group_says(situation)}: its owner has taken it out of service"
    elif node.ready:
        why = "its group has it in service again, and has not rebooted it"
    elif silent is not None and now >= silent + BACK_WITHIN:
        why = f"its group has it in service again, but it is NotReady for {BACK} min: node repair decides"
    else:
        return _await_the_group(run, record, now, missing)
    if early := seen_once(record, ports.claims, now):
        return replace(run, next=Next.WAIT, pause=int(LOOKS_AGAIN.total_seconds()), why=f"{why}; {early}")
    return replace(run, next=Next.CANCEL, why=why)


def _await_the_group(run: Run, record: TerminationRecord, now: datetime, why: str) -> Run:
    """Return a pause that grows: another team's hook may hold the instance for two days."""
    waited = now - record.times.get("drained", now)
    pause = max(decisions.pause_seconds(waited=waited, now=now), GROUP_LOOKS_EVERY)
    return replace(run, next=Next.WAIT, pause=pause, why=why)
