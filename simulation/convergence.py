"""What must hold once faults and arrivals have stopped and time has passed: everything has come to rest.

Each rule goes over the whole world; nothing here remembers anything."""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

from leeward.model import keys
from leeward.model.instance import instance_id_of
from leeward.model.termination import CauseKind, Status, TerminationRecord
from local.cluster.objects import Obj, name_of
from simulation.facts import is_paced, told_first
from simulation.leaving_rules import exclusions, replicas
from simulation.round_rules import ROUNDS_EVENTUAL, of_open_rounds, owed_by_round
from simulation.upgrade_rules import UPGRADES_EVENTUAL, owed_by_upgrade
from simulation.view import Rule, WorldView

LEAVING = ("Terminating", "Terminated", "Detach", "Warmed:Terminating")
SWEEPS = timedelta(minutes=2)  # a retry that is due is begun by the next sweep
STUCK_AFTER = timedelta(hours=2)  # longer than any drain, settling and termination together
INSTANCE = re.compile(r"i-[0-9a-f]+")
LAUNCH = re.compile(r"(?P<instance>i-[0-9a-f]+)(-(?P<period>[0-9]{1,4})(?=-))?")  # a subnet follows the period


def is_marked(node: Obj) -> bool:
    """Whether a Node carries our mark."""
    return any(taint.get("key") == keys.DISRUPTED_TAINT for taint in node["spec"].get("taints") or ())


def instance_of(execution: str) -> str | None:
    """The instance of an execution of ours, None for a name that somebody else chose."""
    instance, _, attempt = execution.rpartition("-")
    return instance if instance.startswith("i-") and attempt.isdigit() else None


def launched_for(token: str) -> str:
    """The instance that a launch replaces: client tokens carry its id. An upgrade's launches replace nobody by name."""
    found = INSTANCE.search(token)
    return found[0] if found else token


def launch_of(token: str) -> str:
    """The launch that a client token stands for, whatever the subnet: an instance that returned to service and has to
    go again in a later period of its record is replaced again, under another name. What the ledger owes for each is
    judged by the group's own book.
    """
    found = LAUNCH.search(token)
    return f"{found['instance']}/{found['period'] or 1}" if found else token


def _open(view: WorldView) -> dict[str, TerminationRecord]:
    return {instance: record for instance, record in view.records.items() if record.status is Status.OPEN}


def _marks(view: WorldView) -> Iterator[str]:
    records = _open(view)
    for node in filter(is_marked, view.cluster.store.sorted("nodes")):
        instance = instance_id_of(node["spec"].get("providerID") or "")
        if instance not in records and instance not in of_open_rounds(view):
            yield f"{name_of(node)} ({instance})"


def _gone(view: WorldView) -> Iterator[str]:
    for instance, record in _open(view).items():
        if not view.running(instance):
            yield f"{instance}, causes {', '.join(cause.kind.value for cause in record.causes)}"


def _hooks(view: WorldView) -> Iterator[str]:
    records = _open(view)
    for group, hook, instance in sorted(view.waiting):
        if view.ours(hook, group) and instance not in records:
            yield f"{hook} of {group} holds {instance}"


def _messages(view: WorldView) -> Iterator[str]:
    if view.queue_depth or view.in_flight:
        yield f"{view.queue_depth} in the queue, {view.in_flight} in flight"


def _records(view: WorldView) -> Iterator[str]:
    now = datetime.fromtimestamp(view.now, UTC)
    begun = {instance_of(name): view.started(name) for name in view.open_executions}
    for instance, record in _open(view).items():
        retry = record.times.get("retry")
        at_work = instance in begun and view.now - begun[instance] < STUCK_AFTER.total_seconds()
        held = instance in begun and told_first(record) and "drained" not in record.times
        if not (at_work or held or is_paced(record, view.now) or (retry is not None and retry > now - SWEEPS)):
            what = "its execution is stuck" if instance in begun else "nothing runs"
            yield f"{instance} is open at attempt {record.attempt}: {what}, retry {retry}"


def _leaks(view: WorldView) -> Iterator[str]:
    yield from view.strays


def _sizes(view: WorldView) -> Iterator[str]:
    for name, group in sorted(view.groups.items()):
        staying = sum(not member.lifecycle.startswith(LEAVING) for member in group.instances)
        if staying != group.desired:
            yield f"{name} has {staying} of {group.desired}"


def _debts(view: WorldView) -> Iterator[str]:
    """A launch raised the desired size by one: somebody's end takes that back, unless an owner has shrunk the group. An
    open record may still owe: its instance goes when its maintenance comes, or when its pods can leave.
    """
    owing = Counter(record.subject.group for record in _open(view).values() if _owes(record))
    for name, book in sorted(view.books.items()):
        group = view.groups[name]
        owed = owing[name] + owed_by_upgrade(name, view) + owed_by_round(name, view)
        if book.least > owed and group.desired > group.minimum:
            yield f"{name}: {book.least} launches are neither paid for nor forgiven, {owed} of them still owed"


def _owes(record: TerminationRecord) -> bool:
    return record.has(CauseKind.SURPLUS) or (record.replacement is not None and record.replacement.owed)


EVENTUAL: tuple[tuple[Rule, Callable[[WorldView], Iterator[str]]], ...] = (
    *UPGRADES_EVENTUAL,
    *ROUNDS_EVENTUAL,
    (Rule.MARK, _marks),
    (Rule.GONE, _gone),
    (Rule.HOOK, _hooks),
    (Rule.MESSAGE, _messages),
    (Rule.RECORD, _records),
    (Rule.SIZE, _sizes),
    (Rule.DEBT, _debts),
    (Rule.LEAK, _leaks),
    (Rule.EXCLUDED, exclusions),
    (Rule.REPLICAS, replicas),
)
