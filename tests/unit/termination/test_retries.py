"""When a pod or a budget that has refused an eviction is asked again."""

from dataclasses import replace
from datetime import timedelta

import pytest

from leeward.termination.drain_plan import Eviction, PodRemoval
from leeward.termination.removals import Retries
from tests.fakes.clock import START
from tests.state_machines.test_walks import a_budget, a_pod

WEB = a_budget(0)


def eviction(name="web-1", **more):
    return Eviction(pod=a_pod(name, **more), wave=0, removal=PodRemoval.EVICT)


def after(seconds):
    return START + timedelta(seconds=seconds)


def refused(retries, at, one=None, release=None):
    retries.refused(one or eviction(), [WEB.key], [WEB], after(at), release)


def paused(retries, at, one=None):
    return retries.refused_with(one or eviction(), after(at)) != ()


def test_the_pause_of_a_budget_doubles_and_ends_at_eight_seconds():
    retries, at, pauses = Retries(), 0.0, []
    for _ in range(6):
        refused(retries, at)
        pause = next(seconds for seconds in range(1, 20) if not paused(retries, at + seconds))
        pauses.append(pause)
        at += pause
    assert pauses == [1, 2, 4, 8, 8, 8]


def test_a_budget_is_asked_about_one_pod_and_not_about_each():
    retries = Retries()
    refused(retries, 0)
    assert retries.refused_with(eviction("web-2"), after(0.5)) == ("pdb shop/web",)
    assert not paused(retries, 0.5, eviction("other", labels={"app": "other"}))


def test_a_budget_that_allows_an_eviction_is_asked_about_the_next_pod_at_once():
    retries = Retries()
    refused(retries, 0)
    refused(retries, 1)
    retries.allowed(eviction("web-2"))
    assert not paused(retries, 1)
    refused(retries, 1)
    assert not paused(retries, 2)


@pytest.mark.parametrize("left", [11, 5, 0])
def test_no_pause_grows_shortly_before_the_instance_is_released(left):
    retries = Retries()
    for at in (0, 1, 3):
        refused(retries, at, release=after(3 + left))
    assert not paused(retries, 4)


def test_a_pod_that_is_not_ready_waits_for_its_own_refusals_alone():
    broken = Eviction(pod=replace(a_pod("web-2"), ready=False), wave=0, removal=PodRemoval.EVICT)
    retries = Retries()
    refused(retries, 0)
    assert not paused(retries, 0.5, broken)
    refused(retries, 0.5, broken)
    assert paused(retries, 1, broken)


def test_many_pods_of_one_budget_that_are_refused_keep_its_pause_at_eight_seconds():
    broken = [replace(eviction(f"web-{n}"), pod=replace(a_pod(f"web-{n}"), ready=False)) for n in range(500)]
    retries = Retries()
    for one in broken:
        refused(retries, 0, one)
    assert paused(retries, 7)
    assert not paused(retries, 8)
