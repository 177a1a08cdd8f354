"""A policy that is removed, or narrowed, while a termination is under way: what has begun ends gracefully."""

import pytest

from leeward.model.facts import FactKind, NamedHooks, Sheet, named_hooks_content
from leeward.model.group import LifecycleHook
from leeward.model.termination import CauseKind
from tests.fakes.builders import CLUSTER, GROUP, a_policy, our_hook, policies
from tests.fakes.clock import START
from tests.state_machines.test_walks import I, a_budget, a_pod, a_system, claim
from tests.state_machines.walker import Walker

NAMED = LifecycleHook(name="short", group=GROUP, transition="autoscaling:EC2_INSTANCE_TERMINATING")
UNMARKED = LifecycleHook(name=our_hook().name, group=GROUP, transition="autoscaling:EC2_INSTANCE_TERMINATING")
LEFT = {"removed": policies(a_policy("other", "batch-*")), "narrowed": policies(a_policy("web", "web-of-another"))}


def removed_at(system, wanted, written):
    def act(state, _):
        if state == wanted:
            system.clusters.policies_of = dict.fromkeys(system.clusters.policies_of, written)

    return act


def answered(system):
    return [hook for _, hook, _, _ in system.groups.answered]


@pytest.mark.parametrize("state", ["AskForReplacement", "Settle", "Terminate", "AnswerHooks"])
@pytest.mark.parametrize("written", LEFT.values(), ids=list(LEFT))
def test_our_hook_is_answered_whenever_the_policy_is_removed(state, written):
    system = a_system(hooks=[our_hook()], pods=[a_pod()])
    claim(system, CauseKind.UPGRADE)
    assert Walker(system, before=removed_at(system, state, written)).run(I).ended == "Terminated"
    assert answered(system) == ["leeward-terminate"]
    assert system.kubernetes.done == ["evict shop/web-1"]


def test_a_hook_that_the_policy_named_is_answered_once_it_was_heartbeaten():
    system = a_system(hooks=[NAMED], pods=[a_pod()], budgets=[a_budget(0)])
    named = policies(a_policy(hooks=("short",)))
    system.clusters.policies_of = dict.fromkeys(system.clusters.policies_of, named)
    system.groups.begin_terminating(GROUP, I)
    claim(system, CauseKind.ASG_TERMINATE)
    walker = Walker(system)

    def removed(*_):
        if system.claims.records[I].heartbeats:
            system.clusters.policies_of = dict.fromkeys(system.clusters.policies_of, LEFT["removed"])
            system.kubernetes.set_allowed("shop/web", 1)

    walker.before = removed
    assert walker.run(I).ended == "Terminated"
    assert answered(system) == ["short"]


@pytest.mark.parametrize("kind", [CauseKind.SURPLUS, CauseKind.UPGRADE])
def test_a_hook_that_the_policy_named_is_answered_for_a_node_that_a_run_requests_later(kind):
    system = a_system(hooks=[NAMED], pods=[a_pod()])
    system.clusters.policies_of = dict.fromkeys(system.clusters.policies_of, LEFT["removed"])
    content = named_hooks_content({GROUP: NamedHooks(names=("short",), at=START)})
    system.catalog.keep(CLUSTER, FactKind.NAMED_HOOKS, Sheet(synced=START, content=content))
    claim(system, kind)
    assert Walker(system).run(I).ended == "Terminated"
    assert answered(system) == ["short"]


def test_a_hook_without_our_mark_is_left_to_its_owner():
    system = a_system(hooks=[UNMARKED], pods=[a_pod()])
    claim(system, CauseKind.UPGRADE)
    remove = removed_at(system, "AskForReplacement", LEFT["removed"])

    def act(state, data):
        remove(state, data)
        if system.groups.terminated:
            system.groups.complete(group=GROUP, hook=UNMARKED.name, instance=I, result="CONTINUE")

    Walker(system, before=act).run(I)
    assert len(answered(system)) == 1  # by its owner
