"""Messages about an instance that is leaving already: what its record answers, AWS is not asked, and what a message
says EC2 has to confirm."""

from dataclasses import replace

import pytest

from leeward.errors import AwsUnavailableError
from leeward.model.termination import CauseKind, Outcome, Status
from leeward.policy.document import GroupSelector
from leeward.termination.situation import Freshness, read, survey
from tests.events import event
from tests.fakes.builders import CLUSTER, GROUP, a_group, a_policy, policies

I = "i-0abc"  # noqa: E741


def state_change(state, id_="state-1"):
    return event("state_change", id=id_, detail={"instance-id": I, "state": state})


def asked(queue):
    """Calls to EC2 and to Auto Scaling that only ask, since the last time."""
    system = queue.system
    counts = (system.instances.asked["describe"], system.groups.asked["describe"], system.groups.asked["hooks"])
    since = tuple(now - before for now, before in zip(counts, getattr(queue, "before", (0, 0, 0)), strict=True))
    queue.before = counts
    return since


def closed(queue, state):
    """Its termination has come to an end, and this is what EC2 said at last."""
    system = queue.system
    system.instances.set_state(I, state)
    survey(read(I, system.ports.claims), system.ports)
    version = system.claims.records[I].version
    system.claims.close(I, version=version, outcome=Outcome.TERMINATED, now=system.clock.now())
    asked(queue)


@pytest.fixture
def leaving(connect):
    """Warned, and its group was looked at by a step of its termination."""
    queue = connect()
    assert queue.deliver(event("spot_interruption")) == []
    survey(read(I, queue.system.ports.claims), queue.system.ports, Freshness.WORK)
    asked(queue)
    return queue


def test_a_warning_asks_ec2_alone_where_the_name_of_the_group_selects_the_policy(connect):
    queue = connect(written=policies(a_policy()))
    queue.deliver(event("spot_interruption"))
    assert asked(queue) == (1, 0, 0)
    assert queue.system.claims.records[I].subject.state == "running"


def test_a_warning_asks_for_the_group_where_its_tags_count(connect):
    tagged = replace(a_policy(), selector=GroupSelector(groups=(GROUP,), tags={"team": "web"}))
    queue = connect(written=policies(tagged), groups=[a_group(GROUP, I)])
    queue.deliver(event("spot_interruption"))
    assert asked(queue) == (1, 1, 0)


def test_the_hook_of_an_instance_that_is_leaving_joins_without_a_question(leaving):
    assert leaving.deliver(event("asg_terminate")) == []
    assert asked(leaving) == (0, 0, 0)
    cause = leaving.system.claims.records[I].causes[-1]
    assert (cause.kind, cause.hook, cause.hook_ours) == (CauseKind.ASG_TERMINATE, "leeward-terminate", True)
    assert cause.deadline is not None
    assert leaving.system.kubernetes.asked["nodes"] == 1  # by the warning


def test_a_hook_that_the_record_does_not_know_is_looked_up(leaving):
    leaving.deliver(event("asg_terminate", detail__LifecycleHookName="another"))
    assert asked(leaving)[1:] == (1, 1)


def test_ec2s_word_that_it_ends_is_confirmed_once(leaving):
    leaving.system.instances.set_state(I, "shutting-down")
    leaving.deliver(state_change("shutting-down"))
    assert asked(leaving) == (1, 0, 0)
    assert leaving.system.claims.records[I].causes[-1].state == "shutting-down"
    leaving.deliver(state_change("terminated", "state-2"))
    assert asked(leaving) == (0, 0, 0)


def test_an_end_that_ec2_confirmed_for_a_message_is_not_confirmed_again_once_the_termination_is_closed(leaving):
    system = leaving.system
    system.instances.set_state(I, "shutting-down")
    leaving.deliver(state_change("shutting-down"))
    version = system.claims.records[I].version
    system.claims.close(I, version=version, outcome=Outcome.TERMINATED, now=system.clock.now())
    system.kubernetes.by_name.clear()
    asked(leaving)
    leaving.deliver(state_change("terminated", "state-2"))
    assert asked(leaving) == (0, 0, 0)
    assert system.claims.records[I].status is Status.CLOSED


@pytest.mark.parametrize("is_open", [True, False])
def test_a_termination_that_is_under_way_learns_that_ec2_takes_its_instance_after_its_policy_is_removed(
    leaving, is_open
):
    """Its hook is answered at once then, and not when the drain looks at the instance again."""
    system = leaving.system
    if not is_open:
        version = system.claims.records[I].version
        system.claims.close(I, version=version, outcome=Outcome.RETURNED_TO_SERVICE, now=system.clock.now())
    system.clusters.policies_of[CLUSTER] = policies(replace(a_policy(), selector=GroupSelector(groups=("another",))))
    system.instances.set_state(I, "shutting-down")
    before = len(system.claims.records[I].causes)
    assert leaving.deliver(state_change("shutting-down")) == []
    assert len(system.claims.records[I].causes) == before + is_open
    assert (system.claims.records[I].status is Status.OPEN) == is_open


@pytest.mark.parametrize("said", ["stopping", "stopped"])
def test_a_stop_is_looked_at_with_the_group_it_may_be_a_warm_pool(leaving, said):
    leaving.system.instances.set_state(I, said)
    leaving.deliver(state_change(said))
    assert asked(leaving)[:2] == (1, 1)


def test_the_last_word_about_an_instance_that_is_gone_costs_nothing(leaving):
    system = leaving.system
    closed(leaving, "terminated")
    system.kubernetes.by_name.clear()
    assert leaving.deliver(state_change("terminated")) == []
    assert asked(leaving) == (0, 0, 0)
    assert system.claims.records[I].status is Status.CLOSED


def test_of_one_that_was_last_seen_stopped_ec2_confirms_the_last_word(leaving):
    """It may have left its warm pool since."""
    closed(leaving, "stopped")
    leaving.system.instances.set_state(I, "running")
    assert leaving.deliver(state_change("terminated")) == ["m0"]
    assert asked(leaving) == (1, 0, 0)
    assert leaving.system.claims.records[I].status is Status.CLOSED


def test_an_unconfirmed_word_reopens_a_record_without_believing_it(leaving):
    """Its Node is still there: the termination that begins looks for itself."""
    system = leaving.system
    closed(leaving, "shutting-down")
    leaving.deliver(state_change("terminated"))
    reopened = system.claims.records[I]
    assert (reopened.status, reopened.subject.state, reopened.causes[-1].state) == (Status.OPEN, "", "")


def test_a_table_that_does_not_answer_leaves_it_to_aws(leaving):
    leaving.happens("asg_terminate")
    leaving.system.claims.fail("read_all", AwsUnavailableError("503"))
    assert leaving.deliver(event("asg_terminate")) == []
    assert asked(leaving) == (1, 1, 1)
