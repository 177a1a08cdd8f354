"""Pods and nodes that opt out of voluntary disruption. An upgrade asks none of them: it warns before it starts.

An opt-out has no owner who could be asked during the upgrade, and a group that cannot leave an image because of one
annotation stays without security fixes. So the operator decides before the start, with the ends in view."""

from collections.abc import Iterator, Sequence

from leeward.disruption.do_not_disrupt import DO_NOT_DISRUPT, OptOut, node_opt_outs, pod_opt_outs
from leeward.model.times import format_instant
from leeward.model.visible import visible
from leeward.upgrade.preflight.findings import Code, Finding, warning
from leeward.upgrade.preflight.model import Preflight

MOST_NAMED = 3


def check_opt_outs(preflight: Preflight) -> Iterator[Finding]:
    """Yield one finding for the group: who opts out, and until when at the longest."""
    opted = list(_opted_out(preflight))
    if not opted:
        return
    named = ", ".join(f"{name} ({visible(one.key)})" for name, one in opted[:MOST_NAMED])
    more = f" and {len(opted) - MOST_NAMED} more" if len(opted) > MOST_NAMED else ""
    yield warning(
        Code.OPTED_OUT,
        f"group {preflight.group.name}",
        f"{named}{more} opt out of disruption, {_longest([one for _, one in opted])}: an upgrade does not ask, it "
        "drains their nodes within the PodDisruptionBudgets",
        "start after that, or leave an instance out: aws autoscaling set-instance-protection --protected-from-scale-in",
    )


def _opted_out(preflight: Preflight) -> Iterator[tuple[str, OptOut]]:
    """Yield old nodes and their pods that opt out now, each with its first opt-out."""
    for member in preflight.old:
        node = member.node
        if node is None:
            continue
        own = next((one for one in node_opt_outs(node) if one.key in DO_NOT_DISRUPT), None)
        if own is not None:
            yield f"node {node.name}", own
        for pod in preflight.pods[node.name]:
            opt_outs = pod_opt_outs(pod, preflight.snapshot.now)
            if opt_outs:
                yield f"pod {pod.key}", opt_outs[0]


def _longest(opt_outs: Sequence[OptOut]) -> str:
    """Return the latest end in words. One without an end holds for as long as the annotation is there."""
    without = sum(one.until is None for one in opt_outs)
    ends = [one.until for one in opt_outs if one.until is not None]
    latest = f"the longest until {format_instant(max(ends))}" if ends else ""
    endless = f"{without} without an end" if without else ""
    return " and ".join(filter(None, (latest, endless)))
