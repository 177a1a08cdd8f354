"""Reboot step of node-termination: reboot the drained instance once, then wait until its node is back.

Idempotent: the boot id that the reboot ends is recorded before the request, by a conditional write, so a step that is
repeated or killed requests no second one. A reboot whose request was lost looks like one that the node did not survive:
the node is replaced. Facts that are older than the drain decide nothing: condition, pods and circuit breaker are read
again before the request, and before the replacement of a node that does not come back."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Any

from leeward.errors import (
    AwsUnavailableError,
    ClusterUnreachableError,
    ObjectGoneError,
    TerminalError,
    ThrottledError,
)
from leeward.model.lifecycle import ENDING, role_of
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
from leeward.termination import decisions
from leeward.termination.ec2_reboot import Wait, next_step
from leeward.termination.eviction import plan_now
from leeward.termination.group_reboot import await_group, let_the_group_work
from leeward.termination.run import Next, Run, current
from leeward.termination.second_look import LOOKS_AGAIN, seen_once
from leeward.termination.situation import Freshness, Situation, find_node, survey

LIMIT = f"it was rebooted {MOST_A_DAY} times within a day"
BACK = int(BACK_WITHIN.total_seconds() // 60)


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
    plan = plan_now(node, situation, record.times.get("draining", now), kubernetes, ports)
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
    wait = Wait(record=record, node=node, before=before, missing=not_back(node, before, wanted), events=events)
    following = next_step(run, wait, ports.clock.now())
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
    return any((one.type, one.status) == (wanted.condition, wanted.status) for one in node.monitored)


def _give_up(run: Run, record: TerminationRecord, node: Node, why: str, ports: Ports) -> Run:
    """Replace a node that does not come back, at the second of two looks in a row: an API server that has been away
    shows an old state first. Wait while the circuit breaker is open: the node is drained, and serves nothing.
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
