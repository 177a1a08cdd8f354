"""Checks that each promise was kept, from a recording alone. The promises are those of `make demo` and its two sisters.

Pure: a recording in, findings out.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from account_test.recording import Recording, Termination


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Promise with its verdict and the evidence. `unproven`: nothing in this run could show it, neither kept nor
    broken; `kept` is False then.
    """

    promise: str
    kept: bool
    found: str
    unproven: bool = False

    @property
    def broken(self) -> bool:
        """Whether the promise was looked at and not kept."""
        return not self.kept and not self.unproven


def unproven(promise: str, found: str) -> Finding:
    """Return the finding of a promise that this run cannot show."""
    return Finding(promise=promise, kept=False, found=found, unproven=True)


Judge = Callable[[Recording], Finding]


def ended(seen: Recording) -> Finding:
    """Check that the play was over before its deadline."""
    found = f"after {seen.seconds:.0f} s" if seen.ended else f"not within {seen.seconds:.0f} s"
    return Finding(promise="the play came to its end in time", kept=seen.ended, found=found)


def gone(count: int | None = None) -> Judge:
    """Check that exactly `count` nodes (default: as many as the play named) are removed, among them those named."""

    def judge(seen: Recording) -> Finding:
        closed = {one.instance for one in seen.terminations if one.status == "closed"}
        still_open = [one.instance for one in seen.terminations if one.status != "closed"]
        last = seen.samples[-1] if seen.samples else None
        there = sorted(closed & set(last.nodes)) if last else []
        wanted = len(closed) == (len(seen.victims) if count is None else count) and set(seen.victims) <= closed
        found = f"{len(closed)} closed; open: {_listed(still_open)}; nodes that are still there: {_listed(there)}"
        kept = bool(wanted and not still_open and last is not None and not there)
        return Finding(promise="every node that had to go is gone, and its record closed", kept=kept, found=found)

    return judge


def replaced_first(seen: Recording) -> Finding:
    """Check that the launch was requested before the drain began."""
    victims = [one for one in seen.terminations if one.instance in seen.victims]
    late = [one.instance for one in victims if not _asked_before_drain(one)]
    reasons = "; ".join(", ".join(one.launched) or one.replacement or "not asked for" for one in victims)
    return Finding(
        promise="the replacement was asked for before the first pod left",
        kept=bool(victims) and not late,
        found=reasons or "no record",
    )


def _asked_before_drain(one: Termination) -> bool:
    asked, draining = one.times.get("replacement"), one.times.get("draining")
    return bool(one.launched and asked and draining and _at(asked) <= _at(draining))


def budgets_held(seen: Recording) -> Finding:
    """Check that in every observation at least as many pods were healthy as the budget requires, once that had been
    so.
    """
    known = [(one.at - seen.began, *one.budget) for one in seen.samples if one.budget is not None]
    broken = [f"{healthy} of {wanted} after {at:.0f} s" for at, healthy, wanted in known if healthy < wanted]
    found = _listed(broken) if broken else f"{len(known)} looks, never fewer than wanted"
    return Finding(promise="the PodDisruptionBudget was held throughout", kept=bool(known) and not broken, found=found)


def pods_left_first(seen: Recording) -> Finding:
    """Check that no pod of the workload ran on an instance any more when EC2 took it."""
    names = {instance: node.name for sample in seen.samples for instance, node in sample.nodes.items()}
    taken = {one.instance: _taken_at(seen, one) for one in seen.terminations}
    caught = [
        f"{name} on {instance}"
        for instance, at in taken.items()
        if at is not None
        for sample in seen.samples
        if sample.at > at
        for name, pod in sample.pods.items()
        if pod.node == names.get(instance) and pod.ready
    ]
    unknown = [instance for instance, at in taken.items() if at is None]
    found = f"caught: {_listed(sorted(set(caught)))}; moment not known: {_listed(unknown)}"
    kept = bool(taken) and not caught and not unknown
    return Finding(promise="no pod was ended by the end of its instance", kept=kept, found=found)


def _taken_at(seen: Recording, one: Termination) -> float | None:
    """Return when EC2 reported it by its event; else when our record says that the instance was terminated."""
    for event in seen.events:
        detail = event.get("detail") or {}
        if detail.get("instance-id") == one.instance and detail.get("state") == "shutting-down":
            return _at(str(event["time"])) + 1  # EventBridge reports whole seconds
    reported = one.times.get("terminated")
    return _at(reported) if reported else None


def nothing_tainted(seen: Recording) -> Finding:
    """Check that no node that stays has a taint of ours or a cordon."""
    nodes = seen.samples[-1].nodes.values() if seen.samples else ()
    tainted = [node.name for node in nodes if node.tainted or node.cordoned]
    return Finding(promise="no node is left tainted", kept=bool(seen.samples) and not tainted, found=_listed(tainted))


def once_each(seen: Recording) -> Finding:
    """Check that there is one execution for each record and that all succeeded. An execution that a person has named
    delegates to its instance's own, which is counted.
    """
    bad = [f"{name} {status}" for name, status in sorted(seen.executions.items()) if status != "SUCCEEDED"]
    own = [name for name in seen.executions if name.rpartition("-")[2].isdecimal()]
    kept = bool(own) and not bad and len(own) == len(seen.terminations)
    found = f"{len(own)} executions for {len(seen.terminations)} instances; not succeeded: {_listed(bad)}"
    return Finding(promise="each node was ended by one execution, which succeeded", kept=kept, found=found)


def no_message_left(seen: Recording) -> Finding:
    """Check that the queue is empty and that the dead-letter queue holds only the malformed message, with its
    reason.
    """
    new = [(reason, body) for reason, body in seen.dead_letters if body not in seen.letters_before]
    strangers = [reason or body for reason, body in new if body != seen.nonsense or not reason]
    missing = seen.nonsense is not None and not any(body == seen.nonsense for _, body in seen.dead_letters)
    kept = seen.queue_depth == 0 and not strangers and not missing
    played = "nonsense was " + ("not played" if seen.nonsense is None else "lost" if missing else "dead-lettered")
    found = f"{seen.queue_depth} in the queue; {played}; other dead letters: {_listed(strangers)}"
    return Finding(promise="no message is left, and nonsense ends in the dead-letter queue", kept=kept, found=found)


def sized(desired: int) -> Judge:
    """Check that the group has the size that its owner requested, in service, and that its bounds are as before."""

    def judge(seen: Recording) -> Finding:
        before, after = seen.before, seen.after
        serving = seen.samples[-1].serving if seen.samples else 0
        if before is None or after is None:
            return Finding(promise="the group has the size that its owner asked for", kept=False, found="not read")
        same = (before.minimum, before.maximum, before.suspended) == (after.minimum, after.maximum, after.suspended)
        found = f"{after.minimum} / {after.desired} / {after.maximum}, {serving} in service"
        if after.suspended:
            found += f", suspended: {_listed(after.suspended)}"
        kept = same and after.desired == desired == serving
        return Finding(promise="the group has the size that its owner asked for", kept=kept, found=found)

    return judge


def all_new(version: str) -> Judge:
    """Check that no earlier member is left and that all run the requested version."""

    def judge(seen: Recording) -> Finding:
        members = set(seen.samples[-1].members) if seen.samples else set()
        old = sorted(members & set(seen.members_before))
        kept = bool(members) and not old and set(seen.versions) == {version}
        found = f"old ones left: {_listed(old)}; versions: {_listed(seen.versions)}"
        return Finding(promise=f"every node is new and of version {version}", kept=kept, found=found)

    return judge


def machine_succeeded(seen: Recording) -> Finding:
    """Check that the execution of the upgrade or the disruption run succeeded."""
    found = f"{seen.machine or 'none'} {seen.machine_error}".strip()
    return Finding(promise="its execution came to its end", kept=seen.machine == "SUCCEEDED", found=found)


def every_pod_runs(replicas: int) -> Judge:
    """Check that at the end all replicas are Ready."""

    def judge(seen: Recording) -> Finding:
        pods = seen.samples[-1].pods.values() if seen.samples else ()
        ready = sum(pod.ready and not pod.deleting for pod in pods)
        return Finding(promise="every pod runs", kept=ready == replicas, found=f"{ready} of {replicas} Ready")

    return judge


def left_alone(seen: Recording) -> Finding:
    """Check that another team's hook still holds its instance and that Leeward has no record of it."""
    known = [one.instance for one in seen.terminations]
    return Finding(
        promise="another team's hook was neither heartbeaten nor answered",
        kept=seen.hook_state == "Terminating:Wait" and not known,
        found=f"its instance is {seen.hook_state or 'gone'}; records: {_listed(known)}",
    )


def _at(text: str) -> float:
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"
