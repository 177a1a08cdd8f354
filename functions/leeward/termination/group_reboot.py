"""Wait of a drained node while its Auto Scaling group replaces its root volume, which reboots it.

Our terminate hook holds the instance in ReplacingRootVolume:Wait while it drains, and is answered then. The instance
stays in its group, so nothing is launched or ended here. If the replacement fails the group itself ends the instance.
Source: Auto Scaling user guide, "Replace root volumes during instance refresh"."""

from dataclasses import replace
from datetime import datetime

from leeward.model.group import HookResult
from leeward.model.lifecycle import IN_SERVICE, LifecycleRole, role_of
from leeward.model.node import Node
from leeward.model.termination import BACK_WITHIN, TerminationRecord
from leeward.ports import Ports
from leeward.termination import decisions
from leeward.termination.run import Next, Run
from leeward.termination.second_look import LOOKS_AGAIN, seen_once
from leeward.termination.situation import Situation, find_node

TAKEN_OUT = (LifecycleRole.STANDBY, LifecycleRole.DETACHING)
LOOKS_EVERY = 20  # seconds, at most so often
BACK = int(BACK_WITHIN.total_seconds() // 60)


def let_the_group_work(run: Run, situation: Situation, ports: Ports) -> Run:
    """Answer the hooks of ours that hold the drained instance, then wait. A node that has pods again, because the state
    was read too early, is drained first. Repeated, it finds nothing waiting.
    """
    record, now = situation.record, ports.clock.now()
    if situation.held and "drained" not in record.times and _has_node(record, ports):
        return replace(run, next=Next.DRAIN, why=f"the group says {situation.lifecycle}: it is drained first")
    if situation.held and situation.group is not None and situation.our_hooks:
        for hook in situation.our_hooks:
            ports.groups.complete(
                group=situation.group.name, hook=hook.name, instance=record.instance, result=HookResult.CONTINUE
            )
        ports.claims.note(record.instance, times={"answered": now})
        return _wait(run, record, now, f"answered {', '.join(hook.name for hook in situation.our_hooks)}")
    return _wait(run, record, now, _state(situation))


def _state(situation: Situation) -> str:
    return f"the group says {situation.lifecycle}" if situation.lifecycle else "no group lists the instance any more"


def _has_node(record: TerminationRecord, ports: Ports) -> bool:
    """Return whether a Node stands for the instance: one that has never joined is not drained."""
    return find_node(record, ports.clusters.kubernetes(record.subject.cluster)) is not None


def await_group(run: Run, situation: Situation, node: Node, missing: str, ports: Ports) -> Run:
    """Return the next step once the group has finished: rebooted, cancel (the node was not rebooted, or does not become
    Ready: node repair then decides by the policy), or wait. `missing`: what the node lacks after a reboot.
    """
    record, now = situation.record, ports.clock.now()
    taken_out = role_of(situation.lifecycle) in TAKEN_OUT
    if situation.lifecycle != IN_SERVICE and not taken_out:
        return _wait(run, record, now, _state(situation))
    if not missing:
        return replace(run, next=Next.REBOOTED, why="its root volume was replaced: it is Ready with a new boot id")
    silent = node.not_ready_since
    if taken_out:
        why = f"{_state(situation)}: its owner has taken it out of service"
    elif node.ready:
        why = "its group has it in service again, and has not rebooted it"
    elif silent is not None and now >= silent + BACK_WITHIN:
        why = f"its group has it in service again, but it is NotReady for {BACK} min: node repair decides"
    else:
        return _wait(run, record, now, missing)
    if early := seen_once(record, ports.claims, now):
        return replace(run, next=Next.WAIT, pause=int(LOOKS_AGAIN.total_seconds()), why=f"{why}; {early}")
    return replace(run, next=Next.CANCEL, why=why)


def _wait(run: Run, record: TerminationRecord, now: datetime, why: str) -> Run:
    """Return a pause that grows: another team's hook may hold the instance for two days."""
    waited = now - record.times.get("drained", now)
    pause = max(decisions.pause_seconds(waited=waited, now=now), LOOKS_EVERY)
    return replace(run, next=Next.WAIT, pause=pause, why=why)
