"""Instances in Standby, in a warm pool or protected from scale-in are no members of an upgrade."""

from dataclasses import replace

import pytest

from leeward.model.group import GroupInstance
from leeward.policy.document import UpdatePolicy
from leeward.upgrade.members import Absence, UpgradeTarget, left_out, members
from leeward.upgrade.preflight.findings import Code
from leeward.upgrade.preflight.group_checks import check_group
from leeward.upgrade.record import ControlRequest, OpenLaunch
from leeward.upgrade.run import UpgradeNext
from leeward.upgrade.steps import STEPS
from leeward.upgrade.surge.sizes import Strategy
from leeward.upgrade.waves.drain_selection import starts
from tests.unit.upgrade.builders import NEW, NOON, a_group, a_node, a_policy, an_instance, an_upgrade, template
from tests.unit.upgrade.test_waits import NEW as NEW_ID
from tests.unit.upgrade.test_waits import OLD, RUN, a_rolling_group, draining
from tests.unit.upgrade.waves.test_early_starts import a_record

TARGET = UpgradeTarget(template=template(NEW))
STATES = {
    "Standby": Absence.STANDBY,
    "EnteringStandby": Absence.STANDBY,
    "Warmed:Running": Absence.WARM_POOL,
    "Warmed:Stopped": Absence.WARM_POOL,
}


def found(*instances, **group):
    there = a_group(*instances, **group)
    out = {one.instance.id: one.absence for one in left_out(there, {}, TARGET)}
    return [one.instance.id for one in members(there, {}, TARGET)], out


@pytest.mark.parametrize("lifecycle", STATES)
def test_an_instance_out_of_service_is_left_as_it_is(lifecycle):
    assert found(an_instance("n1", lifecycle=lifecycle)) == ([], {"i-n1": STATES[lifecycle]})


def test_an_instance_that_leaves_is_neither_a_member_nor_left_out():
    assert found(an_instance("n1", lifecycle="Terminating:Wait")) == ([], {})


def test_an_old_instance_protected_from_scale_in_is_left_as_it_is():
    assert found(replace(an_instance("n1"), protected=True)) == ([], {"i-n1": Absence.PROTECTED})


def test_a_new_instance_that_the_group_protects_by_default_serves_as_a_member():
    assert found(replace(an_instance("n1", version=NEW), protected=True)) == (["i-n1"], {})


def test_eks_replaces_protected_instances_of_its_node_groups_too():
    protected = replace(an_instance("n1"), protected=True)
    assert found(protected, tags={"eks:nodegroup-name": "ng"}) == (["i-n1"], {})


def test_protection_is_read_from_the_description_of_auto_scaling():
    raw = {"InstanceId": "i-1", "ProtectedFromScaleIn": True}
    assert GroupInstance.from_json(raw).protected
    assert not GroupInstance.from_json({"InstanceId": "i-1"}).protected


def left_out_group(*, maximum_unavailable=1):
    """One node to replace, one protected from scale-in, one in Standby."""
    nodes = [a_node(name) for name in ("n1", "n2", "n3")]
    there = (an_instance("n1"), replace(an_instance("n2"), protected=True), an_instance("n3", lifecycle="Standby"))
    update = UpdatePolicy(strategy="MINIMAL", max_unavailable=maximum_unavailable)
    return an_upgrade(*nodes, group={"instances": there, "desired": 2}, policy=a_policy(update))


def test_pre_flight_says_how_many_are_left_out_why_and_how_they_become_members():
    finding = next(one for one in check_group(left_out_group()) if one.code is Code.INSTANCES_LEFT_OUT)
    assert finding.message == ("2 of 3 instances left out: 1 protected from scale-in (i-n2); 1 in Standby (i-n3)")
    assert "exit-standby" in finding.fix
    assert "--no-protected-from-scale-in" in finding.fix


def test_a_protected_instance_is_not_counted_as_one_that_the_group_has_still_to_replace():
    record = replace(a_record(strategy=Strategy.MINIMAL, desired=2), began=NOON)
    assert [one.old for one in starts(left_out_group(), record)] == ["i-n1"]


def test_a_cordoned_node_that_was_put_into_standby_meanwhile_serves_again_at_the_end():
    system = a_rolling_group()
    draining(system)
    node = system.kubernetes.by_name[f"node-{OLD}"]
    system.kubernetes.cordon(node, "web-a", exclude=False)
    there = system.groups.by_name["web-a"]
    states = {OLD: "Standby", NEW_ID: "InService"}
    instances = tuple(replace(one, lifecycle=states[one.id]) for one in there.instances)
    system.groups.by_name["web-a"] = replace(there, instances=instances)
    assert STEPS["restore"](RUN, {}, system.ports).next is UpgradeNext.UPGRADED
    assert not system.kubernetes.by_name[f"node-{OLD}"].unschedulable


def test_an_upgrade_names_the_instances_that_it_leaves_on_their_old_version_when_it_ends():
    system = a_rolling_group()
    draining(system)
    there = system.groups.by_name["web-a"]
    states = {OLD: "Standby", NEW_ID: "InService"}
    instances = tuple(replace(one, lifecycle=states[one.id]) for one in there.instances)
    system.groups.by_name["web-a"] = replace(there, instances=instances)
    assert f"not upgraded: {OLD} in Standby" in STEPS["restore"](RUN, {}, system.ports).why


def test_no_protected_node_is_terminated_for_a_launch_that_no_old_node_is_left_to_pay():
    system = a_rolling_group()
    there = system.groups.by_name["web-a"]
    instances = tuple(replace(one, protected=True) for one in there.instances)
    system.groups.by_name["web-a"] = replace(there, instances=instances, desired=3)
    draining(system, control=ControlRequest.ABORT, ahead={"i-0ccc": OpenLaunch()})
    assert STEPS["undo"](RUN, {}, system.ports).next is UpgradeNext.WAIT
    assert not system.claims.records
