"""Each rule about managed node groups finds what breaks it."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from leeward.model import well_known
from leeward.model.group import GroupInstance
from leeward.model.launch import LaunchSource, LaunchTemplateRef
from leeward.ports.eks import ManagedState
from leeward.upgrade.members import UpgradeTarget
from leeward.upgrade.record import ControlRequest, UpgradeRecord
from leeward.upgrade.surge.sizes import Strategy
from simulation.aws.managed import SimUpdate
from simulation.invariants import Checker, Rule
from simulation.ordered import Ordered
from tests.fakes.builders import GROUP, ZONE
from tests.simulation.view_stand_in import INSTANCE, World

MINE = {Rule.MANAGED, Rule.MANAGED_ASKED, Rule.MANAGED_DONE}
WEB = ("blue", "web")
COPY = LaunchTemplateRef(id="lt-eks", version="2")


def a_world(member="2"):
    """Group GROUP is node group `web`, whose one member is of that version of EKS' copy."""
    world = World()
    group = world.groups[GROUP]
    one = GroupInstance(id=INSTANCE, zone=ZONE, lifecycle="InService", template=replace(COPY, version=member))
    tags = {**group.tags, well_known.EKS_CLUSTER_TAGS[0]: "blue", well_known.NODEGROUP_TAG: "web"}
    world.groups = {GROUP: replace(group, tags=tags, instances=(one,), launch=LaunchSource(template=COPY))}
    return world


def broken(world):
    return sorted({one.rule for one in Checker().after_event(world)} & MINE)


def updated(world, *asked, state=ManagedState.SUCCESSFUL, **more):
    number = len(world.updates) + 1
    update = SimUpdate(id=f"update-{number}", nodegroup=WEB, asked=(*asked, None, None, False)[:3], state=state, **more)
    world.updates[update.id] = update
    return world


def ordered(world, **asked):
    world.ordered.append(Ordered(at=world.now, group=GROUP, asked=asked, latest=3))
    return world


def ended(world, **more):
    now = datetime.fromtimestamp(world.now, UTC)
    given = {
        "desired": 1,
        "maximum": 10,
        "strategy": Strategy.DEFAULT,
        "target": UpgradeTarget(nodegroup="web"),
        "version": 1,
    }
    world.upgrades = {GROUP: UpgradeRecord(group=GROUP, began=now, ended=now, **{**given, **more})}
    return world


def test_a_size_that_we_have_changed_is_found_and_only_of_a_managed_group():
    world = a_world()
    world.written.append((GROUP, "MaxSize 11"))
    assert broken(world) == [Rule.MANAGED]
    world.groups[GROUP] = replace(world.groups[GROUP], tags={})
    assert broken(world) == []


@pytest.mark.parametrize(
    ("asked", "order", "found"),
    [
        ((None, "3"), {"launchTemplateVersion": "$Latest"}, []),
        ((None, "2"), {"launchTemplateVersion": "$Latest"}, [Rule.MANAGED_ASKED]),
        ((None, "2"), {"launchTemplateVersion": "2"}, []),
        ((None, "1"), {"launchTemplateVersion": "2"}, [Rule.MANAGED_ASKED]),
        ((None, "1"), {"action": "rollback"}, []),
        ((None, "2"), {"ami": "ami-b"}, []),
        ((None, "3"), {"ami": "ami-b"}, [Rule.MANAGED_ASKED]),
        (("1.34", None), {"kubernetesVersion": "1.34"}, []),
        (("1.34", None), {}, [Rule.MANAGED_ASKED]),
        ((None, None, True), {}, [Rule.MANAGED_ASKED]),
        ((None, None, True), {"force": True}, []),
    ],
)
def test_an_update_for_which_no_operator_has_asked_is_found(asked, order, found):
    world = ordered(updated(a_world(), *asked), **order)
    world.own_images = {"web": ("ami-a", "ami-b", "ami-c")}
    assert broken(world) == found


def test_an_update_by_force_is_in_order_where_the_policy_says_so_and_where_others_have_started_it():
    world = ordered(updated(a_world(), None, None, True))
    forcing = tuple(replace(one, drain=replace(one.drain, force=True)) for one in world.policies.policies)
    assert broken(world) == [Rule.MANAGED_ASKED]
    assert broken(ordered(updated(a_world(), None, None, True, by_others=True))) == []
    world.policies = replace(world.policies, policies=forcing)
    assert broken(world) == []


@pytest.mark.parametrize("state", [ManagedState.IN_PROGRESS, ManagedState.FAILED])
def test_an_upgrade_that_says_that_it_is_done_before_eks_is_found(state):
    assert broken(ended(updated(a_world(), state=state))) == [Rule.MANAGED_DONE]
    assert broken(ended(a_world())) == [Rule.MANAGED_DONE]  # EKS was never asked


def test_a_member_of_another_version_is_found_unless_others_update_the_group_next():
    world = ended(updated(a_world(member="1")))
    assert broken(world) == [Rule.MANAGED_DONE]
    updated(world, state=ManagedState.IN_PROGRESS, by_others=True)
    assert broken(world) == []


@pytest.mark.parametrize("more", [{"error": "PodEvictionFailure"}, {"control": ControlRequest.ABORT}])
def test_an_upgrade_that_says_failed_or_aborted_claims_nothing(more):
    assert broken(ended(updated(a_world(member="1"), state=ManagedState.FAILED), **more)) == []


def test_an_upgrade_that_is_done_breaks_nothing():
    assert broken(ended(updated(a_world()))) == []


def test_a_node_that_was_in_standby_during_the_update_is_none_of_it():
    world = ended(ordered(updated(a_world("1"), None, "2", began=100.0), launchTemplateVersion="2"))
    world.back_in_service = {INSTANCE: 200.0}
    assert broken(world) == []


def test_a_node_that_was_back_from_standby_before_the_update_belongs_to_it():
    world = ended(ordered(updated(a_world("1"), None, "2", began=100.0), launchTemplateVersion="2"))
    world.back_in_service = {INSTANCE: 50.0}
    assert broken(world) == [Rule.MANAGED_DONE]
