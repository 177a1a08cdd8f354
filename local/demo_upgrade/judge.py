"""Judgement of the upgrade: each promise of Leeward, checked on the state at the end."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from leeward.model.times import parse_instant
from leeward.upgrade.preflight.findings import Code
from leeward.upgrade.status import UpgradePhase
from local.demo import ledger
from local.demo.judge import Finding
from local.demo_upgrade import scene
from local.demo_upgrade.watch import Watched
from local.stack import LocalStack

Fact = Mapping[str, Any]
TAINT = "leeward.dev/disrupted="


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """State before, and observations. `at_first`, `fixed`: pre-flight's blockers before and after the fix, code and
    object.
    """

    cast: scene.Cast
    before: scene.Before
    seen: Watched
    at_first: Sequence[tuple[str, str]]
    fixed: Sequence[tuple[str, str]]


def judge(stack: LocalStack, story: Story) -> list[Finding]:
    """Judge all promises."""
    history: Sequence[Fact] = stack.cluster_control("GET", "history")
    group = scene.described(stack)
    return [
        *(_about_blocks(story) if story.cast.in_the_way else ()),
        *_about_nodes(stack, story, group),
        *_about_group(story, group),
        *_about_pods(stack, story, history),
        *_about_runs(stack, story),
    ]


def _about_blocks(story: Story) -> list[Finding]:
    impossible = [(Code.PDB_NEVER_ALLOWS.value, f"pdb default/{scene.IMPOSSIBLE}")]
    reported = ", ".join(f"{code} of {about}" for code, about in story.at_first) or "none"
    blocker = story.seen.blocker
    return [
        Finding(
            promise="pre-flight reported the impossible budget, and no blocker once it was fixed",
            good=list(story.at_first) == impossible and not story.fixed,
            found=f"{reported}; then {len(story.fixed)}",
        ),
        Finding(
            promise="the budget in the way was named while it blocked",
            good=blocker is not None and bool(blocker.pod) and story.seen.scaled_up,
            found=f"{blocker.pod} held by {blocker.object}" if blocker is not None else "no pod was named",
        ),
    ]


def _about_nodes(stack: LocalStack, story: Story, group: Fact) -> list[Finding]:
    nodes = ledger.nodes(stack)
    members = {str(one["InstanceId"]): one for one in group["Instances"]}
    images = _images(stack, members)
    left = story.before.instances & (members.keys() | nodes.keys())
    tainted = [name for name, node in nodes.items() if node["spec"].get("unschedulable") or ledger.is_tainted(node)]
    return [
        Finding(
            promise="every node is new, and runs the image that was asked for",
            good=not left and len(members) == len(nodes) == story.cast.size and set(images) == {story.before.image},
            found=f"{len(members)} members, {len(nodes)} nodes, {len(left)} old ones left, images: {dict(images)}",
        ),
        Finding(promise="nothing is left cordoned or tainted", good=not tainted, found=", ".join(tainted) or "nothing"),
    ]


def _images(stack: LocalStack, members: Iterable[str]) -> Counter[str]:
    found = stack.client("ec2").describe_instances(InstanceIds=list(members))["Reservations"]
    return Counter(str(one["ImageId"]) for each in found for one in each["Instances"])


def _about_group(story: Story, group: Fact) -> list[Finding]:
    sizes, zones = scene.sizes_of(group), scene.zones_of(group)
    suspended = [str(one["ProcessName"]) for one in group["SuspendedProcesses"]]
    return [
        Finding(
            promise="minimum, desired and maximum size are what they were",
            good=sizes == story.before.sizes,
            found=f"{' / '.join(map(str, sizes))}",
        ),
        Finding(
            promise="every zone has as many nodes as before",
            good=zones == story.before.zones,
            found=", ".join(f"{zone}: {count}" for zone, count in zones.items()),
        ),
        Finding(
            promise="AZRebalance runs again",
            good=not suspended,
            found=f"suspended: {', '.join(suspended) or 'nothing'}",
        ),
    ]


def _about_pods(stack: LocalStack, story: Story, history: Sequence[Fact]) -> list[Finding]:
    violations = ledger.budget_violations(stack)
    together = most_together(history)
    evicted, again = moved(history, story.seen.began)
    wanted, at_most = story.cast.replicas, story.cast.together
    ready = scene.ready_pods(stack)
    return [
        Finding(
            promise="no eviction ever broke a PodDisruptionBudget",
            good=not violations,
            found=f"{len(violations)} violations in the cluster's own record",
        ),
        Finding(
            promise=f"never more than {at_most} old nodes (33 %) were emptied at once",
            good=0 < together <= at_most,
            found=f"{together} at the most",
        ),
        Finding(
            promise="no pod was moved twice by us",
            good=evicted > 0 and not again,
            found=f"{evicted} moved; again: {', '.join(again) or 'none'}",
        ),
        Finding(promise="every pod runs", good=ready == wanted, found=f"{ready} of {wanted} Ready"),
    ]


def most_together(history: Sequence[Fact]) -> int:
    """Return the highest number of nodes at one moment that were to be terminated and still had workload pods, by the
    cluster's record.
    """
    on: dict[str, set[str]] = {}
    going: set[str] = set()
    most = 0
    for fact in history:
        kind, about = fact["kind"], str(fact["object"])
        if kind == "node-tainted" and str(fact["taint"]).startswith(TAINT):
            going.add(about)
        elif kind == "node-deleted":
            going.discard(about)
        elif str(fact.get("owner", "")).startswith("ReplicaSet/"):
            pods = on.setdefault(str(fact.get("node", "")), set())
            if kind == "pod-started":
                pods.add(str(fact["uid"]))
            elif kind == "pod-deleted":
                pods.discard(str(fact["uid"]))
        most = max(most, sum(bool(on.get(name)) for name in going))
    return most


def moved(history: Sequence[Fact], since: datetime) -> tuple[int, list[str]]:
    """Return how many pods were evicted, and those of them that had started after the upgrade's beginning, so were
    moved again.
    """
    came = {str(fact["object"]): parse_instant(str(fact["at"])) for fact in history if fact["kind"] == "pod-started"}
    evicted = {str(fact["object"]) for fact in history if fact["kind"] == "eviction-accepted"}
    return len(evicted), sorted(pod for pod in evicted if pod in came and came[pod] > since)


def _about_runs(stack: LocalStack, story: Story) -> list[Finding]:
    records, seen = ledger.terminations(stack), story.seen
    ours = {one.instance for one in records if one.status == "closed"}
    runs = [status for status in ledger.executions(stack).values() if status != "SUCCEEDED"]
    upgrades = scene.upgrades(stack)
    return [
        Finding(
            promise="every old node was ended once, by us, and its record closed",
            good=ours == story.before.instances and len(records) == story.cast.size and not runs,
            found=f"{len(ours)} closed of {len(records)}, {len(runs)} executions not succeeded",
        ),
        Finding(
            promise="the upgrade came to its end",
            good=seen.ended is UpgradePhase.DONE and upgrades[0] == "SUCCEEDED" and seen.kill_at is None,
            found=f"{'; '.join(upgrades)} after {seen.seconds:.0f} s: "
            + " → ".join(phase.value for phase in seen.phases),
        ),
    ]
