"""Settlement of the capacity ledger at the end of a termination: whether the launch made for it is paid for, and which
other instance pays otherwise.

Every write keeps earlier entries (the payer is decided once), and claiming the payer is idempotent by the debt's name:
killed anywhere, it can be repeated."""

from dataclasses import replace
from datetime import datetime

from leeward.model.group import Group
from leeward.model.instance import cluster_of
from leeward.model.termination import NOBODY, RETURNED, CauseKind, Status, TerminationRecord
from leeward.ports import Ports
from leeward.termination import capacity_ledger
from leeward.termination.capacity_ledger import Ending
from leeward.termination.execution import request
from leeward.termination.instance_state import InstanceState, read
from leeward.termination.subject import subject_of


def settle(situation: InstanceState, ports: Ports) -> str | None:
    """Pay, forgive or pass on the debts of this instance's end. Return None when all debts are settled, else the
    sentence that names the awaited event: the group's own report on how it parted with the instance, or the member that
    will pay.
    """
    record = situation.record
    for debt in capacity_ledger.debts(record):
        payer = _payer(debt, situation, ports)
        if payer is None:
            return (
                f"the launch of {debt} is not paid for: the group has not said how it ended {record.instance}, or has "
                "still to launch the member that can pay"
            )
        ports.claims.note(record.instance, payers={debt: payer})
        if payer == record.instance:  # it pays for one debt; the next one reads the record again
            situation = replace(situation, record=read(record.instance, ports))
    ask_payers(record, ports)
    return None


def ask_payers(record: TerminationRecord, ports: Ports) -> None:
    """Claim the instances that pay for this one, if it does not pay itself; a repeat finds the claim."""
    for debt, payer in capacity_ledger.passed_on(read(record.instance, ports)).items():
        _ask(payer, debt, record, ports)


def forgiven(record: TerminationRecord, debt: str, group: Group, ports: Ports) -> bool:
    """Return whether nothing is left to pay: another actor made the group smaller, or it may not become smaller."""
    since = capacity_ledger.owed_since(record, debt)
    if group.desired <= group.minimum or since is None:
        return True
    return capacity_ledger.shrunk_since(ports.groups.activities(group.name, since), since)


def pays_itself_later(situation: InstanceState, ports: Ports) -> bool:
    """Return whether an instance that was returned to service has a debt that no other instance can be asked to pay:
    its termination is retried later.
    """
    record, group = situation.record, situation.listing
    if group is None or situation.ended or not record.has(CauseKind.SURPLUS):
        return False
    kept = [debt for debt in capacity_ledger.debts(record) if not capacity_ledger.of_upgrade(debt)]
    owed = [debt for debt in kept if not forgiven(record, debt, group, ports)]
    return any(_another(record, debt, group, ports) == NOBODY for debt in owed)


def _payer(debt: str, situation: InstanceState, ports: Ports) -> str | None:
    """Return the payer: this instance, another, or the constant for no payer. None while the group has not reported, or
    while no member is free to pay and the group has still to launch one: forgiven then, the group would stay one too
    large. A detached instance that runs on waits for no launch.
    """
    record, group = situation.record, situation.listing
    if group is None:
        return NOBODY
    if not situation.ended and situation.lifecycle is not None:  # returned to service: it stays, and so would the other
        return _somebody_else(record, debt, group, ports)
    since = min(
        record.times.get("claimed", ports.clock.now()), capacity_ledger.owed_since(record, debt) or ports.clock.now()
    )
    activities = ports.groups.activities(group.name, since - capacity_ledger.MARGIN)
    already_paid = record.instance in record.payers.values()
    ended = record.times.get("terminated")
    over = ended is not None and ports.clock.now() - ended > capacity_ledger.LATEST_WORD
    match capacity_ledger.ending(record.instance, activities, _launched(debt, record, ports)):
        case Ending.SHRUNK if not already_paid:
            return record.instance
        case Ending.UNKNOWN if not already_paid:
            return NOBODY if over else None
    payer = _somebody_else(record, debt, group, ports)
    if payer != NOBODY or ended is None or over or not capacity_ledger.launches_yet(group, without=record.instance):
        return payer
    return payer if forgiven(record, debt, group, ports) else None


def _launched(debt: str, record: TerminationRecord, ports: Ports) -> datetime | None:
    """Return when EC2 launched the replacement of this instance itself. None if EC2 knows no such instance any more,
    and for a debt taken over, whose launch is older than the question which instance pays.
    """
    if debt != record.surge_name or record.replacement is None:
        return None
    known = ports.instances.describe(record.replacement.launched)
    return min((instance.launched for instance in known.values()), default=None)


def give_back_debts(record: TerminationRecord, ports: Ports) -> None:
    """Return to upgrades the debts that this instance was to pay for them: it was returned to service and its
    termination is retried much later.
    """
    for debt in capacity_ledger.debts(record):
        if capacity_ledger.of_upgrade(debt):
            ports.claims.note(record.instance, payers={debt: RETURNED})


def _somebody_else(record: TerminationRecord, debt: str, group: Group, ports: Ports) -> str:
    """Return another payer. An upgrade chooses among its own old nodes, and knows itself the cause of a resize."""
    if capacity_ledger.of_upgrade(debt):
        return RETURNED
    return NOBODY if forgiven(record, debt, group, ports) else _another(record, debt, group, ports)


def _another(record: TerminationRecord, debt: str, group: Group, ports: Ports) -> str:
    """Return the youngest member that is not terminating and was not asked before, or the constant for no payer."""
    instances = ports.instances.describe(member.id for member in group.instances)
    for member in capacity_ledger.candidates(group, instances):
        known = ports.claims.read(member.id) if member.id != record.instance else record
        if known is None or (known.status is Status.CLOSED and not capacity_ledger.was_asked(known, debt)):
            return member.id
    return NOBODY


def _ask(payer: str, debt: str, record: TerminationRecord, ports: Ports) -> None:
    """Claim the payer for the debt and start its termination."""
    instance = ports.instances.describe([payer]).get(payer)
    if instance is None:  # gone for so long that its own end has been settled
        return
    cluster = cluster_of(instance.tags, ports.clusters.names()) or record.subject.cluster
    subject = subject_of(instance, cluster, group=record.subject.group)
    request(subject, [capacity_ledger.surplus(debt, ports.clock.now())], ports)
