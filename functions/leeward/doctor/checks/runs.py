"""Checks of runs: executions that failed, and open records that no execution completes."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from leeward.doctor import expected
from leeward.doctor.facts import Disruption, Facts, FailedExecution, InspectedCluster, Upgrade
from leeward.doctor.finding import About, Check, Finding
from leeward.doctor.reading import UnreadFact
from leeward.model.termination import CauseKind, TerminationRecord, execution_name, maintenance
from leeward.model.times import format_instant
from leeward.policy.document import DrainPolicy
from leeward.upgrade.record import ControlRequest

RECONCILED = timedelta(minutes=20)  # the reconciler runs every minute, and pauses up to fifteen after failures
LAUNCH_AND_END = timedelta(minutes=30)  # time of a termination beside its policy's own times
LONGEST_DISRUPTION = timedelta(days=1)
_RECONCILER_LOG = "aws logs tail /aws/lambda/leeward-reconciler --since 1h: it says why it does not"
_SHOWN = 160  # characters of a cause


def executions(facts: Facts) -> Iterator[Finding]:
    """Report failures of the last day. Most are retried; the cause names the fix."""
    for machine, found in facts.failures.items():
        about = About(Check.EXECUTIONS, f"state machine {machine}")
        if isinstance(found, UnreadFact):
            yield about.unknown(found)
        elif found:
            arn = _execution_arn(facts, machine, found[0].name)
            yield about.warning(
                _counted(found), f"read its cause: aws stepfunctions describe-execution --execution-arn {arn}"
            )
        else:
            yield about.ok("none failed or timed out in the last day")


def _counted(found: tuple[FailedExecution, ...]) -> str:
    late = sum(one.status == "TIMED_OUT" for one in found)
    newest = found[0]
    said = ": ".join(part for part in (newest.error, newest.cause[:_SHOWN]) if part)
    return (
        f"{len(found) - late} failed and {late} timed out in the last day; the newest is {newest.name} "
        f"({newest.status} at {format_instant(newest.at)}){f': {said}' if said else ''}"
    )


def _execution_arn(facts: Facts, machine: str, name: str) -> str:
    who = facts.identity
    return f"arn:{who.partition}:states:{who.region}:{who.account}:execution:{machine}:{name}"


def records(facts: Facts) -> Iterator[Finding]:
    """Check open terminations: each has an execution, or gets one at the next reconcile, and is not too slow."""
    about = About(Check.RECORD, "all terminations")
    records, running = facts.records, facts.running
    if not facts.clusters:
        return  # the table was read through none of them
    if isinstance(records, UnreadFact):
        yield about.unknown(records)
    elif isinstance(running, UnreadFact):
        yield about.unknown(running)
    else:
        wrong = [one for record in records for one in _record(facts, record, running)]
        yield from wrong or [about.ok(f"{len(records)} open, none too old")]


def _record(facts: Facts, record: TerminationRecord, running: frozenset[str]) -> Iterator[Finding]:
    about = About(Check.RECORD, f"instance {record.instance}")
    claimed = record.times.get("claimed", facts.now)
    name = execution_name(record.instance, record.attempt)
    if name in running:
        if facts.now - record.times.get("draining", claimed) > _allowed(facts, record):
            held = f", blocked by {', '.join(record.blocked_by)}" if record.blocked_by else ""
            fix = f"leeward blockers {record.subject.node or ''} --cluster {record.subject.cluster}".replace("  ", " ")
            yield about.warning(f"execution {name} leads it out since {format_instant(claimed)}{held}", fix)
    elif _waits(record, facts.now):
        return
    elif (
        facts.now - max(record.times.values(), default=claimed) > RECONCILED
    ):  # one in cooldown has a time in the future
        since = format_instant(claimed)
        why = f": {record.failure}" if record.failure else ""
        yield about.failed(f"its termination is open since {since} and no execution works on it{why}", _RECONCILER_LOG)


def _waits(record: TerminationRecord, now: datetime) -> bool:
    """Return whether it waits for budgets: only maintenance that is still to come is a cause."""
    return bool(maintenance(record, now)) and all(cause.kind is CauseKind.SCHEDULED_CHANGE for cause in record.causes)


def _allowed(facts: Facts, record: TerminationRecord) -> timedelta:
    drain = _drain_of(facts, record)
    patience = max(drain.timeout, drain.termination_grace_period or drain.timeout)
    return patience + drain.deregistration_timeout + drain.longest_settle + drain.volume_detach_timeout + LAUNCH_AND_END


def _drain_of(facts: Facts, record: TerminationRecord) -> DrainPolicy:
    """Return the drain policy of its group, as far as that is known."""
    for cluster in facts.clusters:
        if cluster.name != record.subject.cluster or isinstance(cluster.policies, UnreadFact):
            continue
        groups = () if isinstance(cluster.groups, UnreadFact) else cluster.groups
        tags = next((group.tags for group in groups if group.name == record.subject.group), {})
        policy = cluster.policies.selecting(record.subject.group or "", tags)
        if policy is not None:
            return policy.drain
    return DrainPolicy()


def upgrades(facts: Facts) -> Iterator[Finding]:
    """Report upgrades that were begun and that no execution works on any more."""
    for cluster in facts.clusters:
        for group, found in cluster.upgrades.items():
            about = About(Check.UPGRADE, f"group {group}")
            if isinstance(found, UnreadFact):
                yield about.unknown(found)
            elif found is not None:
                yield _upgrade(about, cluster, found)


def _upgrade(about: About, cluster: InspectedCluster, found: Upgrade) -> Finding:
    record = found.record
    if record.ended is not None:
        return about.ok("the last one has ended")
    if found.runs:
        return about.ok(f"execution {record.execution} works on it")
    command = f"leeward upgrade {{}} {record.group} --cluster {cluster.name}"
    if record.control is ControlRequest.PAUSE:
        return about.warning("its upgrade is paused", command.format("resume"))
    said = f"its upgrade of {format_instant(record.began)} has not ended and nothing works on it"
    return about.warning(f"{said}: {record.why}" if record.why else said, f"{command.format('start')}, or abort")


def disruptions(facts: Facts) -> Iterator[Finding]:
    """Check the open run: it takes minutes, or hours where drains are blocked."""
    for cluster in facts.clusters:
        about = About(Check.DISRUPTION, f"cluster {cluster.name}")
        if isinstance(cluster.disruption, UnreadFact):
            yield about.unknown(cluster.disruption)
        elif cluster.disruption is None or not cluster.disruption.record.open:
            yield about.ok("none is open")
        else:
            yield _disruption(about, cluster.disruption, facts.now)


def _disruption(about: About, found: Disruption, now: datetime) -> Finding:
    record, began = found.record, format_instant(found.record.began)
    if found.runs and now - record.began > LONGEST_DISRUPTION:
        fix = f"look at what its terminations wait for: execution {record.execution} of {expected.MACHINES[2]}"
        return about.warning(f"run {record.number} runs since {began}", fix)
    in_cooldown = record.retry is not None and record.retry > now
    if not found.runs and not in_cooldown and now - record.began > RECONCILED:
        said = f"run {record.number} is open since {began} and no execution works on it"
        return about.failed(f"{said}: {record.why}" if record.why else said, _RECONCILER_LOG)
    return about.ok(f"run {record.number} is open since {began}")
