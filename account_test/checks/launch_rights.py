"""Check of the launch rights by launches themselves: LaunchInstances in the plays, and
UpdateAutoScalingGroup with a launch template in the self-managed upgrade, as the plays have recorded them.

Auto Scaling makes calls to EC2 in the caller's name, with context that no simulator knows. On a local endpoint, which
enforces no IAM, both stay unproven."""

from collections.abc import Sequence

from account_test.checks import iam
from account_test.context import Context
from account_test.judge import Finding, unproven
from account_test.recording import Recording
from account_test.results import Outcome, Result
from leeward.model.launch_refusal import RefusalCause, cause_in

NAME = "launch rights"
PROVES = "LaunchInstances and UpdateAutoScalingGroup with a launch template answer to the rights of the roles"
LAUNCHES = "LaunchInstances launches with the function's rights"
POINTS = "UpdateAutoScalingGroup points a group to a version of its launch template"
UPGRADE = "self-managed upgrade"
NOT_PLAYED = "not played in this run"
NOT_ENFORCED = "a local endpoint enforces no IAM"


def check(context: Context, recordings: Sequence[Recording]) -> Result:
    """Judge both calls from the recordings."""
    played = {seen.play: seen for seen in recordings}
    if context.run.endpoint:
        findings = [unproven(promise, NOT_ENFORCED) for promise in (LAUNCHES, POINTS)]
    else:
        findings = [launched(recordings), pointed(played.get(UPGRADE))]
    return Result(name=NAME, proves=PROVES, findings=findings)


def launched(recordings: Sequence[Recording]) -> Finding:
    """Judge LaunchInstances: an instance that it launched shows the rights, a denial breaks the promise."""
    terminations = [one for seen in recordings for one in seen.terminations]
    instances = [instance for one in terminations for instance in one.launched]
    if instances:
        return Finding(promise=LAUNCHES, kept=True, found=f"launched {', '.join(instances)}")
    reasons = [one.replacement for one in terminations if one.replacement]
    denied = [reason for reason in reasons if cause_in(reason) is RefusalCause.DENIED]
    if denied:
        return Finding(promise=LAUNCHES, kept=False, found=denied[0])
    return unproven(LAUNCHES, f"no launch was seen: {'; '.join(reasons) or NOT_PLAYED}")


def pointed(seen: Recording | None) -> Finding:
    """Judge UpdateAutoScalingGroup by the upgrade: it points the group to the new version in its first step."""
    if seen is None:
        return unproven(POINTS, NOT_PLAYED)
    if seen.machine == "SUCCEEDED":
        return Finding(promise=POINTS, kept=True, found=f"the members run version {', '.join(set(seen.versions))}")
    if cause_in(seen.machine_error) is RefusalCause.DENIED:
        return Finding(promise=POINTS, kept=False, found=seen.machine_error)
    return unproven(POINTS, f"the upgrade did not get there: {seen.machine or 'no execution'} {seen.machine_error}")


def settled(results: Sequence[Result]) -> list[Result]:
    """Return the results in which the launch rows of the step IAM are kept where the launches have shown them."""
    shown = any(one.name == NAME and one.outcome is Outcome.KEPT for one in results)
    return [
        one.shown_by(NAME, lambda promise: promise.endswith(iam.MAY_LAUNCH)) if shown and one.name == iam.NAME else one
        for one in results
    ]
