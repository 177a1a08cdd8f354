"""An instance that a person detaches from its group while its node drains."""

from dataclasses import replace
from datetime import timedelta

import pytest

from leeward.model.group import ScalingActivity
from leeward.model.termination import CauseKind, Outcome, Status
from leeward.policy.document import DrainPolicy
from leeward.termination.situation import MAX_AGE
from tests.fakes.builders import GROUP
from tests.fakes.clock import START
from tests.state_machines.test_detach_deadlines import Happens
from tests.state_machines.test_walks import I, a_budget, a_pod, a_system, claim, ended, spot
from tests.state_machines.walker import Walker

NODE = f"node-{I}"
GRACE = DrainPolicy(timeout=timedelta(minutes=10), termination_grace_period=timedelta(minutes=25))
DETACHED = START + timedelta(seconds=65)


def detaches(system, *, tag=True):
    """Auto Scaling forgets the instance, takes its tag off, and says so in the group's history."""

    def detach():
        group = system.groups.by_name[GROUP]
        system.groups.by_name[GROUP] = replace(group, instances=())
        cause = f"instance {I} was detached in response to a user request."
        system.groups.history.append((GROUP, ScalingActivity(at=system.clock.now(), cause=cause, leaves=I)))
        if tag:
            system.instances.put(replace(system.instances.describe([I])[I], tags={}))

    return DETACHED, detach


@pytest.mark.parametrize("kind", [CauseKind.UPGRADE, CauseKind.DRIFTED, CauseKind.UNDERUTILIZED, CauseKind.UNHEALTHY])
def test_a_detached_instance_keeps_its_pods_and_its_node_serves_again(kind):
    """The deadline of its policy deletes no pod of an instance that nothing ends."""
    system = a_system(pods=[a_pod()], budgets=[a_budget(0)], drain=GRACE)
    claim(system, kind)
    assert Walker(system, before=Happens(system, detaches(system))).run(I).ended == "Cancelled"
    assert ended(system) == (Status.CLOSED, Outcome.RETURNED_TO_SERVICE)
    assert system.kubernetes.done == []
    assert not system.kubernetes.by_name[NODE].tainted
    assert [event.reason for event in system.kubernetes.events][-1] == "TerminationCancelled"
    assert system.clock.now() < DETACHED + MAX_AGE + timedelta(minutes=2)  # no message tells of it


def test_a_manual_drain_goes_on_after_the_instance_was_detached():
    system = a_system(pods=[a_pod()], budgets=[a_budget(0)])
    claim(system, CauseKind.MANUAL)
    opens = (START + timedelta(minutes=4), lambda: system.kubernetes.set_allowed("shop/web", 1))
    Walker(system, before=Happens(system, detaches(system), opens)).run(I)
    assert system.kubernetes.done == ["evict shop/web-1"]


@pytest.mark.parametrize("drain", [GRACE, replace(GRACE, force=True), DrainPolicy(force=True)])
@pytest.mark.parametrize("kind", [CauseKind.MANUAL, CauseKind.NODE_DELETED])
def test_no_policy_deletes_a_pod_of_a_detached_instance_that_is_drained_on_request(kind, drain):
    """The instance runs on: neither force nor a terminationGracePeriod overrides the budgets of its pods."""
    system = a_system(pods=[a_pod()], budgets=[a_budget(0)], drain=drain)
    claim(system, kind)
    walk = Walker(system, before=Happens(system, detaches(system))).run(I)
    assert (walk.ended, system.kubernetes.done) == ("PodEvictionFailure", [])
    assert not system.kubernetes.by_name[NODE].tainted


def test_the_deadline_that_a_person_gave_deletes_pods_of_a_detached_instance():
    system = a_system(pods=[a_pod()], budgets=[a_budget(0)])
    claim(system, CauseKind.MANUAL, deadline=START + timedelta(minutes=4))
    Walker(system, before=Happens(system, detaches(system))).run(I)
    assert system.kubernetes.done == ["delete shop/web-1"]


def test_a_detached_spot_instance_is_drained_by_the_policy_that_was_its_own():
    system = a_system(pods=[a_pod()], budgets=[a_budget(0)], drain=DrainPolicy(force=True))
    spot(system)
    Walker(system, before=Happens(system, detaches(system))).run(I)
    assert system.kubernetes.done == ["delete shop/web-1"]


def test_a_spot_instance_is_drained_although_it_was_detached():
    system = a_system(pods=[a_pod()], budgets=[a_budget(0)])
    spot(system)
    opens = (START + timedelta(seconds=90), lambda: system.kubernetes.set_allowed("shop/web", 1))
    Walker(system, before=Happens(system, detaches(system), opens)).run(I)
    assert system.kubernetes.done == ["evict shop/web-1"]


def test_a_group_that_does_not_list_the_instance_is_not_believed_alone():
    system = a_system(pods=[a_pod()], budgets=[a_budget(0)])
    claim(system, CauseKind.UPGRADE)
    opens = (START + timedelta(minutes=4), lambda: system.kubernetes.set_allowed("shop/web", 1))
    Walker(system, before=Happens(system, detaches(system, tag=False), opens)).run(I)
    assert system.kubernetes.done == ["evict shop/web-1"]
