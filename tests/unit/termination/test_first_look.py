"""First look of a voluntary drain: what cancels it, by its causes."""

from dataclasses import replace
from datetime import timedelta

import pytest

from leeward.model.capacity import SurgeInstance, SurgeOwner
from leeward.model.termination import Cause, CauseKind, Status, TerminationRecord
from leeward.policy.document import DrainPolicy
from leeward.termination.capacity_ledger import surplus
from leeward.termination.decisions import has_begun, is_voluntary
from leeward.termination.eviction import reason_to_cancel
from tests.fakes.builders import a_node, a_subject
from tests.fakes.clock import START
from tests.state_machines.test_walks import a_pod

DEFAULTS = DrainPolicy()
OPTED_OUT = replace(a_pod(), annotations={"karpenter.sh/do-not-disrupt": "true"})
EMPTY, EXPIRED, DRIFTED, UNDERUTILIZED = (
    CauseKind.EMPTY,
    CauseKind.EXPIRED,
    CauseKind.DRIFTED,
    CauseKind.UNDERUTILIZED,
)


def of(*kinds, owner=SurgeOwner.DISRUPTION):
    causes = tuple(Cause(id=f"event-{kind}", kind=kind, at=START) for kind in kinds)
    decrement = surplus(SurgeInstance(owner=owner, instance="i-0abc"), START)
    return TerminationRecord(
        subject=a_subject("i-0abc"), status=Status.OPEN, attempt=1, version=1, causes=(*causes, decrement)
    )


def reason(kinds, *pods, policy=DEFAULTS, node=None):
    return reason_to_cancel(of(*kinds), policy, node or a_node("i-0abc"), pods, START)


@pytest.mark.parametrize("kind", [EMPTY, EXPIRED, DRIFTED, UNDERUTILIZED])
def test_an_opt_out_of_a_pod_or_of_the_node_cancels_every_method(kind):
    node = replace(a_node("i-0abc"), annotations={"leeward.dev/do-not-disrupt": "true"})
    assert reason([kind], OPTED_OUT) == "pod shop/web-1 opts out of disruption (karpenter.sh/do-not-disrupt)"
    assert reason([kind], node=node) == "the node opts out of disruption (leeward.dev/do-not-disrupt)"


def test_a_pod_without_an_opt_out_cancels_emptiness_alone():
    said = {kind: reason([kind], a_pod()) for kind in (EMPTY, EXPIRED, DRIFTED, UNDERUTILIZED)}
    assert said == {EMPTY: "pod shop/web-1 was bound to the empty node", EXPIRED: "", DRIFTED: "", UNDERUTILIZED: ""}


def test_a_termination_grace_period_overrides_opt_outs_of_pods_for_drift_and_expiration():
    policy = DrainPolicy(termination_grace_period=timedelta(hours=1))
    said = {kind: bool(reason([kind], OPTED_OUT, policy=policy)) for kind in (EMPTY, EXPIRED, DRIFTED, UNDERUTILIZED)}
    assert said == {EMPTY: True, EXPIRED: False, DRIFTED: False, UNDERUTILIZED: True}


def test_a_cause_that_still_holds_keeps_the_termination():
    assert reason([EMPTY, EXPIRED], a_pod()) == ""


@pytest.mark.parametrize("pod", [replace(OPTED_OUT, phase="Succeeded"), replace(OPTED_OUT, deletion=START)])
def test_a_pod_that_has_ended_or_is_ending_cancels_nothing(pod):
    assert reason([EMPTY], pod) == ""


def test_only_causes_of_a_disruption_run_are_voluntary():
    assert is_voluntary(of(EXPIRED))
    assert not is_voluntary(of(EXPIRED, CauseKind.MANUAL))
    assert not is_voluntary(of(EXPIRED, owner=SurgeOwner.TERMINATION))
    assert not is_voluntary(of())


def test_a_drain_that_has_moved_a_pod_or_whose_group_ends_it_is_finished():
    record = of(EMPTY)
    assert not has_begun(record, "InService")
    assert has_begun(record, "Terminating:Wait")
    assert has_begun(replace(record, pods_evicted=1), "InService")
    assert has_begun(replace(record, times={"moved": START}), "InService")
