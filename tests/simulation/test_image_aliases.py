"""Worlds in which images are behind SSM parameters: which groups, what moves, and what our role may read."""

from random import Random

import pytest

from leeward.errors import AccessDeniedError
from leeward.model.launch import LaunchTemplateRef
from simulation.aws.templates import SimTemplates, template_of
from simulation.case import Case
from simulation.fault_rates import Faults
from simulation.features import Feature
from simulation.image_aliases import PUBLIC, VERSION, ImageAliases
from simulation.upgrade_targets import asked_target

FIRST, NEWER = "ami-00000000000000001", "ami-00000000000001000"


def a_world(seed=3):
    case = Case(seed=seed, hours=1, per_hour=0, nodes=9, faults=Faults.none(), features=(Feature.ALIASES.value,))
    return case.world()


def behind(world):
    return [group for group in world.fleet.groups.values() if group.template.images[0].startswith("resolve:ssm:")]


def test_some_groups_are_behind_a_parameter_of_their_own():
    for seed in range(1, 10):
        groups = behind(a_world(seed))
        assert groups
        assert {group.template.image("1") for group in groups} == {FIRST}
        assert len({group.template.images[0] for group in groups}) == len(groups)


def test_a_parameter_that_moves_changes_what_its_group_launches_and_no_other_group():
    world = a_world()
    world._populate()
    group = behind(world)[0]
    parameter = group.template.images[0].removeprefix("resolve:ssm:")
    before = world.launched_images
    world.system.templates.parameters[parameter] = NEWER
    assert {**before, group.name: NEWER} == world.launched_images
    assert {member.image for member in group.members.values()} == {FIRST}
    assert world.fleet.launch(group, group.plan.zones[0]).image == NEWER


def test_each_move_names_an_image_that_none_named_before():
    world = a_world()
    parameters = world.system.templates.parameters
    moves = ImageAliases(world, Random(1))
    seen = set(parameters.values())
    for _ in range(20):
        before = dict(parameters)
        moves.move()
        (moved,) = [name for name in parameters if parameters[name] != before[name]]
        assert parameters[moved] not in seen
        seen.add(parameters[moved])


def test_a_role_that_may_not_read_the_parameter_sees_its_name_and_launches_go_on():
    world = a_world()
    world._populate()
    group = behind(world)[0]
    launches, templates = world.system.ports.launches, world.system.templates
    ImageAliases(world, Random(1)).deny()
    assert launches.settings(group.described()).image == group.template.images[0]
    with pytest.raises(AccessDeniedError):
        templates.image_behind(PUBLIC["amd64"])
    assert world.fleet.launch(group, group.plan.zones[0]).image == FIRST
    world.timeline.run_until(world.timeline.now() + 901)
    assert launches.settings(group.described()).image == group.template.image("1")
    assert templates.image_behind(PUBLIC["amd64"]) == templates.parameters[PUBLIC["amd64"]]


def test_operators_name_ids_parameters_versions_of_kubernetes_and_versions_behind_another_parameter():
    world = a_world()
    group = behind(world)[0]
    assert asked_target(world, group, 1 << 4) == {"ami": "ami-00000000000000002"}
    assert asked_target(world, group, 1 << 4 | 1 << 10) == {"ami": PUBLIC["amd64"]}
    assert asked_target(world, group, 1 << 4 | 1 << 10 | 1 << 11) == {"kubernetesVersion": VERSION}
    assert asked_target(world, group, 1 << 5) == {"launchTemplateVersion": "$Latest"}
    assert group.template.images[1] == f"resolve:ssm:/golden/{group.name}/next"


def test_a_version_that_names_a_parameter_is_no_version_with_the_image_behind_it():
    """As the adapter finds it: the version names the parameter, which may move."""
    template = template_of("web")
    template.images[0], template.parameters = "resolve:ssm:/golden", {"/golden": FIRST}
    ref = LaunchTemplateRef(id=template.id, version="1")
    assert SimTemplates([template]).version_for(ref, FIRST, token="t").version == "2"
