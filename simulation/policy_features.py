"""Changes of a policy by a feature of a world. Each draws from a random stream of its own."""

from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Any

from leeward.policy.document import Budget, DrainPolicy, NodePolicy, OnAlarm, Window
from leeward.policy.repair import RepairAction, RepairCondition
from local.cluster.objects import Obj
from simulation.fleets import REGION

ZONES = tuple(f"{REGION}{letter}" for letter in "abc")  # those that every fleet has
NODE_PORT: Obj = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "edge", "namespace": "default"},
    "spec": {"type": "NodePort", "ports": [{"port": 80, "nodePort": 30080}]},
}
OPEN_EVERY, OPEN_FOR = 40, 20  # minutes of an hour: windows of automatic upgrades


def finalizer(policy: NodePolicy, _: Random) -> NodePolicy:
    return replace(policy, finalizer=True)


def repair(policy: NodePolicy, random: Random) -> NodePolicy:
    limits = replace(policy.repair, not_ready_after=timedelta(minutes=random.choice((2, 5))))
    return replace(policy, repair=limits)


def conditions(policy: NodePolicy, random: Random) -> NodePolicy:
    """Let broken hardware be rebooted soon, and a broken kernel be replaced. Half wait for the reboots of EC2."""
    soon = timedelta(minutes=random.choice((2, 5)))
    limited = (
        RepairCondition(type="AcceleratedHardwareReady", after=soon, action=RepairAction.REBOOT),
        RepairCondition(type="KernelReady", after=soon),
    )
    most = random.choice((policy.repair.max_unhealthy, 60))
    limits = replace(policy.repair, max_unhealthy=most, max_unhealthy_percent=True)
    waits = replace(policy.interruption, waits_for_reboot=random.random() < 0.5)
    return replace(policy, repair=replace(limits, conditions=limited), interruption=waits)


def budgets(policy: NodePolicy, random: Random) -> NodePolicy:
    window = Window(schedule="*/30 * * * *", duration=timedelta(minutes=10))
    limits = (
        Budget(nodes=random.choice((10, 50))),
        Budget(nodes=1, percent=False, reasons=("Drifted", "Upgrade")),
        Budget(nodes=0, percent=False, window=window, reasons=("Underutilized",)),
        Budget(nodes=random.choice((1, 50)), percent=random.random() < 0.5, zone=random.choice(ZONES)),
    )
    return replace(policy, disruption=replace(policy.disruption, budgets=limits))


def grace(policy: NodePolicy, random: Random) -> NodePolicy:
    longest = policy.drain.timeout + timedelta(minutes=random.choice((5, 15)))
    return _with_drain(policy, termination_grace_period=longest, force=False)


def refusing(policy: NodePolicy, random: Random) -> NodePolicy:
    return _with_drain(policy, evict_unmanaged=random.random() < 0.5, delete_local_data=random.random() < 0.5)


def settle_auto(policy: NodePolicy, _: Random) -> NodePolicy:
    return _with_drain(policy, settle=None)


def _with_drain(policy: NodePolicy, **changes: Any) -> NodePolicy:
    drain: DrainPolicy = replace(policy.drain, **changes)
    return replace(policy, drain=drain)


def alarms(policy: NodePolicy, random: Random) -> NodePolicy:
    """Let the policy's alarm hold its upgrades, or roll them back, and its runs."""
    names = (alarm_of(policy),)
    update = replace(policy.update, alarms=names, on_alarm=random.choice(tuple(OnAlarm)))
    return replace(policy, update=update, disruption=replace(policy.disruption, alarms=names))


def automatic(policy: NodePolicy, random: Random) -> NodePolicy:
    """Let the policy upgrade its groups when their image moves, by some policies in windows alone. Its runs leave
    drifted nodes as they are.
    """
    window = Window(schedule=f"*/{OPEN_EVERY} * * * *", duration=timedelta(minutes=OPEN_FOR))
    windows = (window,) if random.random() < 0.7 else ()
    update = replace(policy.update, auto=timedelta(minutes=random.choice((5, 15))), windows=windows)
    return replace(policy, update=update, disruption=replace(policy.disruption, drift=False))


def alarm_of(policy: NodePolicy) -> str:
    """Return the name of the alarm of a policy."""
    return f"errors-{policy.name}"
