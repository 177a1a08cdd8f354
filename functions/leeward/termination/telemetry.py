"""Log lines and metrics of the termination package, each name declared once (docs/reference/metrics.md lists them)."""

from leeward.telemetry import Telemetry, scopes_of
from leeward.termination.run import Next, NoticeKind, Run
from leeward.workflow.steps import log_step

NODES_TERMINATED = "NodesTerminated"
DRAINS_BLOCKED = "DrainsBlocked"
POD_EVICTION_FAILURES = "PodEvictionFailures"
STEPS_FAILED = "StepsFailed"
STALE_FACTS = "StaleFacts"
REPLACEMENTS_ELSEWHERE = "ReplacementsElsewhere"
REPLACEMENTS_NOWHERE = "ReplacementsNowhere"
LAUNCHES_REFUSED = "LaunchesRefused"
BY_GROUP = frozenset({NODES_TERMINATED, POD_EVICTION_FAILURES, STEPS_FAILED})
BLOCKED = ("pdb ", " fails: ", " denies it: ", "eviction refused: ")  # substrings that identify a budget or an Obstacle

NOTICES = {
    NoticeKind.STALE_FACTS: STALE_FACTS,
    NoticeKind.ELSEWHERE: REPLACEMENTS_ELSEWHERE,
    NoticeKind.NOWHERE: REPLACEMENTS_NOWHERE,
    NoticeKind.REFUSED: LAUNCHES_REFUSED,
}

telemetry = Telemetry("termination")


def stepped(step: str, result: Run) -> None:
    """Log one line per step, and count one metric if the operator needs it."""
    log_step(telemetry, step, result)
    name = {
        ("finish", Next.DONE): NODES_TERMINATED,
        ("drain", Next.WAIT): DRAINS_BLOCKED if any(word in result.why for word in BLOCKED) else None,
        ("return-to-service", Next.RETURNED_TO_SERVICE): POD_EVICTION_FAILURES,
        ("note-failure", Next.FAILED): STEPS_FAILED,
    }.get((step, result.next))
    if name in BY_GROUP:
        telemetry.count({name: 1}, *scopes_of(result.cluster, result.group))
    counted = {name: 1} if name and name not in BY_GROUP else {}
    for notice in result.notices:
        telemetry.warning(notice.text, {"step": step, "instance": result.instance, "notice": notice.kind.value})
        counted[NOTICES[notice.kind]] = 1
    telemetry.count(counted)
