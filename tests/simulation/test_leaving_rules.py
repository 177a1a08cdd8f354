"""Targets of load balancers, volumes, second replicas: each rule is broken once, and kept in the next test."""

from dataclasses import replace
from datetime import timedelta

import pytest

from leeward.model import well_known
from leeward.model.group import HookResult
from leeward.policy.document import DrainPolicy
from local.cluster.patches import PatchType
from local.cluster.resources import BY_KIND
from simulation.asked import Kind
from simulation.invariants import Checker, Rule
from simulation.leaving_rules import exclusions, replicas
from tests.fakes.builders import GROUP, a_policy, policies
from tests.fakes.clock import START
from tests.simulation.view_stand_in import INSTANCE, NODE, TAINT, World, a_record, rules

HOOK = "leeward-terminate"


@pytest.fixture
def world():
    return World()


def draining(world, *, seconds_ago=10, drain=None, spot=False):
    world.policies = policies(replace(a_policy(), drain=drain or DrainPolicy()))
    world.records[INSTANCE] = a_record(at=START)
    world.work(seconds_ago=seconds_ago)
    if spot:
        world.ask(Kind.SPOT, takes=world.now + 120)


def evict(world, name="web-1"):
    (pod,) = [pod for pod in world.pods(name) if pod.name == name]
    world.api.evict(pod)


class TestInService:
    def test_an_eviction_from_a_node_that_is_still_a_target_is_reported(self, world):
        draining(world)
        world.balanced[INSTANCE] = "healthy"
        evict(world)
        (violation,) = Checker().after_event(world)
        assert violation.rule is Rule.IN_SERVICE
        assert violation.text == f"default/web-1 evicted, {INSTANCE} is a healthy target"

    @pytest.mark.parametrize(("seconds", "found"), [(59, []), (61, [Rule.IN_SERVICE])])
    def test_a_step_whose_execution_was_stopped_goes_by_the_time_that_it_had(self, world, seconds, found):
        draining(world)
        world.rested[INSTANCE] = world.now - seconds
        world.balanced[INSTANCE] = "healthy"
        evict(world)
        assert rules(Checker().after_event(world)) == found

    def test_one_that_drains_is_a_target_still(self, world):
        draining(world)
        world.balanced[INSTANCE] = "draining"
        evict(world)
        assert rules(Checker().after_event(world)) == [Rule.IN_SERVICE]

    @pytest.mark.parametrize(
        "changes",
        [
            {"seconds_ago": 301},
            {"spot": True},
            {"drain": DrainPolicy(deregistration_timeout=timedelta(0))},
            {"drain": DrainPolicy(timeout=timedelta(seconds=10))},
        ],
    )
    def test_without_time_or_by_policy_it_is_evicted_all_the_same(self, world, changes):
        draining(world, **changes)
        world.balanced[INSTANCE] = "healthy"
        evict(world)
        assert Checker().after_event(world) == []

    def test_a_target_that_comes_back_later_is_anothers_doing(self, world):
        checker = Checker()
        draining(world)
        evict(world)
        assert checker.after_event(world) == []
        world.balanced[INSTANCE] = "healthy"
        evict(world, "web-2")
        assert checker.after_event(world) == []

    def test_the_next_attempt_has_to_wait_anew(self, world):
        checker = Checker()
        draining(world)
        evict(world)
        assert checker.after_event(world) == []
        world.clock.sleep(5)
        draining(world, seconds_ago=1)
        world.balanced[INSTANCE] = "healthy"
        evict(world, "web-2")
        assert rules(checker.after_event(world)) == [Rule.IN_SERVICE]

    def test_a_date_that_has_passed_hurries_no_later_drain(self, world):
        draining(world)
        world.ask(Kind.MAINTENANCE, at=world.now - 9000, takes=world.now - 3600)
        world.balanced[INSTANCE] = "healthy"
        evict(world)
        assert rules(Checker().after_event(world)) == [Rule.IN_SERVICE]

    @pytest.mark.parametrize(("default", "found"), [("CONTINUE", [Rule.IN_SERVICE]), ("ABANDON", [])])
    def test_another_teams_hook_hurries_only_where_it_ends_the_instance(self, world, default, found):
        draining(world, seconds_ago=70)
        world.hold()
        world.hold("theirs", seconds_ago=70, timeout=120, default=HookResult(default))
        world.balanced[INSTANCE] = "healthy"
        evict(world)
        assert rules(Checker().after_event(world)) == found


def attach(world):
    spec = {"attacher": "ebs.csi.aws.com", "nodeName": NODE, "source": {"persistentVolumeName": "pv-1"}}
    volume = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}
    world.cluster.create("persistentvolumes", {"metadata": {"name": "pv-1"}, "spec": volume})
    world.cluster.create("volumeattachments", {"metadata": {"name": "csi-1"}, "spec": spec})


def drained(world, checker, **how):
    """Its last pod has been evicted and has left."""
    draining(world, **how)
    evict(world)
    attach(world)
    assert checker.after_event(world) == []
    world.clock.sleep(60)
    world.cluster.step(world.now)


class TestVolumes:
    def test_an_instance_that_ends_with_an_unattached_volume_is_reported(self, world):
        checker = Checker()
        drained(world, checker)
        world.terminations.append(INSTANCE)
        found = checker.after_event(world)
        assert rules(found) == [Rule.VOLUMES]
        assert found[0].text == f"{INSTANCE} with pv-1"

    def test_an_answered_hook_ends_it_as_well(self, world):
        checker = Checker()
        drained(world, checker)
        world.completed_hooks.append((GROUP, HOOK, INSTANCE, True))
        assert rules(checker.after_event(world)) == [Rule.VOLUMES]

    @pytest.mark.parametrize("seconds", [361, 1000])
    def test_after_the_policys_time_it_ends_all_the_same(self, world, seconds):
        checker = Checker()
        drained(world, checker)
        world.clock.sleep(seconds)
        world.terminations.append(INSTANCE)
        assert checker.after_event(world) == []

    def test_a_spot_instance_is_not_held(self, world):
        checker = Checker()
        drained(world, checker, spot=True)
        world.terminations.append(INSTANCE)
        assert checker.after_event(world) == []


class TestSettled:
    @pytest.mark.parametrize(
        ("settle", "ports", "seconds", "reported"),
        [
            (timedelta(seconds=60), (), 50, True),
            (timedelta(seconds=60), (), 61, False),
            (None, (), 0, False),
            (None, ({"port": 80, "nodePort": 30080},), 50, True),
            (None, ({"port": 80, "nodePort": 30080},), 61, False),
        ],
    )
    def test_a_node_that_something_may_target_stays_for_its_settle_time(self, world, settle, ports, seconds, reported):
        checker = Checker()
        draining(world, drain=DrainPolicy(settle=settle))
        service = {"metadata": {"name": "edge", "namespace": "default"}, "spec": {"type": "NodePort", "ports": ports}}
        world.cluster.create("services", {"apiVersion": "v1", "kind": "Service", **service}, "default")
        evict(world)
        assert checker.after_event(world) == []
        world.clock.sleep(seconds)
        world.terminations.append(INSTANCE)
        assert rules(checker.after_event(world)) == ([Rule.SETTLED] if reported else [])

    def test_a_spot_instance_does_not_wait(self, world):
        checker = Checker()
        draining(world, spot=True)
        evict(world)
        checker.after_event(world)
        world.terminations.append(INSTANCE)
        assert checker.after_event(world) == []


class TestAtTheEnd:
    def test_a_node_that_serves_again_and_is_kept_out_by_us_is_reported(self, world):
        world.api.taint(world.api.node(NODE), TAINT, exclude=True)
        assert list(exclusions(world)) == []
        world.cluster.patch("nodes", NODE, {"spec": {"taints": None, "unschedulable": None}}, kind=PatchType.MERGE)
        assert rules(Checker().at_the_end(world)) == [Rule.EXCLUDED]
        assert list(exclusions(world)) == [NODE]

    def test_a_label_of_another_owner_is_theirs(self, world):
        world.api.label(world.api.node(NODE), {well_known.EXCLUDE_LABEL: "mine"})
        assert list(exclusions(world)) == []

    def test_replicas_that_were_not_put_back_are_reported_unless_a_termination_still_needs_them(self, world):
        labels = {"app": "web"}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "i"}]}}
        spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
        raw = {"metadata": {"name": "web"}, "spec": spec}
        world.cluster.create(BY_KIND["Deployment"].plural, raw)
        world.replicas["default/web"] = 1
        assert rules(Checker().at_the_end(world)) == [Rule.REPLICAS]
        assert list(replicas(world)) == ["default/web has 2, its owner wants 1"]
        world.records[INSTANCE] = a_record()
        assert list(replicas(world)) != []
        world.pods("web-1")
        assert list(replicas(world)) == []
