"""What follows an eviction, a taint and the loss of a node: in the model, over HTTP, and on a cluster that is given."""

import pytest

from leeward.model.node import Taint
from leeward.ports.kubernetes import EvictionRefusedError
from tests.contract.worlds.clusters import (
    a_budget,
    a_daemon_set,
    a_deployment,
    ready,
    there,
)

TAINT = Taint(key="leeward.dev/disrupted", effect="NoSchedule", value="manual")


def pod_on(world, name, node):
    """As the product reads it."""
    return next(pod for pod in world.api.pods_on(node) if pod.name == name)


def evict(world, name, node):
    world.api.evict(pod_on(world, name, node))


def test_a_budget_allows_one_eviction_at_a_time(world):
    a_deployment(world, replicas=2)
    a_budget(world)
    (first, here), (second, other) = sorted(ready(world, "web").items())
    for node in world.nodes:  # no successor comes up meanwhile
        world.api.taint(world.api.node(node), TAINT)
    evict(world, first, here)
    with pytest.raises(EvictionRefusedError) as refused:
        evict(world, second, other)
    assert (refused.value.budgets, refused.value.permanent) == ((f"{world.namespace}/web",), False)
    for node in world.nodes:
        world.api.untaint(world.api.node(node), TAINT)
    world.until(lambda: len(ready(world, "web")) == 2, "the successor is Ready")

    def allowed():
        return any(one.namespace == world.namespace and one.disruptions_allowed for one in world.api.budgets())

    world.until(allowed, "the budget allows one more")
    evict(world, second, other)
    assert second not in ready(world, "web")


def test_an_evicted_pod_comes_up_on_a_node_that_is_not_tainted(world):
    a_deployment(world)
    ((name, node),) = ready(world, "web").items()
    world.api.taint(world.api.node(node), TAINT)
    evict(world, name, node)
    world.until(lambda: there(world, name) is None and ready(world, "web"), "the successor alone")
    (successor,) = ready(world, "web").values()
    assert {node, successor} == set(world.nodes)


def test_a_mark_alone_moves_no_pod(world):
    a_deployment(world)
    before = ready(world, "web")
    (node,) = before.values()
    tainted = world.api.taint(world.api.node(node), TAINT)
    assert tainted.unschedulable
    a_deployment(world, "another")
    assert ready(world, "web") == before
    assert node not in ready(world, "another").values()


def test_a_node_that_is_untainted_takes_pods_again(world):
    for name in world.nodes:
        world.api.taint(world.api.node(name), TAINT)
    first, _ = world.nodes
    world.api.untaint(world.api.node(first), TAINT)
    a_deployment(world)
    assert set(ready(world, "web").values()) == {first}


def test_the_pod_of_a_daemon_set_that_tolerates_nothing_of_ours_comes_back_to_a_cordoned_node(world):
    a_daemon_set(world)
    node = world.nodes[0]
    world.api.taint(world.api.node(node), Taint(key=TAINT.key, effect="PreferNoSchedule", value="manual"))
    (old,) = (name for name, where in ready(world, "agent").items() if where == node)
    world.api.delete_pod(pod_on(world, old, node))
    world.until(lambda: node in ready(world, "agent").values(), "another one there")
    assert old not in ready(world, "agent")


def test_the_daemon_sets_are_known_by_their_pods_owner(world):
    a_daemon_set(world)
    assert f"{world.namespace}/agent" in world.api.daemon_sets()
    (agent,) = (pod for pod in world.api.pods_on(world.nodes[0]) if pod.namespace == world.namespace)
    assert (agent.owner.kind, agent.owner.name) == ("DaemonSet", "agent")


def test_a_pod_is_listed_as_leaving_through_its_grace_period(world):
    a_deployment(world)
    ((name, node),) = ready(world, "web").items()
    evict(world, name, node)
    leaving = pod_on(world, name, node)
    assert leaving.deletion is not None
    world.api.evict(leaving)
    world.until(lambda: there(world, name) is None, "it is gone")
    world.until(lambda: ready(world, "web"), "its successor is Ready")
    assert name not in {pod.name for pod in world.api.pods_on(node)}


def test_a_pod_that_is_leaving_takes_nothing_from_its_budget_twice(world):
    a_deployment(world, replicas=2)
    a_budget(world)
    (name, node), (other, place) = sorted(ready(world, "web").items())
    for _ in range(3):
        evict(world, name, node)
    kept = pod_on(world, other, place)
    assert kept.deletion is None
    assert kept.ready


def test_the_pods_of_a_node_that_is_gone_go_and_come_up_elsewhere(expendable_world):
    world = expendable_world
    a_deployment(world, replicas=2)
    before = ready(world, "web")
    node = sorted(before.values())[0]
    lost = {name for name, where in before.items() if where == node}
    world.api.delete_node(world.api.node(node))
    world.until(lambda: not lost & {pod["metadata"]["name"] for pod in world.pods()}, "its pods are gone")
    world.until(lambda: len(ready(world, "web")) == 2, "two are Ready again")
    assert node not in ready(world, "web").values()


def test_a_second_replica_is_ready_before_the_first_leaves_and_one_is_left_in_the_end(world):
    a_deployment(world)
    ((name, node),) = ready(world, "web").items()
    world.api.taint(world.api.node(node), TAINT)
    pod = pod_on(world, name, node)
    assert world.api.scale(world.api.deployment_of(pod), 2)
    world.until(lambda: len(ready(world, "web")) == 2, "the second is Ready")
    evict(world, name, node)
    assert ready(world, "web")
    world.until(lambda: len(ready(world, "web")) == 2, "its successor is Ready")
    assert world.api.scale(world.api.deployment(world.namespace, "web"), 1)
    world.until(lambda: len(ready(world, "web")) == 1, "one is left")
    assert set(ready(world, "web").values()) == set(world.nodes) - {node}
