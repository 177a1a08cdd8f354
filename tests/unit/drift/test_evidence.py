"""Differences that launches do not fix: by design of the group, by a script, by a rule of the account."""

from dataclasses import replace
from datetime import timedelta

import pytest

from leeward.disruption.annotations import changes_in
from leeward.disruption.command import MethodName
from leeward.disruption.plan import plan_disruption
from leeward.disruption.planning_state import PlanningState
from leeward.drift.detect import Remedy, all_drift, drift_of, wanted_launches
from leeward.drift.evidence import MOST_PROOFS, key_of
from leeward.drift.reasons import DriftReason, Field
from leeward.model.instance import LaunchAttributes
from leeward.model.launch import LaunchSettings, LaunchTemplateRef
from leeward.policy.document import DesiredNode, NodeRequirement
from tests.unit.disruption.fleet import NOON, a_fleet, a_policy, rules

IMAGE = "ami-2"
RENAMED = LaunchAttributes(tags={"Name": "web-10-0-1-7"})
NAMED = LaunchAttributes(tags={"Name": "web"})
HARDENED = LaunchAttributes(metadata={"HttpTokens": "required"})
OPEN = LaunchAttributes(metadata={"HttpTokens": "optional"})


def version(number):
    return LaunchTemplateRef(id="lt-web", version=str(number))


def launching(number=2, **launch):
    """A group that launches from this version of its template."""
    launch = LaunchSettings(template="lt-web", version=number, **{"image": IMAGE, **launch})
    return a_fleet(a_policy(disruption=rules())).group("web", launch=launch)


def member(fleet, name, number=2, *, image=IMAGE, age=timedelta(days=30), **rest):
    shown = {"image": image, "launched": NOON - age, **rest.pop("instance", {})}
    return fleet.node(name, template=version(number), instance=shown, **rest)


def remedies(fleet):
    return {one.node: one.remedy for one in all_drift(fleet.snapshot())}


def commands(fleet):
    return plan_disruption(fleet.snapshot(), only=MethodName.DRIFT).commands


def after_a_look(fleet, ago):
    """The planner has seen the present wanted values so long ago."""
    seen = replace(fleet.snapshot(), now=NOON - ago)
    return fleet.having(wanted_launches=wanted_launches(seen, all_drift(seen)))


@pytest.mark.parametrize(("have", "want"), [(RENAMED, NAMED), (HARDENED, OPEN)], ids=["renamed", "remediated"])
def test_a_difference_that_members_of_the_present_version_show_is_reported_and_not_rolled(have, want):
    fleet = launching(look=want)
    for name in ("n1", "n2", "n3"):
        member(fleet, name, instance={"look": have}).pod(f"p-{name}", name, cpu="1500m")
    assert set(remedies(fleet).values()) == {Remedy.NONE}
    assert commands(fleet) == ()
    (reason,) = drift_of(fleet.snapshot(), fleet.snapshot().node("n1")).reasons
    assert (reason.fixable, "n2 comes from lt-web version 2" in reason.proof) == (False, True)


def test_an_image_that_an_override_changes_without_a_new_version_rolls_the_group():
    fleet = launching(image="ami-3", overridden=True)
    for name in ("n1", "n2"):
        member(fleet, name)
    assert set(remedies(fleet).values()) == {Remedy.REPLACE}


def test_one_node_of_a_group_proves_it_as_well():
    assert remedies(member(launching(look=NAMED), "n1", instance={"look": RENAMED})) == {"n1": Remedy.NONE}


def test_a_change_of_one_node_alone_is_fixed_by_a_launch():
    fleet = member(launching(look=OPEN), "n1", instance={"look": HARDENED})
    member(fleet, "n2", instance={"look": OPEN})
    assert remedies(fleet) == {"n1": Remedy.REPLACE, "n2": Remedy.NONE}


def test_a_change_that_comes_to_each_node_some_time_after_its_launch_is_fixed_once():
    """A rule of the account finds the oldest node first, then the next one, and so on for ever."""
    fleet = member(launching(look=OPEN), "n1", instance={"look": HARDENED})
    member(fleet, "n2", instance={"look": OPEN})
    assert remedies(fleet)["n1"] is Remedy.REPLACE
    after_a_look(fleet, timedelta(hours=1))
    later = launching(look=OPEN).having(wanted_launches=fleet.rest["wanted_launches"])
    member(later, "n2", instance={"look": HARDENED})
    member(later, "new", instance={"look": OPEN}, age=timedelta(minutes=50))
    assert remedies(later) == {"n2": Remedy.NONE, "new": Remedy.NONE}
    (reason,) = drift_of(later.snapshot(), later.snapshot().node("n2")).reasons
    assert reason.proof.endswith("as i-n1 did before")


def test_an_instance_of_seconds_proves_nothing():
    """EC2 may not report all of it yet."""
    fleet = member(launching(look=NAMED), "n1", instance={"look": RENAMED}, age=timedelta(seconds=20))
    assert remedies(fleet) == {"n1": Remedy.REPLACE}


def test_a_new_version_rolls_members_of_the_old_one_and_a_difference_by_design_does_not_hold_them():
    """The image is fixable, the name is not: node after node is replaced, and then nothing."""
    fleet = launching(look=NAMED)
    for name in ("n1", "n2"):
        member(fleet, name, 1, image="ami-1", instance={"look": RENAMED})
    member(fleet, "n3", 2, instance={"look": RENAMED})
    assert remedies(fleet) == {"n1": Remedy.REPLACE, "n2": Remedy.REPLACE, "n3": Remedy.NONE}
    assert drift_of(fleet.snapshot(), fleet.snapshot().node("n1")).summary == "it has drifted in ami"


def test_a_tag_of_the_group_that_wins_over_the_templates_is_what_a_launch_brings():
    for propagated, remedy in ((frozenset({"Name"}), Remedy.NONE), (frozenset(), Remedy.REPLACE)):
        fields = {"tags": {"Name": "of-group"}, "propagated": propagated}
        fleet = launching(look=NAMED)
        fleet.groups["web"]["fields"] = fields
        member(fleet, "n1", instance={"look": LaunchAttributes(tags={"Name": "of-group"})})
        assert remedies(fleet) == {"n1": remedy}


def test_groups_that_another_owner_adds_are_no_drift_and_those_of_the_nodes_own_version_are():
    fleet = launching(look=LaunchAttributes(security_groups=("sg-1",)))
    look = LaunchAttributes(security_groups=("sg-1", "sg-2"))
    member(fleet, "n1", 1, instance={"look": look})
    assert remedies(fleet) == {"n1": Remedy.NONE}
    fleet.having(launched_from={"i-n1": LaunchSettings(look=look)})
    assert remedies(fleet) == {"n1": Remedy.REPLACE}


def test_an_alias_that_moves_rolls_members_of_the_same_version():
    fleet = launching(alias="resolve:ssm:/golden")
    for name in ("n1", "n2"):
        member(fleet, name, image="ami-1")
    assert set(remedies(fleet).values()) == {Remedy.REPLACE}
    after_a_look(fleet, timedelta(hours=2))
    assert set(remedies(fleet).values()) == {Remedy.REPLACE}, "launched before it moved"
    member(fleet, "n3", age=timedelta(hours=1))
    assert remedies(fleet) == {"n1": Remedy.REPLACE, "n2": Remedy.REPLACE, "n3": Remedy.NONE}


@pytest.mark.parametrize(
    ("age", "remedy"),
    [(timedelta(minutes=5), Remedy.NONE), (timedelta(minutes=55), Remedy.REPLACE)],
    ids=["long after", "just after the parameter moved"],
)
def test_a_replacement_that_drifts_in_the_field_it_was_launched_for_ends_the_method_for_its_group(age, remedy):
    fleet = launching(alias="resolve:ssm:/golden")
    member(fleet, "n1", image="ami-1")
    after_a_look(fleet, timedelta(hours=1))
    member(fleet, "new", image="ami-1", age=age)
    assert remedies(fleet) == {"n1": remedy, "new": remedy}


def test_proofs_outlive_the_node_that_showed_them_until_the_wanted_value_changes():
    fleet = launching(alias="resolve:ssm:/golden")
    member(fleet, "n1", image="ami-1")
    after_a_look(fleet, timedelta(hours=1))
    seen = member(fleet, "new", image="ami-1", age=timedelta(minutes=5)).snapshot()
    remembered = wanted_launches(seen, all_drift(seen))
    for image, remedy in ((IMAGE, Remedy.NONE), ("ami-3", Remedy.REPLACE)):
        later = launching(alias="resolve:ssm:/golden", image=image).having(wanted_launches=remembered)
        assert remedies(member(later, "n1", image="ami-1")) == {"n1": remedy}
    nothing_drifts = launching(alias="resolve:ssm:/golden").having(wanted_launches=remembered).snapshot()
    assert wanted_launches(nothing_drifts, ()) == remembered
    moved = wanted_launches(later.snapshot(), all_drift(later.snapshot()))["web"]
    assert (moved.proofs, moved.since) == ({}, NOON), "the new value counts from its first observation"


def test_a_label_that_a_launch_should_bring_and_does_not_is_never_rolled_for():
    """The group's tags promise it, its nodes do not carry it."""
    fleet = a_fleet(a_policy(disruption=rules(), node=DesiredNode(labels={"team": "a"})))
    fleet.group("web", labels={"team": "a"}, launch=LaunchSettings(image=IMAGE))
    member(fleet, "n1")
    assert remedies(fleet) == {"n1": Remedy.REPLACE}
    after_a_look(fleet, timedelta(hours=1))
    member(fleet, "new", age=timedelta(minutes=5))
    assert remedies(fleet) == {"n1": Remedy.UPGRADE, "new": Remedy.UPGRADE}


def test_changed_requirements_roll_the_nodes_that_do_not_meet_them():
    wanted = NodeRequirement(key="node.kubernetes.io/instance-type", operator="NotIn", values=("small",))
    fleet = launching()
    fleet.group("web", "large", launch=fleet.groups["web"]["launch"])
    for name in ("n1", "n2"):
        member(fleet, name, type="small")
    after_a_look(fleet, timedelta(hours=1))
    fleet.policies = (a_policy(disruption=rules(), requirements=(wanted,)),)
    assert set(remedies(fleet).values()) == {Remedy.REPLACE}


def test_what_cannot_be_read_changes_nothing_that_is_remembered():
    fleet = after_a_look(member(launching(), "n1"), timedelta(hours=1))
    before = fleet.rest["wanted_launches"]
    fleet.groups["web"]["launch"] = LaunchSettings(image="resolve:ssm:/golden")
    after = fleet.snapshot()
    assert wanted_launches(after, all_drift(after)) == before


def test_what_is_remembered_of_a_group_is_bounded():
    look = LaunchAttributes(tags={f"key-{number}": "a" for number in range(MOST_PROOFS + 5)})
    fleet = member(launching(look=look), "n1", instance={"look": LaunchAttributes(tags={})})
    seen = fleet.snapshot()
    assert len(wanted_launches(seen, all_drift(seen))["web"].proofs) == MOST_PROOFS
    assert key_of(DriftReason(field=Field.TAGS, have="", want="a=b")) == key_of(
        DriftReason(field=Field.TAGS, have="c", want="a=b")
    )


def test_a_node_carries_the_fields_that_launches_do_not_fix_until_they_are_in_order():
    fleet = member(launching(look=NAMED), "n1", instance={"look": RENAMED})
    (change,) = changes_in(PlanningState(fleet.snapshot()))
    assert (change.set["leeward.dev/drift-reasons"], change.set["leeward.dev/drift-not-fixable"]) == ("tags", "tags")
    fleet.nodes[0]["metadata"]["annotations"] = dict(change.set)
    assert not changes_in(PlanningState(fleet.snapshot()))
    fleet.instances["i-n1"]["fields"]["look"] = NAMED
    (change,) = changes_in(PlanningState(fleet.snapshot()))
    assert "leeward.dev/drift-not-fixable" in change.remove
