"""What must hold once faults and arrivals have stopped and time has passed: everything has come to rest.

Each rule goes over the whole world; nothing here remembers anything."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

from leeward.model import keys
from leeward.model.instance import instance_id_of
from leeward.model.termination import CauseKind, Outcome, Status, TerminationRecord
from local.cluster.objects import Obj, name_of
from simulation.view import Rule, WorldView

LEAVING = ("Terminating", "Terminated", "Detach", "Warmed:Terminating")
SWEEPS = timedelta(minutes=2)  # a retry that is due is begun by the next sweep
STUCK_AFTER = timedelta(hours=2)  # longer than any drain, settling and termination together
FAR_AHEAD = timedelta(days=1)  # maintenance further away waits for the budgets


def is_marked(node: Obj) -> bool:
    """Whether a Node carries our mark."""
    return any(taint.get("key") == keys.DISRUPTED_TAINT for taint in node["spec"].get("taints") or ())


def instance_of(execution: str) -> str | None:
    """The instance of an execution of ours, None for a name that somebody else chose."""
    instance, _, attempt = execution.rpartition("-")
    return instance if instance.startswith("i-") and attempt.isdigit() else None


def launched_for(token: str) -> str:
    """The instance that a launch replaces: client tokens end with its id."""
    return token[token.rfind("i-") :] if "i-" in token else ""


def _open(view: WorldView) -> dict[str, TerminationRecord]:
    return {instance: record for instance, record in view.records.items() if record.status is Status.OPEN}


def _marks(view: WorldView) -> Iterator[str]:
    records = _open(view)
    for node in filter(is_marked, view.cluster.store.sorted("nodes")):
        instance = instance_id_of(node["spec"].get("providerID") or "")
        if instance not in records:
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
    busy = set(map(instance_of, view.open_executions))
    for instance, record in _open(view).items():
        retry = record.times.get("retry")
        at_work = instance in busy and now - max(record.times.values(), default=now) < STUCK_AFTER
        if not (at_work or _paced(record, now) or (retry is not None and retry > now - SWEEPS)):
            what = "its execution is stuck" if instance in busy else "nothing runs"
            yield f"{instance} is open at attempt {record.attempt}: {what}, retry {retry}"


def _paced(record: TerminationRecord, now: datetime) -> bool:
    only_far = all(cause.kind is CauseKind.SCHEDULED_CHANGE for cause in record.causes)
    return only_far and record.deadline is not None and record.deadline - now > FAR_AHEAD


def _sizes(view: WorldView) -> Iterator[str]:
    for name, group in sorted(view.groups.items()):
        staying = sum(not member.lifecycle.startswith(LEAVING) for member in group.instances)
        if staying != group.desired:
            yield f"{name} has {staying} of {group.desired}"


def _debts(view: WorldView) -> Iterator[str]:
    """A launch raised the desired size by one; terminating the instance for which it was made takes that back."""
    paid = set(view.decrements)
    for token, launched in view.launches:
        instance = launched_for(token)
        record = view.records.get(instance)
        if record is not None and record.outcome is Outcome.TERMINATED and instance not in paid:
            yield f"{launched} was launched for {instance}, which was terminated without decrement"


EVENTUAL: tuple[tuple[Rule, Callable[[WorldView], Iterator[str]]], ...] = (
    (Rule.MARK, _marks),
    (Rule.GONE, _gone),
    (Rule.HOOK, _hooks),
    (Rule.MESSAGE, _messages),
    (Rule.RECORD, _records),
    (Rule.SIZE, _sizes),
    (Rule.DEBT, _debts),
)
