"""Rules that must hold once faults and arrivals have stopped and time has passed: no work is left open.

Each rule reads the whole world; nothing here remembers anything."""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta

from leeward.model import well_known
from local.cluster.objects import Obj, name_of
from simulation.asked import AskedOf
from simulation.disruption_rules import DISRUPTIONS_EVENTUAL, of_open_disruptions, owed_by_disruption
from simulation.drained import grace_left, node_behind, still_on
from simulation.facts import group_of, is_ahead
from simulation.foreign_taints import tainted_by_others
from simulation.leaving_rules import exclusions, replicas
from simulation.node_instances import instance_behind
from simulation.reboot_rules import waits_for_others
from simulation.rule import Rule
from simulation.upgrade_rules import UPGRADES_EVENTUAL, owed_by_upgrade
from simulation.view import WorldView

LEAVING = ("Terminating", "Terminated", "Detach", "Warmed:Terminating")
COOLDOWN = timedelta(minutes=20)  # between two attempts: 15 minutes at most, then a minute reconciler's run or two
NOTICED_WITHIN = timedelta(minutes=5)  # that an instance has ended: asked after three minutes, between two pauses
STUCK_AFTER = timedelta(hours=2)  # longer than any drain, settling and termination together
INSTANCE = re.compile(r"i-[0-9a-f]+")
LAUNCH = re.compile(r"(?P<instance>i-[0-9a-f]+)(-(?P<period>[0-9]{1,4})(?=-))?")  # a subnet follows the period


def is_tainted(node: Obj) -> bool:
    """Return whether a Node carries our taint, or another deployment's."""
    return any(taint.get("key") == well_known.DISRUPTED_TAINT for taint in node["spec"].get("taints") or ())


def instance_of(execution: str) -> str | None:
    """Return the instance of an execution of ours, None for a name that a manual start chose."""
    instance, _, attempt = execution.rpartition("-")
    return instance if instance.startswith("i-") and attempt.isdigit() else None


def launched_for(token: str) -> str:
    """Return the instance that a launch replaces: client tokens carry its id. An upgrade's launches replace none by
    name.
    """
    found = INSTANCE.search(token)
    return found[0] if found else token


def launch_of(token: str) -> str:
    """Return the launch that a client token stands for, whatever the subnet: an instance that returned to service and
    terminates again in a later period of its record is replaced again, under another name. The group's own book judges
    what the ledger owes for each.
    """
    found = LAUNCH.search(token)
    return f"{found['instance']}/{found['period'] or 1}" if found else token


def _marks(view: WorldView) -> Iterator[str]:
    for node in filter(is_tainted, view.cluster.store.sorted("nodes")):
        if tainted_by_others(node):
            continue
        instance = instance_behind(node)
        if instance not in view.open_since and instance not in of_open_disruptions(view):
            yield f"{name_of(node)} ({instance})"


def _gone(view: WorldView) -> Iterator[str]:
    """Yield instances that ended a while ago: upgrades that still run go on until the end of the world. The step that
    awaits an instance asks EC2 again where no message has joined, and none joins in a group that no policy selects.
    """
    for instance in view.open_since:
        if not view.running(instance) and view.now - (view.ended_at(instance) or 0) >= NOTICED_WITHIN.total_seconds():
            yield instance


def _hooks(view: WorldView) -> Iterator[str]:
    """Yield hooks of ours that wait without an open record. A launch hook of an instance that does not join is left to
    its own result (`Rule.LAUNCH_HOOK`).
    """
    for group, hook, instance in sorted(view.waiting):
        launching = any(hold.launching for hold in view.holds(instance) if hold.hook == hook)
        if launching and not view.joined(instance):
            continue
        if view.ours(hook, group) and instance not in view.open_since:
            yield f"{hook} of {group} holds {instance}"


def _messages(view: WorldView) -> Iterator[str]:
    if view.queue_depth or view.in_flight:
        yield f"{view.queue_depth} in the queue, {view.in_flight} in flight"


def open_records(view: WorldView, asked: AskedOf) -> Iterator[str]:
    """Yield open records without an execution. A pause until the next one is short, unless the maintenance is far
    ahead. Our hook holds an instance that we have asked its group to terminate for as long as its pods may not leave,
    a drain waits for the grace of a pod that is terminating, and a node that did not come back from its reboot is not
    replaced in an outage.
    `asked`: the requests of the whole run; the view has forgotten old ones.
    """
    for instance, opened in view.open_since.items():
        begun = view.working_since(instance)
        rests = view.now - max(view.rested_since(instance) or 0, opened)
        node = node_behind(instance, view)
        hook_holds = instance in view.asked_by_us and node is not None and bool(still_on(node, view))
        held = hook_holds or waits_for_others(instance, view) or (node is not None and grace_left(node, view))
        at_work = begun is not None and (held or view.now - begun < STUCK_AFTER.total_seconds())
        resting = begun is None and rests < COOLDOWN.total_seconds()
        if not (at_work or resting or is_ahead(asked.taken_at(instance, view.now), view)):
            what = "its execution is stuck" if begun is not None else f"nothing has run for {rests:.0f} s"
            yield f"{instance} is open: {what}"


def _leaks(view: WorldView) -> Iterator[str]:
    yield from view.strays


def _sizes(view: WorldView) -> Iterator[str]:
    for name, group in sorted(view.groups.items()):
        staying = sum(not member.lifecycle.startswith(LEAVING) for member in group.instances)
        stay = sum(member.protected for member in group.instances)
        if staying != group.desired and not group.desired < staying <= stay:
            yield f"{name} has {staying} of {group.desired}"


def _debts(view: WorldView) -> Iterator[str]:
    """Yield groups with unpaid launches. A launch raised the desired size by one: a termination offsets it, unless an
    owner has shrunk the group. An open record may still owe: its instance terminates when its maintenance comes, or
    when its pods can leave.
    """
    owing = Counter(group.name for i in view.open_since if (group := group_of(view, i)) is not None)
    for name, book in sorted(view.books.items()):
        group = view.groups[name]
        owed = owing[name] + owed_by_upgrade(name, view) + owed_by_disruption(name, view)
        if book.least > owed and group.desired > group.minimum:
            yield f"{name}: {book.least} launches are neither offset nor written off, {owed} of them still open"


EVENTUAL: tuple[tuple[Rule, Callable[[WorldView], Iterator[str]]], ...] = (
    *UPGRADES_EVENTUAL,
    *DISRUPTIONS_EVENTUAL,
    (Rule.STALE_TAINT, _marks),
    (Rule.GONE, _gone),
    (Rule.HOOK, _hooks),
    (Rule.MESSAGE, _messages),
    (Rule.SIZE, _sizes),
    (Rule.DEBT, _debts),
    (Rule.LEAK, _leaks),
    (Rule.EXCLUDED, exclusions),
    (Rule.REPLICAS, replicas),
)
