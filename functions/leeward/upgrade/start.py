"""The first step of an upgrade: parse the request, take the lease on the group or name the execution that holds it.

Decides from the record and from the state of its execution. Any number of starts end with one execution that works:
the others name it and end. A record that was left behind is taken over and resumes where it was. Several groups,
`{"groups": ["FIRST", "SECOND"]}`, follow one after the other: the record of the current one names the others, the
step that ends its upgrade well starts the next. A failure keeps them for the next start."""

from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256
from typing import Any

from leeward.errors import InvalidInputError, ObjectGoneError
from leeward.model.instance import cluster_of
from leeward.model.visible import QUOTED, quoted, visible
from leeward.ports import Ports
from leeward.ports.autoscaling import Groups
from leeward.ports.clock import Clock
from leeward.ports.compute import Templates
from leeward.ports.eks import ManagedState, ManagedUpdates
from leeward.ports.executions import NamedExecutions
from leeward.ports.records import Upgrades
from leeward.termination.situation import UNSELECTED
from leeward.upgrade.control import limits, with_control
from leeward.upgrade.observation import described, existing_groups, fresh_record
from leeward.upgrade.record import ControlRequest, UpgradeRecord, UpgradeRequest
from leeward.upgrade.run import REFUSED_UPDATE, UpgradeNext, UpgradeRun, is_held, written
from leeward.upgrade.targets import as_launched, is_gone, launched_instead
from leeward.workflow.executions import execution_name

READABLE = "/aws/service/eks/"  # public SSM parameters that the function's role may read (infra/scopes.py)
ACTIONS = {
    "pause": ControlRequest.PAUSE,
    "resume": ControlRequest.RUN,
    "abort": ControlRequest.ABORT,
    "rollback": ControlRequest.ROLLBACK,
}
MOST_GROUPS = 50
LONGEST_BY = 200  # characters: an ARN, or the name of an execution


def take_lease(run: UpgradeRun, call: Mapping[str, Any], ports: Ports) -> UpgradeRun:
    """Record the control request, take the lease or delegate to the execution that holds it."""
    name, given = str(call.get("execution") or ""), call.get("run") or {}
    run, ports = replace(run, execution=name), where_the_group_is(run.group, ports)
    follows = existing_groups(following(given), ports.groups)
    record = ports.upgrades.read(run.group)
    action = given.get("action")
    if action is not None:
        record = _with_request(record, run.group, str(action), started_by(given, name), ports.upgrades)
    handed = record is not None and bool(record.execution) and given.get("after") == record.execution
    if (
        record is not None
        and not handed
        and record.execution != name
        and is_held(record, ports.upgrade_executions, ports.managed_upgrade_executions)
    ):
        if follows:  # the execution that holds the group starts them
            written(replace(record, then=follows), ports.upgrades)
        later = f"; {limits(record)}" if limits(record) else ""
        what = f"reads the control request{later}" if action is not None else "holds the group"
        return replace(
            run,
            next=UpgradeNext.RECORDED if action else UpgradeNext.HAND_OVER,
            why=f"execution {record.execution} {what}",
        )
    if record is not None and record.ended is not None and _has_nothing_left(str(action), record):
        return replace(run, next=UpgradeNext.RECORDED, why="the upgrade has ended")
    if action == "pause":
        return replace(run, next=UpgradeNext.RECORDED, why="paused; nothing runs")
    record = _take(record, run, given, ports, follows)
    return replace(
        run,
        next=_next_after_lease(record),
        cluster=record.cluster,
        attempt=record.attempt,
        why=f"attempt {record.attempt} of {record.stamp}",
    )


def _has_nothing_left(action: str, record: UpgradeRecord) -> bool:
    """Return whether the request has nothing to do for an upgrade that has ended. A repeated abort must not begin an
    upgrade: the nodes that the first one has kept are old to the template that it has restored.
    """
    return action in {"pause", "resume"} or (action == "abort" and not record.error)


def where_the_group_is(group: str, ports: Ports) -> Ports:
    """Return the ports of the account and Region that has the group. Raises InvalidInputError for a name that several
    have, where the input names no cluster; the error of an account that cannot be asked.
    """
    if not ports.places or ports.place is not None:
        return ports
    there = [place for place in ports.everywhere() if place.groups.describe([group])]
    if not there:
        return ports.everywhere()[0]
    if len(there) > 1:
        found = " and ".join(", ".join(place.clusters.names()) for place in there)
        raise InvalidInputError(f'group: found {group!r} at {found}, expected "cluster": the cluster that has it')
    return there[0]


def following(given: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the groups after the first, from the input of an execution. Raises InvalidInputError for anything but a
    list of different names, and for a control request for several.
    """
    groups = given.get("groups")
    listed = groups if groups is not None else [given.get("group"), *(given.get("then") or ())]
    if not isinstance(listed, list) or not all(isinstance(one, str) and one for one in listed):
        raise InvalidInputError(f'groups: found {str(groups)[:QUOTED]}, expected names such as ["web", "batch"]')
    if len(listed) > MOST_GROUPS:
        raise InvalidInputError(f"groups: found {len(listed)}, expected at most {MOST_GROUPS}")
    if repeated := next((group for number, group in enumerate(listed) if group in listed[:number]), None):
        raise InvalidInputError(f"groups: found {quoted(repeated)} twice, expected each of them once")
    if groups is not None and ("action" in given or "group" in given):
        raise InvalidInputError("groups: found beside group or action, expected alone")
    return tuple(listed[1:])


def parse_request(given: Mapping[str, Any]) -> UpgradeRequest:
    """Return the request from the input of an execution. Raises InvalidInputError for more than one target, and for an
    SSM parameter that is none of EKS' own.
    """
    request = UpgradeRequest(
        image=str(given.get("ami") or ""),
        template_version=str(given.get("launchTemplateVersion") or ""),
        kubernetes=str(given.get("kubernetesVersion") or ""),
        force=bool(given.get("force")),
        overrides=tuple(str(code) for code in given.get("override") or ()),
        automatic=str(given.get("automatic") or ""),
    )
    if sum(map(bool, (request.image, request.template_version, request.kubernetes))) > 1:
        raise InvalidInputError(
            "input: found more than one of ami, launchTemplateVersion and kubernetesVersion, expected one at most"
        )
    if request.image.startswith("/") and not request.image.startswith(READABLE):
        raise InvalidInputError(
            f"ami: found SSM parameter {request.image}, expected one under {READABLE}, for Leeward may read no other: "
            f"name the id in it (aws ssm get-parameter --name {request.image} --query Parameter.Value)"
        )
    return request


def _with_request(record: UpgradeRecord | None, group: str, action: str, by: str, upgrades: Upgrades) -> UpgradeRecord:
    """Record the control request. Raises InvalidInputError for an unknown action, or one that does not apply now."""
    if action not in ACTIONS:
        raise InvalidInputError(f"action: found {quoted(action)}, expected one of {', '.join(ACTIONS)}")
    if record is None:
        raise InvalidInputError(f"upgrade of {group}: found none, expected one for {action}")
    wanted = with_control(record, ACTIONS[action])
    return written(replace(wanted, requested_by=by), upgrades) if wanted != record else record


def _take(
    record: UpgradeRecord | None,
    run: UpgradeRun,
    given: Mapping[str, Any],
    ports: Ports,
    follows: tuple[str, ...],
) -> UpgradeRecord:
    """Return a new record, or the one that was left behind, held by this execution from now on. `given`: the
    execution's input.
    """
    request, cluster = parse_request(given), str(given.get("cluster") or "")
    if record is not None and record.execution == run.execution and record.ended is None:
        return record  # this step ran before and its response was lost
    attempt = record.attempt + 1 if record is not None else 1
    if record is not None and (record.resumable or record.control is ControlRequest.ROLLBACK):
        resumed = _resumed(record, run, request, ports.clock, ports.managed_updates)
        taken = replace(_retargeted(resumed, run, request, ports.groups, ports.templates), then=follows or record.then)
    else:
        taken = replace(_new_record(record, run.group, request, cluster, ports), then=follows)
    by = record.requested_by if record is not None and run.attempt else started_by(given, run.execution)
    return written(
        replace(taken, execution=run.execution, attempt=attempt, stopped=None, requested_by=by), ports.upgrades
    )


def started_by(given: Mapping[str, Any], execution: str) -> str:
    """Return who has started an execution with this input: the caller whom the command line names, else the execution
    that a person started otherwise; empty for `update.auto`.
    """
    if given.get("automatic"):
        return ""
    return visible(str(given.get("by") or f"execution {execution}"))[:LONGEST_BY]


def _resumed(
    record: UpgradeRecord, run: UpgradeRun, request: UpgradeRequest, clock: Clock, managed_updates: ManagedUpdates
) -> UpgradeRecord:
    """Return the record as this start resumes it. A run without an attempt is an operator's start: it retries what has
    failed, and the time for new nodes restarts.
    """
    again = replace(record, ended=None, error="")
    if not run.attempt:
        again = replace(again, failed=(), reasons={}, checked=record.checked and record.cordoned)
        again = replace(again, phase_since=clock.now(), proven=None, ended_early={}, hold=None)
        if record.error and not (_eks_updates(record, managed_updates) or _may_have_started(record)):
            made = record.prepared and record.target.nodegroup is None  # a failed update is not read again
            again = replace(again, update="", tries=record.tries + 1, prepared=made)
    if request.names_a_target and request != record.request:
        return replace(again, request=request, prepared=False, rolling_back=False, checked=False)
    if request != record.request and not run.attempt:
        return replace(again, request=replace(record.request, force=request.force, overrides=request.overrides))
    return again


def _retargeted(
    record: UpgradeRecord, run: UpgradeRun, request: UpgradeRequest, groups: Groups, templates: Templates
) -> UpgradeRecord:
    """Return the record of an operator's start: one that names a target points the group at it again, one without rolls
    to what others have made the group launch since, also where the target was deleted before the group launched it.
    """
    if run.attempt or record.control is not ControlRequest.RUN:
        return record
    if request.names_a_target:
        return replace(record, pointed=False)
    if record.pointed:
        moved = bool(launched_instead(record, described(record.group, groups), templates))
    else:
        own = record.prepared and record.target.nodegroup is None
        moved = own and is_gone(record.target, templates)
    return as_launched(record) if moved else record


def _new_record(
    last: UpgradeRecord | None, name: str, request: UpgradeRequest, cluster: str, ports: Ports
) -> UpgradeRecord:
    """Return the record of a new upgrade, with what the last one could not restore yet. Raises InvalidInputError for a
    group of no cluster of this deployment.
    """
    group = described(name, ports.groups)
    cluster = cluster or cluster_of(group.tags, ports.clusters.names()) or ""
    if cluster not in ports.clusters.names():
        raise InvalidInputError(f"group {group.name}: found no cluster of ours in its tags, expected one of them")
    policy = ports.clusters.policies(cluster).policy_of(group) or UNSELECTED
    fresh = fresh_record(group, cluster, policy, request, ports.clock)
    return fresh if last is None else replace(fresh, suspended=last.suspended)


def _eks_updates(record: UpgradeRecord, managed_updates: ManagedUpdates) -> bool:
    """Return whether the upgrade has failed and EKS' update, which cannot be cancelled, continues."""
    if not record.update:
        return False
    try:
        update = managed_updates.look(record.cluster, record.target.nodegroup or "", record.update)
    except ObjectGoneError:
        return False
    return update.state is ManagedState.IN_PROGRESS


def _may_have_started(record: UpgradeRecord) -> bool:
    """Return whether EKS' answer to the start of its update was lost: the same token finds the update. One that EKS has
    refused does not exist.
    """
    requested = record.target.nodegroup is not None and record.prepared and not record.update
    return requested and not record.error.startswith(REFUSED_UPDATE)


def _next_after_lease(record: UpgradeRecord) -> UpgradeNext:
    if record.target.nodegroup is not None:
        return UpgradeNext.MANAGED
    match record.control:
        case ControlRequest.ABORT:
            return UpgradeNext.ABORT
        case ControlRequest.ROLLBACK:
            return UpgradeNext.ROLLBACK
        case _:
            return UpgradeNext.CHECK


def begin_next(record: UpgradeRecord, upgrade_executions: NamedExecutions) -> str:
    """Start the upgrade of the group that follows; return what was done, in a sentence, empty where none follows. The
    name follows from the record: a repeat, also when that execution has ended, starts nothing more.
    """
    if not record.then:
        return ""
    group, *rest = record.then
    stamp = sha256(f"{record.group}/{record.stamp}".encode()).hexdigest()[:8]
    name = execution_name(f"{group}-{stamp}", 0)
    upgrade_executions.start(name, {"group": group, "then": rest, "by": record.requested_by, **_input(record.request)})
    return f"then {group} (execution {name})"


def _input(request: UpgradeRequest) -> dict[str, Any]:
    """Return the input that `parse_request` reads; the target is the same for each group of a list."""
    words = {
        "ami": request.image,
        "launchTemplateVersion": request.template_version,
        "kubernetesVersion": request.kubernetes,
        "force": request.force,
        "override": list(request.overrides),
    }
    return {key: value for key, value in words.items() if value}
