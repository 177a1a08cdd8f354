"""Many spot instances at once: pods leave before AWS is asked anything, and no call waits for what comes of it."""

from dataclasses import replace
from datetime import timedelta

import pytest

from leeward.errors import ClusterUnreachableError, ObjectGoneError, ThrottledError
from leeward.model.pod import Pod
from leeward.model.termination import Cause, CauseKind, Replacement
from leeward.termination import decisions, prompt_eviction
from leeward.termination.drain import drain
from leeward.termination.replacing import ask_for_replacement
from leeward.termination.run import Next, Run
from leeward.termination.steps import claim
from tests.fakes.builders import GROUP, a_group, a_node, a_subject, an_instance, our_hook, policies
from tests.fakes.clock import START
from tests.fakes.system import FakeSystem
from tests.state_machines.test_walks import a_budget
from tests.state_machines.walker import Walker

I = "i-0abc"  # noqa: E741  (the instance of every story)
MANY, FEW = decisions.SMALLEST_STORM, decisions.SMALLEST_STORM - 1
POLICY = policies().policies[0].name


def a_pod(name="web-1", grace=30):
    return Pod(namespace="shop", name=name, uid=f"uid-{name}", node=f"node-{I}", phase="Running", grace_seconds=grace)


def a_system(together, *pods, policy=POLICY, kind=CauseKind.SPOT_INTERRUPTION):
    system = FakeSystem(instances=[an_instance(I)], groups=[a_group(GROUP, I)], hooks=[our_hook()], nodes=[a_node(I)])
    for pod in pods:
        system.kubernetes.put_pod(pod)
    cause = Cause(id="event-1", kind=kind, at=START, deadline=START + timedelta(minutes=2), together=together)
    system.claims.claim(replace(a_subject(I), policy=policy), cause, START)
    return system


def a_run(step=Next.DRAIN):
    return Run(instance=I, attempt=1, version=1, next=step)


def calls_to_aws(system):
    return sum(system.instances.asked.values()) + sum(system.groups.asked.values())


def test_one_of_many_drains_at_once_and_one_of_few_asks_for_its_replacement_first():
    call = {"execution": f"{I}-1"}
    assert claim(a_run(), call, a_system(MANY, a_pod()).ports).next is Next.DRAIN
    assert claim(a_run(), call, a_system(FEW, a_pod()).ports).next is Next.REPLACE


def test_where_aws_throttles_the_claim_of_a_lone_one_goes_on():
    system = a_system(1, a_pod())
    system.instances.fail("describe", ThrottledError("RequestLimitExceeded"))
    assert claim(a_run(), {"execution": f"{I}-1"}, system.ports).next is Next.REPLACE


def test_maintenance_of_many_at_once_is_no_storm():
    system = a_system(MANY, a_pod(), kind=CauseKind.SCHEDULED_CHANGE)
    assert claim(a_run(), {"execution": f"{I}-1"}, system.ports).next is Next.REPLACE


def test_a_call_evicts_without_asking_aws_and_without_waiting():
    system = a_system(MANY, a_pod("web-1"), a_pod("web-2"))
    answer = drain(a_run(), {}, system.ports)
    assert sorted(system.kubernetes.done) == ["evict shop/web-1", "evict shop/web-2"]
    assert calls_to_aws(system) == 0
    assert system.clock.now() == START
    assert answer.next is Next.WAIT
    assert prompt_eviction.SHORTEST_PAUSE <= answer.pause < prompt_eviction.SHORTEST_PAUSE + prompt_eviction.SPREAD


@pytest.mark.parametrize(("count", "least", "below"), [(MANY, 8, 16), (500, 8, 16), (1000, 16, 32), (5000, 80, 160)])
def test_of_more_than_the_places_serve_each_waits_in_proportion(count, least, below):
    """Second turns of the first nodes leave the places to the first turns of the last ones."""
    cause = Cause(id="event-1", kind=CauseKind.SPOT_INTERRUPTION, at=START, together=count)
    record = a_system(MANY).claims.records[I]
    names = [f"i-{number:017x}" for number in range(200)]
    records = [replace(record, subject=replace(a_subject(name)), causes=(cause,)) for name in names]
    pauses = [prompt_eviction.storm_pause(record, START) for record in records]
    assert least <= min(pauses) <= max(pauses) < below


def test_one_of_few_is_worked_on_for_some_seconds_which_costs_less_than_transitions():
    system = a_system(FEW, a_pod(grace=5))
    system.claims.note(I, times={"terminating": START})
    system.claims.replaced(I, Replacement(reason="elsewhere"), START)
    drain(a_run(), {}, system.ports)
    assert system.clock.now() > START
    assert calls_to_aws(system) > 0


def test_a_node_that_was_not_tainted_yet_is_tainted_before_its_pods_leave():
    system = a_system(MANY, a_pod())
    drain(a_run(), {}, system.ports)
    assert system.kubernetes.node(f"node-{I}").tainted


def test_a_turn_that_was_not_written_down_is_made_again_without_harm():
    system = a_system(MANY, a_pod("web-1"), a_pod("web-2"))
    system.claims.fail("note", ThrottledError("ProvisionedThroughputExceeded"), times=1)
    assert drain(a_run(), {}, system.ports).next is Next.WAIT
    assert drain(a_run(), {}, system.ports).next is Next.WAIT
    assert sorted(set(system.kubernetes.done)) == ["evict shop/web-1", "evict shop/web-2"]
    assert len(system.kubernetes.done) == 2


def test_once_it_is_empty_aws_is_asked():
    system = a_system(MANY)
    assert drain(a_run(), {}, system.ports).next is Next.DRAINED
    assert calls_to_aws(system) > 0


def test_of_more_than_aws_serves_an_empty_one_waits_for_its_release_without_a_call():
    system = a_system(10_000)
    run = drain(a_run(), {}, system.ports)
    assert (run.next, run.pause, calls_to_aws(system)) == (Next.WAIT, 115, 0)
    system.clock.sleep(run.pause)
    assert drain(run, {}, system.ports).next is Next.DRAINED
    assert calls_to_aws(system) > 0


@pytest.mark.parametrize(
    ("count", "least", "most"), [(1, 1, 1), (decisions.SMALLEST_STORM, 20, 20), (100, 10, 30), (1000, 10, 30)]
)
def test_about_as_many_empty_ones_ask_aws_as_it_serves(count, least, most):
    cause = Cause(id="event-1", kind=CauseKind.SPOT_INTERRUPTION, at=START, together=count)
    record = a_system(MANY).claims.records[I]
    names = [f"i-{number:017x}" for number in range(count)]
    records = [replace(record, subject=replace(a_subject(name)), causes=(cause,)) for name in names]
    assert least <= sum(map(prompt_eviction.asks_when_empty, records)) <= most


def test_an_empty_one_that_was_not_counted_asks_aws():
    assert prompt_eviction.asks_when_empty(a_system(0).claims.records[I])


def test_when_the_instance_is_being_taken_aws_is_asked_although_pods_are_left():
    system = a_system(MANY, a_pod(grace=600))
    drain(a_run(), {}, system.ports)
    system.clock.sleep(116)
    drain(a_run(), {}, system.ports)
    assert calls_to_aws(system) > 0


def test_no_pause_goes_past_the_moment_of_release():
    record = a_system(MANY).claims.records[I]
    assert prompt_eviction.storm_pause(record, START + timedelta(seconds=112)) == 3
    assert prompt_eviction.storm_pause(record, START + timedelta(seconds=200)) == 1


def test_no_pause_goes_past_the_turn_of_more_pods():
    record = a_system(MANY).claims.records[I]
    pause = prompt_eviction.storm_pause(record, START)
    assert prompt_eviction.storm_pause(record, START, [START + timedelta(seconds=2.5)]) == 3
    assert prompt_eviction.storm_pause(record, START, [START, START + timedelta(seconds=90)]) == pause


def test_a_critical_pod_behind_a_blocked_one_gets_its_whole_grace():
    critical = replace(a_pod("dns", grace=20), priority_class="system-cluster-critical")
    held = replace(a_pod(), labels={"app": "web"})
    system = a_system(MANY, held, critical)
    system.kubernetes.budget_list = [a_budget(0)]
    run = a_run()
    while not system.kubernetes.done:
        run = drain(run, {}, system.ports)
        asked = system.clock.now()
        system.clock.sleep(run.pause)
    assert system.kubernetes.done == ["evict shop/dns"]
    assert timedelta(seconds=95) <= asked - START <= timedelta(seconds=97)


def test_an_api_server_that_does_not_answer_is_waited_for_and_asked_once():
    system = a_system(MANY, a_pod())
    system.kubernetes.down = ClusterUnreachableError("connection refused")
    answer = drain(a_run(), {}, system.ports)
    assert (answer.next, system.kubernetes.done) == (Next.WAIT, [])
    assert "waiting for an answer" in answer.why
    assert calls_to_aws(system) == 0


def test_a_node_that_is_deleted_meanwhile_is_looked_up_as_ever():
    system = a_system(MANY, a_pod())
    system.kubernetes.fail("taint", ObjectGoneError("node"), times=1)
    assert drain(a_run(), {}, system.ports).next in {Next.WAIT, Next.REPLACE}
    assert calls_to_aws(system) > 0


@pytest.mark.parametrize("policy", ["", "no longer there"])
def test_a_record_without_a_policy_of_today_is_drained_as_ever(policy):
    system = a_system(MANY, a_pod(grace=5), policy=policy)
    drain(a_run(), {}, system.ports)
    assert calls_to_aws(system) > 0
    assert system.kubernetes.done == ["evict shop/web-1"]


@pytest.mark.parametrize("step", [drain, ask_for_replacement])
def test_where_aws_throttles_the_pods_of_a_lone_spot_instance_leave_all_the_same(step):
    system = a_system(1, a_pod())
    system.instances.fail("describe", ThrottledError("RequestLimitExceeded"))
    with pytest.raises(ThrottledError):
        step(a_run(), {}, system.ports)
    assert system.kubernetes.done == ["evict shop/web-1"]


@pytest.mark.parametrize("step", [drain, ask_for_replacement])
def test_where_aws_throttles_pods_of_other_instances_wait(step):
    system = a_system(1, a_pod(), kind=CauseKind.SCHEDULED_CHANGE)
    system.instances.fail("describe", ThrottledError("RequestLimitExceeded"))
    with pytest.raises(ThrottledError):
        step(a_run(), {}, system.ports)
    assert system.kubernetes.done == []


def test_the_group_replaces_what_is_taken_in_a_storm():
    system = a_system(MANY, a_pod(grace=5))
    walk = Walker(system).run(I)
    assert walk.ended == "Terminated"
    assert "AskForReplacement" not in walk.states
    assert system.groups.launches == []
    assert system.groups.terminated == [(I, False)]


def test_a_replacement_that_would_come_too_late_is_left_to_the_group():
    system = a_system(1, a_pod())
    system.clock.sleep(61)
    assert "before another would be Ready" in ask_for_replacement(a_run(Next.REPLACE), {}, system.ports).why
    assert system.groups.launches == []
