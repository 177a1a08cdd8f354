"""Judgement of the disruption runs: each promise of Leeward, checked on the state at the end."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from leeward.disruption.command import MethodName
from leeward.disruption.record import DisruptionRecord
from local.demo import ledger
from local.demo.judge import Finding
from local.demo_consolidate import scene, watch
from local.stack import LocalStack

CENT = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """State before, and observations. `held`: the node of the pod that has opted out; `image`: the new image, from
    which the web group's nodes had drifted; `cost` in dollars an hour before; `plan`: output of `leeward plan` at the
    end.
    """

    held: str
    image: str
    cost: float
    seen: watch.Watched
    plan: Mapping[str, Any]


def judge(stack: LocalStack, story: Story) -> list[Finding]:
    """Judge all promises."""
    sizes = scene.sizes(stack)
    return [
        *_about_drift(stack, story, sizes),
        *_about_savings(stack, story, sizes),
        *_about_the_rest(stack, story),
    ]


def disruptions_of(story: Story, method: MethodName) -> list[DisruptionRecord]:
    """Return the disruption runs that were carried out."""
    return [record for record in story.seen.ended if record.method is method and record.active_commands]


def _about_drift(stack: LocalStack, story: Story, sizes: Mapping[str, int]) -> list[Finding]:
    drift = disruptions_of(story, MethodName.DRIFT)
    names = {instance: str(node["metadata"]["name"]) for instance, node in ledger.nodes(stack).items()}
    behind = [names.get(one, one) for one, image in scene.images(stack, scene.WEB).items() if image != story.image]
    most = max((len(record.to_terminate) for record in drift), default=0)
    why = watch.verdicts(dict(story.plan), story.held).get(MethodName.DRIFT.value, "")
    return [
        Finding(
            promise="nodes behind their group's image were replaced, and the group has its size",
            good=behind == [story.held] and sizes[scene.WEB] == 3 and len(drift) == 2,
            found=f"{len(drift)} runs; behind still: {', '.join(map(ledger.short, behind)) or 'none'}",
        ),
        Finding(promise="one at a time, as the budget for drift says", good=most == 1, found=f"{most} at the most"),
        Finding(
            promise="the pod that has opted out holds its node, and the reason names it",
            good=f"default/{scene.HELD}" in why,
            found=why,
        ),
    ]


def _about_savings(stack: LocalStack, story: Story, sizes: Mapping[str, int]) -> list[Finding]:
    paid, saved = scene.cost(stack), story.seen.saved
    return [
        Finding(
            promise="the empty node is gone",
            good=sizes[scene.BATCH] == 0 and len(disruptions_of(story, MethodName.EMPTINESS)) == 1,
            found=f"{scene.BATCH} has {sizes[scene.BATCH]} nodes",
        ),
        Finding(
            promise="three large nodes became one cheaper one",
            good=(sizes[scene.WIDE], sizes[scene.SMALL]) == (0, 1),
            found=f"{scene.WIDE} has {sizes[scene.WIDE]}, {scene.SMALL} has {sizes[scene.SMALL]}",
        ),
        Finding(
            promise="the dollars that the plans promised are saved",
            good=saved > 0 and abs(story.cost - paid - saved) < CENT,
            found=f"${story.cost:.3f} an hour before, ${paid:.3f} after; promised: ${saved:.3f} an hour",
        ),
    ]


def _about_the_rest(stack: LocalStack, story: Story) -> list[Finding]:
    violations = ledger.budget_violations(stack)
    nodes = ledger.nodes(stack).values()
    tainted = [str(node["metadata"]["name"]) for node in nodes if node["spec"].get("unschedulable") or marks(node)]
    ready, suspended = scene.ready_pods(stack), scene.suspended(stack)
    runs = [status for status in scene.disruptions_run(stack) if status != "SUCCEEDED"]
    return [
        Finding(
            promise="no eviction ever broke a PodDisruptionBudget",
            good=not violations,
            found=f"{len(violations)} violations in the cluster's own record",
        ),
        Finding(promise="nothing is left cordoned or tainted", good=not tainted, found=", ".join(tainted) or "nothing"),
        Finding(
            promise="AZRebalance runs everywhere", good=not suspended, found=", ".join(suspended) or "nothing suspended"
        ),
        Finding(promise="every pod runs", good=ready == scene.pods(), found=f"{ready} of {scene.pods()} Ready"),
        Finding(
            promise="every run came to its end",
            good=bool(story.seen.ended) and not runs and len(story.seen.ended) == len(story.seen.disruptions),
            found=f"{len(story.seen.ended)} runs, {len(runs)} executions not succeeded",
        ),
    ]


def marks(node: Mapping[str, Any]) -> Sequence[str]:
    """Return Leeward's taints on the node."""
    return [taint["key"] for taint in node["spec"].get("taints") or () if taint["key"].startswith("leeward.dev/")]
