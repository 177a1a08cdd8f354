"""A permission that is missing for one call: the pods of a node that EC2 takes leave all the same."""

from dataclasses import replace
from datetime import timedelta

import pytest

from leeward.errors import AccessDeniedError, AwsUnavailableError, ThrottledError
from leeward.model.attachment import VolumeAttachment
from leeward.model.termination import Cause, CauseKind
from tests.fakes.builders import a_policy, a_subject, our_hook
from tests.fakes.clock import START
from tests.state_machines.test_walks import I, a_budget, a_pod, a_system, claim, ended
from tests.state_machines.walker import Walker

DENIED = AccessDeniedError("AccessDenied: not authorized")


def spot(system):
    cause = Cause(id="event-1", kind=CauseKind.SPOT_INTERRUPTION, at=START, deadline=START + timedelta(minutes=2))
    system.claims.claim(replace(a_subject(I), policy=a_policy().name), cause, START)


def evicted_after(system):
    """Return the seconds from the warning to the first eviction; None without one in the whole execution."""
    evict, moments = system.kubernetes.evict, []

    def noted(*args, **kwargs):
        moments.append((system.clock.now() - START).total_seconds())
        return evict(*args, **kwargs)

    system.kubernetes.evict = noted
    Walker(system).run(I)
    return moments[0] if moments else None


@pytest.mark.parametrize("method", ["hooks", "describe", "terminate", "launch"])
@pytest.mark.parametrize("error", [DENIED, AwsUnavailableError("503"), ThrottledError("Throttling")])
def test_pods_of_a_spot_instance_leave_whatever_call_to_its_group_fails(method, error):
    system = a_system(hooks=[our_hook()], pods=[a_pod()], budgets=[a_budget(1)])
    spot(system)
    system.groups.fail(method, error)
    after = evicted_after(system)
    assert after is not None
    assert after <= 10


@pytest.mark.parametrize("deleted", [False, True], ids=["with its Node", "its Node was deleted"])
def test_pods_of_a_spot_instance_leave_while_ec2_does_not_answer(deleted):
    system = a_system(pods=[a_pod()])
    spot(system)
    system.instances.fail("describe", ThrottledError("RequestLimitExceeded"))
    if deleted:
        system.kubernetes.by_name.clear()
    after = evicted_after(system)
    assert after is not None
    assert after <= 10


@pytest.mark.parametrize("write", ["plan", "note", "note_attempt"])
def test_pods_of_a_spot_instance_leave_where_the_table_refuses_writes_alone(write):
    system = a_system(pods=[a_pod()])
    spot(system)
    system.claims.fail(write, DENIED)
    assert evicted_after(system) is not None


def test_pods_whose_turn_comes_last_leave_as_well_while_a_call_is_denied():
    critical = replace(a_pod("dns-1", grace=30), priority_class="system-cluster-critical")
    system = a_system(hooks=[our_hook()], pods=[a_pod("slow-1", grace=120), critical])
    spot(system)
    system.kubernetes.stuck.add("shop/slow-1")
    system.groups.fail("hooks", DENIED)
    Walker(system).run(I)
    assert "evict shop/dns-1" in system.kubernetes.done


def test_a_group_that_refuses_the_early_request_is_asked_again_when_the_pods_have_left():
    system = a_system(hooks=[our_hook()], pods=[a_pod()])
    spot(system)
    system.groups.fail("terminate", DENIED, times=1)
    walk = Walker(system).run(I)
    assert walk.ended == "Terminated"
    assert [state for state in walk.states if state.startswith("Terminate")] == [
        "TerminateBeforeDrain",
        "Terminate",
        "Terminated",
    ]
    assert system.groups.terminated == [(I, True)]


def test_a_node_ends_although_its_volume_attachments_may_not_be_read():
    system = a_system(hooks=[our_hook()], pods=[a_pod()])
    claim(system, CauseKind.UPGRADE)
    attachment = VolumeAttachment(name="csi-1", node=f"node-{I}", volume="pv-1", attached=True)
    system.kubernetes.attachment_list.append(attachment)
    system.kubernetes.fail("attachments", DENIED)
    assert Walker(system).run(I).ended == "Terminated", ended(system)
