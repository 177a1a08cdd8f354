"""Wait for volumes that are still attached to a node whose pods have left, and their detachment when the instance is
gone. A missing permission to read them delays a node by that wait, and no longer.

A pod that moves starts only when its volume has left the old node. Kubernetes detaches an unmounted volume in some
seconds. A volume of an instance that is gone is detached only after six minutes, unless the Node is tainted out of
service."""

from datetime import datetime
from math import ceil

from leeward.errors import AccessDeniedError
from leeward.model import well_known
from leeward.model.attachment import claims_of
from leeward.model.node import Node, Taint
from leeward.ports import Ports
from leeward.ports.clock import Clock
from leeward.ports.kubernetes import Kubernetes
from leeward.termination import deadlines
from leeward.termination.drain_plan import DrainPlan
from leeward.termination.situation import Situation
from leeward.termination.target_deregistration import Awaited
from leeward.termination.volumes import HeldVolume, drain_volumes, held_volumes

OUT_OF_SERVICE = Taint(key=well_known.OUT_OF_SERVICE_TAINT, effect="NoExecute", value="nodeshutdown")
SURE = "terminated"  # EC2's state of an instance that cannot write any more; `shutting-down` still might


def before_the_end(
    situation: Situation, started: datetime, node: Node, plan: DrainPlan, kubernetes: Kubernetes, ports: Ports
) -> Awaited | None:
    """Return the volumes of pods that have left, until drain.volumeDetachTimeout from the last pod's end or the
    deadline. None on a node that is not Ready: no kubelet there unmounts them, and they are free soonest when the
    instance has ended.
    """
    policy, now = situation.policy.drain, ports.clock.now()
    until = deadlines.held_by(
        situation.record, policy, policy.volume_detach_timeout, started, now, ours_hold=situation.ours_hold
    )
    if now >= until or not node.ready:
        return None
    try:
        attached = [one for one in kubernetes.attachments() if one.node == node.name]
    except AccessDeniedError as error:
        return Awaited(what=(f"volumes may still be attached: {error}",), until=until)
    if not attached:
        return None
    pods = [left.pod for left in plan.leave]
    held = held_volumes(node.name, pods, attached, claims_of(kubernetes.volumes()))
    waits = {line.attachment for line in drain_volumes(plan, held, waits=True) if line.wait}
    there = [_named(one) for one in held if one.attachment.name in waits]
    return Awaited(what=tuple(there), until=until) if there else None


def before_removal(situation: Situation, node: Node, kubernetes: Kubernetes, clock: Clock) -> str | None:
    """Return the reason that keeps the Node of an instance that EC2 ends: its attachments. Once EC2 reports it
    terminated or no longer knows it, taint the node out of service, so that they are detached at once; without the Node
    no controller could do so, and it would take six minutes. None: remove it.
    """
    ended = situation.record.times.get("terminated", clock.now())
    if clock.now() >= ended + situation.policy.drain.volume_detach_timeout:
        return None
    seconds = ceil(situation.policy.drain.volume_detach_timeout.total_seconds())
    try:
        attached = [one.name for one in kubernetes.attachments() if one.node == node.name]
    except AccessDeniedError as error:
        return f"volumes may still be attached to {node.name}, waited for at most {seconds} s: {error}"
    if not attached:
        return None
    if situation.instance is None or situation.instance.state == SURE:
        kubernetes.taint(node, OUT_OF_SERVICE, unschedulable=False)
    return f"still attached to {node.name}, waited for at most {seconds} s: {', '.join(attached)}"


def _named(held: HeldVolume) -> str:
    whose = f" of {held.claim}" if held.claim else ""
    error = f" ({held.attachment.error})" if held.attachment.error else ""
    return f"volume {held.attachment.volume or held.attachment.name}{whose} is still attached{error}"
