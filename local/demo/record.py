"""Run record of the demo, built from the table, the cluster's own history and its Events, once it has ended.

The demo measures nothing of it; each fact comes from the record of the component that acted.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from leeward.cli.report.lanes import PHASES_OF_TIMES, spans_of
from leeward.cli.report.record import (
    Mark,
    MarkKind,
    NodeLane,
    Phase,
    RunRecord,
    Sample,
    Source,
    WorkloadLane,
)
from leeward.model.times import format_instant, parse_instant
from local.cluster.pdb_minimum import minimum_of
from local.demo import ledger, scenario
from local.stack import LocalStack

Fact = Mapping[str, Any]
BEFORE = timedelta(seconds=2)
PLAYED = "played: a spot warning (twice), a maintenance of two instances, nonsense, a scale-in, another team's hook"
AHEAD = frozenset({"until", "retry"})  # times of a termination that lie in its future
ECHOES = frozenset({"GroupTerminating", "InstanceStateChange"})
BLOCKED_REASONS = frozenset({"DrainBlocked"})  # reported more exactly by the refusals themselves


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Data read when the demo had ended."""

    history: Sequence[Fact]
    terminations: Sequence[ledger.Termination]
    members: Mapping[str, tuple[str, str]]  # instance -> (group, capacity type), including terminated ones
    events: Sequence[Fact]  # Kubernetes Events
    deployments: Sequence[Fact]
    replica_sets: Sequence[Fact]
    budgets: Sequence[Fact]
    played: datetime
    story: str = PLAYED


def read(stack: LocalStack, played: datetime) -> Sources:
    """Read the table, the groups and the cluster. `played`: when the messages were sent."""

    def items(path: str) -> list[Fact]:
        found: list[Fact] = stack.kubernetes("GET", path)["items"]
        return found

    return Sources(
        history=stack.cluster_control("GET", "history"),
        terminations=ledger.terminations(stack),
        members=_members(stack),
        events=items("/api/v1/namespaces/default/events"),
        deployments=items("/apis/apps/v1/namespaces/default/deployments"),
        replica_sets=items("/apis/apps/v1/namespaces/default/replicasets"),
        budgets=items("/apis/policy/v1/namespaces/default/poddisruptionbudgets"),
        played=played,
    )


def _members(stack: LocalStack) -> dict[str, tuple[str, str]]:
    """Return the members of the groups; EC2 keeps terminated instances for a while, with their tags."""
    pages = stack.client("ec2").get_paginator("describe_instances").paginate()
    found = {}
    for instance in (i for page in pages for reservation in page["Reservations"] for i in reservation["Instances"]):
        tags = {tag["Key"]: tag["Value"] for tag in instance.get("Tags", ())}
        group = tags.get("aws:autoscaling:groupName") or tags.get("Name", "")
        found[instance["InstanceId"]] = (group, "spot" if group == scenario.SPOT else "on-demand")
    return found


def build(sources: Sources) -> RunRecord:
    """Build the record from shortly before the messages to the last fact; earlier states of nodes are in their
    spans.
    """
    moments = [parse_instant(str(fact["at"])) for fact in sources.history]
    times = (item for termination in sources.terminations for item in termination.times.items())
    moments += [at for name, at in times if name not in AHEAD]
    end = max([sources.played, *moments])
    marks = [*_played(sources), *_events(sources), *_blocks(sources), *_decisions(sources)]
    return RunRecord(
        source=Source.LOCAL,
        start=sources.played - BEFORE,
        end=end,
        nodes=tuple(_nodes(sources, end)),
        workloads=tuple(_workload(sources, deployment) for deployment in sources.deployments),
        marks=tuple(sorted(marks, key=lambda mark: mark.at)),
    )


def _nodes(sources: Sources, end: datetime) -> Iterable[NodeLane]:
    terminations = {termination.instance: termination for termination in sources.terminations}
    asked = {
        launched: termination.times["replacement"]
        for termination in sources.terminations
        for launched in termination.launched
        if "replacement" in termination.times
    }
    for born in (fact for fact in sources.history if fact["kind"] == "node-created"):
        name, provider = str(born["object"]), str(born.get("providerID", ""))
        zone, _, instance = provider.removeprefix("aws:///").partition("/")
        times = {Phase.LAUNCHING: asked.get(instance, parse_instant(str(born["at"])))}
        times |= _own_times(sources.history, name, parse_instant(str(born["at"])))
        if instance in terminations:
            reported = terminations[instance].times
            times |= {phase: reported[key] for key, phase in PHASES_OF_TIMES.items() if key in reported}
        group, capacity = sources.members.get(instance, ("", ""))
        yield NodeLane(
            name=name, instance=instance, group=group, zone=zone, capacity_type=capacity, spans=spans_of(times, end)
        )


def _own_times(history: Sequence[Fact], name: str, born: datetime) -> dict[Phase, datetime]:
    """Return the cluster's times of a node: first Ready, first cordoned, deleted."""
    words = {"node-ready": Phase.READY, "node-cordoned": Phase.CORDONED, "node-deleted": Phase.TERMINATED}
    found: dict[Phase, datetime] = {}
    for fact in history:
        at = parse_instant(str(fact["at"]))
        if fact["object"] == name and fact["kind"] in words and at >= born:
            found.setdefault(words[str(fact["kind"])], at)
    return found


def _workload(sources: Sources, deployment: Fact) -> WorkloadLane:
    """Return the ready replicas as a ReplicaSet counts them: a pod that is being deleted is no longer ready."""
    name, uid = str(deployment["metadata"]["name"]), deployment["metadata"]["uid"]
    owners = {f"ReplicaSet/{found['metadata']['name']}" for found in sources.replica_sets if _owned(found, uid)}
    ready: set[str] = set()
    samples: list[Sample] = []
    for fact in (fact for fact in sources.history if fact.get("owner") in owners):
        before = len(ready)
        if fact["kind"] == "pod-ready":
            ready.add(str(fact["uid"]))
        elif fact["kind"] in {"pod-notready", "pod-deletion-started", "pod-deleted"}:
            ready.discard(str(fact["uid"]))
        if len(ready) != before:
            samples.append(Sample(at=parse_instant(str(fact["at"])), ready=len(ready)))
    return WorkloadLane(
        name=name,
        desired=int(deployment["spec"].get("replicas", 1)),
        minimum=minimum_of(sources.budgets, deployment["spec"]["template"]["metadata"].get("labels", {})),
        samples=tuple(samples),
    )


def _owned(thing: Fact, uid: str) -> bool:
    return any(owner["uid"] == uid for owner in thing["metadata"].get("ownerReferences", ()))


def _played(sources: Sources) -> list[Mark]:
    return [Mark(at=sources.played, kind=MarkKind.EVENT, text=sources.story)]


def _events(sources: Sources) -> list[Mark]:
    """Return Leeward's Events about its nodes. Kubernetes truncates times to whole seconds; none is from before the
    messages. What EC2 and the group announce after Leeward has requested the end is its echo.
    """
    asked = {one.node: one.times["terminating"] for one in sources.terminations if "terminating" in one.times}
    return [
        Mark(
            at=max(parse_instant(str(event["firstTimestamp"])), sources.played),
            kind=MarkKind.EVENT,
            node=str(event["involvedObject"]["name"]),
            text=f"{event['reason']}: {event['message']}",
            internal=_is_echo(event, asked),
        )
        for event in sources.events
        if event.get("source", {}).get("component") == "leeward" and event["reason"] not in BLOCKED_REASONS
    ]


def _is_echo(event: Fact, asked: Mapping[str, datetime]) -> bool:
    since = asked.get(str(event["involvedObject"]["name"]))
    written = parse_instant(str(event["firstTimestamp"]))
    return event["reason"] in ECHOES and since is not None and written >= since.replace(microsecond=0)


def _blocks(sources: Sources) -> list[Mark]:
    """Return the first refusal of each pod, and until when its drain waits for it; further refusals are counted in
    it.
    """
    refused: dict[str, list[Fact]] = {}
    until = {one.node: one.times["until"] for one in sources.terminations if "until" in one.times}
    for fact in (fact for fact in sources.history if fact["kind"] == "eviction-refused"):
        refused.setdefault(str(fact["object"]), []).append(fact)
    return [
        Mark(
            at=parse_instant(str(facts[0]["at"])),
            kind=MarkKind.BLOCKED,
            node=str(facts[0].get("node") or "") or None,
            text=f"PodDisruptionBudget {facts[0]['pdb']} refused to let {pod} go"
            + (f" ({len(facts)} times)" if len(facts) > 1 else "")
            + _waited_for(until.get(str(facts[0].get("node") or ""))),
        )
        for pod, facts in refused.items()
    ]


def _waited_for(until: datetime | None) -> str:
    return f", waited for until {format_instant(until)} at the latest" if until else ""


def _decisions(sources: Sources) -> list[Mark]:
    """Return the result of each replacement decision."""
    return [
        Mark(
            at=termination.times["replacement"],
            kind=MarkKind.DECISION,
            node=termination.node,
            text=f"replacement asked for: {', '.join(termination.launched)}"
            if termination.launched
            else f"no replacement: {termination.replacement}",
        )
        for termination in sources.terminations
        if "replacement" in termination.times
    ]
