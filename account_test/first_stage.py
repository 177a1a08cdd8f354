"""First stage, before any instance: deploy, delete and deploy again under the same names, plain and with each extra.

A deployment that fails is removed, and the next one is tried: a failure names the resource, its reason and the fix.
"""

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from account_test import leftovers
from account_test.context import Context
from account_test.deployed import DELIVERS, findings_of
from account_test.deployment import deploy
from account_test.errors import EXPECTED, StepError
from account_test.foundation import lay_once
from account_test.judge import Finding
from account_test.recording import Recording
from account_test.removal import Remover
from account_test.results import Difference, Outcome, Result
from account_test.run import Extra, Run
from account_test.step import Step

PLAIN = "deploy and delete"
CARRIED = (Extra.VPC, Extra.KMS_KEY)  # extras that the plays are played with as well, once they have been shown
SPOT = "spot interruption"  # the play whose message comes from EventBridge alone
_MINUTES = "4 to 8 minutes, under a cent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """Deployment that is made and deleted."""

    name: str
    proves: str
    takes: str = _MINUTES
    extra: Extra | None = None

    @property
    def extras(self) -> tuple[Extra, ...]:
        """Extras of its settings."""
        return () if self.extra is None else (self.extra,)


_PLAIN = Variant(
    name=PLAIN,
    proves="CloudFormation makes every resource in an order in which AWS accepts it, deletes all, and nothing stays",
)
_WITH = {
    Extra.KMS_KEY: Variant(
        name="deploy with kmsKey",
        proves="logs, table, queues and functions take your key, under names that were just deleted",
        extra=Extra.KMS_KEY,
    ),
    Extra.WEBHOOK: Variant(
        name="deploy with a webhook",
        proves="CloudFormation reads the secret and EventBridge authorizes its connection; nothing is delivered",
        extra=Extra.WEBHOOK,
    ),
    Extra.MEMBER: Variant(
        name="deploy with a member account",
        proves="the stacks of both accounts stand, and each function assumes its role in the other account",
        takes="6 to 12 minutes, under a cent",
        extra=Extra.MEMBER,
    ),
    Extra.VPC: Variant(
        name="deploy with vpc",
        proves="functions in your subnets are made and reach the cluster; their network interfaces leave the subnets",
        takes="5 to 50 minutes, under a cent: AWS takes up to 40 minutes to remove network interfaces of functions",
        extra=Extra.VPC,
    ),
}


def stage(run: Run) -> list[Step]:
    """Return the steps: plain, and with each extra for which the options name what it needs."""
    return [_step(variant) for variant in (_PLAIN, *(_WITH[extra] for extra in run.extras))]


def carried(run: Run, results: Sequence[Result]) -> frozenset[Extra]:
    """Return the extras of the deployment that the plays run on: those given, without one whose step is broken. Where
    the cluster lets in no function from outside of the subnets, `vpc` is needed in any case.
    """
    broken = {one.name for one in results if one.outcome is Outcome.BROKEN}
    good = {extra for extra in run.extras if extra in CARRIED and _WITH[extra].name not in broken}
    return frozenset(good | ({Extra.VPC} if run.behind else set()))


def settled(results: Sequence[Result], played_with: Collection[Extra]) -> list[Result]:
    """Return the results in which the delivery into encrypted queues is kept where a spot warning went through one.
    `played_with`: the extras of the deployment of the plays.
    """
    name = _WITH[Extra.KMS_KEY].name
    kept = any(one.name == SPOT and one.outcome is Outcome.KEPT for one in results)
    shown = kept and Extra.KMS_KEY in played_with
    return [
        one.shown_by(SPOT, lambda promise: promise == DELIVERS) if shown and one.name == name else one
        for one in results
    ]


def _step(variant: Variant) -> Step:
    return Step(
        name=variant.name,
        proves=variant.proves,
        takes=variant.takes,
        gate=variant.extra is None,
        run=lambda context, recordings: _tried(context, variant, recordings),
    )


def _tried(context: Context, variant: Variant, _: list[Recording]) -> Result:
    """Deploy, judge, delete, and look at what stays. Raises StepError after the deletion of what has failed."""
    lay_once(context)
    began = time.monotonic()
    try:
        deploy(context, context.base["senderRole"] or None, variant.extras)
        deployed = time.monotonic()
        findings, differences = findings_of(context, variant.extras)
    except EXPECTED as error:
        _removed_after(error, context)
        raise
    deleting = time.monotonic()
    remove_deployment(context)
    deleted = time.monotonic()
    findings.append(gone(context, variant))
    differences += [
        Difference(about="cdk deploy", model="minutes", measured=f"{deployed - began:.0f} s", same=True),
        Difference(about="deletion", model="minutes", measured=f"{deleted - deleting:.0f} s", same=True),
    ]
    return Result(name=variant.name, proves=variant.proves, findings=findings, differences=differences)


def _removed_after(error: Exception, context: Context) -> None:
    """Remove a deployment that has failed. Raises StepError with both reasons where that fails as well."""
    try:
        remove_deployment(context)
    except EXPECTED as second:
        raise StepError(f"{error}; its deletion failed too, the rest is removed at the end: {second}") from error


def remove_deployment(context: Context) -> None:
    """Delete the stacks of the deployment, the last made first. Raises what the deletion raises: they stay in the
    journal.
    """
    context.say(f"{context.run.names.stack} is deleted")
    remover = Remover(aws=context.aws, kube=context.kube, pause=context.run.look, say=context.say)
    for made in [made for made in context.journal.left if made.kind == "stack"]:
        remover.remove(made)
        context.journal.removed(made)
    context.base["deleted"] = str(time.monotonic())


def gone(context: Context, variant: Variant) -> Finding:
    """Return whether something of the deployment is still there."""
    found = leftovers.after_removal(context.aws, context.run, whole=False)
    if variant.extra is not Extra.MEMBER:
        return found.finding()
    there = leftovers.after_removal(context.aws.assumed(context.run.member), context.run, whole=True)
    both = leftovers.Leftovers(there=(*found.there, *there.there), unread=(*found.unread, *there.unread))
    return both.finding("nothing of it stays in both accounts")
