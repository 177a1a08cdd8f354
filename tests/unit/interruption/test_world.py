"""The place of an instance among what was looked up for a batch of messages."""

from leeward.interruption.world import MessageWorld
from tests.fakes.builders import CLUSTER, a_group, an_instance, policies

INSTANCE = "i-0abc"


def located(*groups, tagged=None, named=None):
    """Return the place; `tagged`: the group of its tag, `named`: the one that the message names."""
    world = MessageWorld(
        clusters=(CLUSTER,),
        policies={CLUSTER: policies()},
        instances={INSTANCE: an_instance(INSTANCE, group=tagged)},
        groups={group.name: group for group in groups},
    )
    return world.locate(INSTANCE, named)


def test_the_group_that_lists_an_instance_comes_before_the_one_that_its_tag_names():
    """A batch about both groups, just after the instance was attached to another one: EC2 shows the new tag later."""
    place = located(a_group("web-old"), a_group("web-new", INSTANCE), tagged="web-old")
    assert (place.group_name, place.lifecycle) == ("web-new", "InService")


def test_the_tag_decides_for_a_member_of_a_warm_pool():
    place = located(a_group("web-old"), tagged="web-old")
    assert (place.group_name, place.lifecycle) == ("web-old", None)


def test_a_lifecycle_action_names_its_group():
    place = located(a_group("web-old", INSTANCE), a_group("web-new"), tagged="web-old", named="web-new")
    assert place.group_name == "web-new"


def test_a_detached_instance_has_no_group():
    assert located(a_group("web-old")).group_name is None
