"""Worlds in which EKS has some of the groups: which, with what on them, and what owners and operators ask of them."""

from dataclasses import replace

import pytest

from leeward.model.group import HookResult
from leeward.ports.eks import ManagedState
from simulation.aws.hook_waits import Key
from simulation.case import Case
from simulation.disruption import change_template
from simulation.fault_rates import Faults
from simulation.features import Feature
from simulation.managed_fleet import ANSWERS_AFTER, HOOK, LOOKS_EVERY
from simulation.upgrade_targets import asked_target
from simulation.upgrades import Upgraders


def a_world(seed=3, nodes=12, features=(Feature.MANAGED,), **more):
    names = tuple(feature.value for feature in features)
    given = {"hours": 1, "per_hour": 0, "faults": Faults.none(), "arrivals": ()}
    return Case(seed=seed, nodes=nodes, features=names, **{**given, **more}).world()


def managed(world):
    return [group for group in world.fleet.groups.values() if world.system.managed_updates.of_group(group.name)]


def own(world, *, template):
    """A managed group with a launch template of its owner, or without."""
    described = world.system.managed_updates.of_group
    found = [one for one in managed(world) if (described(one.name).template is not None) is template]
    return found[0] if found else None


def world_with(*, template):
    return next((one, group) for seed in range(1, 40) if (group := own(one := a_world(seed), template=template)))


def empty(*, template):
    """A world without pods, in which nothing holds EKS, and one of its groups."""
    world, group = world_with(template=template)
    world._fleet_plan = replace(world._fleet_plan, workloads=())
    return world, group


def test_eks_has_some_groups_and_others_stay_self_managed():
    for seed in range(1, 12):
        world = a_world(seed)
        groups, selected = managed(world), [g for g in world.fleet.groups.values() if g.plan.selected]
        assert groups
        assert len(groups) < len(selected)
        assert all(group.plan.selected and group.described().nodegroup for group in groups)
        assert {HOOK in group.hooks for group in groups} == {True}


def test_eks_has_no_warm_pool_and_no_template_behind_an_alias():
    world = a_world(features=(Feature.MANAGED, Feature.WARM_POOL, Feature.ALIASES), nodes=30)
    assert all(not group.plan.reuses for group in managed(world))
    assert all(not group.template.images[0].startswith("resolve:ssm:") for group in managed(world))


def test_the_nodes_carry_eks_labels():
    world, group = world_with(template=False)
    world._populate()
    nodes = {node["metadata"]["name"]: node["metadata"]["labels"] for node in world.cluster.store.each("nodes")}
    labels = [nodes[member.node] for member in group.members.values()]
    assert {one["eks.amazonaws.com/nodegroup"] for one in labels} == {f"ng-{group.name}"}


def test_eks_answers_its_own_hook_once_it_has_drained():
    world, group = world_with(template=True)
    world._populate()
    member = next(iter(group.members.values()))
    key: Key = (group.name, HOOK, member.id)
    world.fleet.unhealthy(member)
    assert key in world.fleet.waiting
    world.timeline.run_until(world.timeline.now() + ANSWERS_AFTER + LOOKS_EVERY + 1)
    assert key not in world.fleet.waiting
    assert key not in world.fleet.timed_out


@pytest.mark.parametrize("template", [True, False])
def test_the_owner_of_a_managed_group_has_eks_update_it(template):
    world, group = empty(template=template)
    world._populate()
    change_template(world, list(world.fleet.groups).index(group.name))
    (update,) = world.system.managed_updates.updates.values()
    assert (update.by_others, update.asked[1], update.state) == (
        True,
        "2" if template else None,
        ManagedState.IN_PROGRESS,
    )
    change_template(world, list(world.fleet.groups).index(group.name))
    assert len(world.system.managed_updates.updates) == 1  # one at a time
    world.timeline.afterwards = world._after
    world.timeline.run_until(world.timeline.now() + 4 * 3600)
    assert update.ended is not None
    assert len({member.image for member in group.members.values()}) == 1


def test_operators_name_what_eks_can_have():
    world, group = world_with(template=False)
    assert asked_target(world, group, 1 << 4) == {"kubernetesVersion": "1.34"}
    assert asked_target(world, group, 1 << 5) == {}
    world, group = world_with(template=True)
    before = len(group.template.images)
    assert asked_target(world, group, 1 << 5) == {"launchTemplateVersion": "$Latest"}
    assert len(group.template.images) == before  # EKS' copy is EKS' own
    assert "ami" in asked_target(world, group, 1 << 4)


def test_requests_of_operators_are_remembered():
    world, group = world_with(template=True)
    world._populate()
    picks = (pick for pick in range(0, 1 << 12, 32) if Upgraders(world)._group(pick).name == group.name)
    Upgraders(world).start(next(picks))
    order = world.ordered[-1]
    assert (order.group, order.action, order.asked["group"]) == (group.name, "", group.name)


def roll(world, group):
    """EKS has begun an update of the group, and is at its scale-down phase."""
    world._populate()
    world.timeline.afterwards = world._after
    nodegroup = world.system.managed_updates.of_group(group.name)
    before = group.desired
    world.system.managed_updates.start_by_others(nodegroup)
    update = next(iter(world.system.managed_updates.updates.values()))
    for _ in range(20000):
        world.timeline.run_until(world.timeline.now() + 1)
        new = all(member.version == group.version for member in group.staying)
        if update.ended is not None or (group.version == "2" and new and group.desired > before + 1):
            break
    assert update.ended is None, "the world is too blocked for this test"
    return update, before


def test_eks_returns_to_the_size_that_the_group_had_when_the_update_began():
    world, group = empty(template=False)
    group.desired, group.maximum = group.desired + 1, group.maximum + 3
    maximum = group.maximum
    update, before = roll(world, group)
    world.timeline.run_until(world.timeline.now() + 3600)
    assert (update.state, group.desired, group.maximum) == (ManagedState.SUCCESSFUL, before, maximum)


def test_eks_ends_without_its_size_where_others_scale_up_while_it_scales_down():
    world, group = empty(template=False)
    update, before = roll(world, group)
    while update.ended is None and group.desired > before + 1:
        world.timeline.run_until(world.timeline.now() + 1)
    world.fleet.updated(group, group.desired + 2)
    world.timeline.run_until(world.timeline.now() + 60)
    assert (update.state, group.desired) == (ManagedState.SUCCESSFUL, before + 3)


def test_a_hook_of_eks_is_none_of_ours():
    world, group = world_with(template=True)
    assert not world.ours(HOOK, group.name)
    assert group.hooks[HOOK][1] is HookResult.CONTINUE
