"""`leeward upgrade start|pause|resume|abort|rollback --cluster`: executions and wishes, said once or twice."""

import json
import re
from dataclasses import replace

import pytest

from leeward.adapters import wiring
from leeward.cli.upgrade.following import line_of
from leeward.cli.upgrade.status import group_status
from leeward.model import well_known
from leeward.model.launch import LaunchSource, LaunchTemplateRef
from leeward.upgrade.members import UpgradeTarget
from leeward.upgrade.record import ControlRequest, UpgradeRecord
from leeward.upgrade.surge.sizes import Strategy
from tests.fakes.builders import CLUSTER, GROUP, a_group, a_node, an_instance, policies
from tests.fakes.system import FakeSystem

TEMPLATE = LaunchTemplateRef(id=f"lt-{GROUP}", name=GROUP, version="1")


@pytest.fixture
def system(monkeypatch):
    group = replace(a_group(GROUP, "i-0abc"), launch=LaunchSource(template=TEMPLATE))
    found = FakeSystem(instances=[an_instance()], groups=[group], nodes=[a_node()])
    monkeypatch.setattr(wiring, "command_line_ports", lambda cluster, region=None, account=None: found.ports)
    return found


@pytest.fixture
def say(leeward, system):
    def run(*arguments):
        consent = ("--yes",) if arguments[0] in {"start", "abort", "rollback"} else ()
        result = leeward("upgrade", *arguments, *consent, "--cluster", CLUSTER, "-o", "json")
        assert result.code == 0, result.err
        return json.loads(result.out)

    return run


def a_record(system, **more):
    target = UpgradeTarget(template=replace(TEMPLATE, version="2"))
    record = UpgradeRecord(
        group=GROUP,
        cluster=CLUSTER,
        target=target,
        previous=UpgradeTarget(template=TEMPLATE),
        strategy=Strategy.DEFAULT,
        desired=1,
        maximum=10,
        began=system.clock.now(),
        attempt=1,
        execution=f"{GROUP}-1",
        **more,
    )
    system.upgrades.write(record)


def test_a_start_begins_an_execution_with_what_was_asked(say, system):
    assert say("start", GROUP, "--ami", "ami-0123456789abcdef0", "--force")["execution"] == f"{GROUP}-1"
    ((name, document),) = system.upgrade_executions.started
    assert name == f"{GROUP}-1"
    assert document == {"group": GROUP, "cluster": CLUSTER, "ami": "ami-0123456789abcdef0", "force": True}


def test_a_start_and_a_request_name_the_caller_for_the_notifications(say, system, monkeypatch):
    ana = replace(system.ports, caller="arn:aws:iam::111122223333:user/ana")
    monkeypatch.setattr(wiring, "command_line_ports", lambda cluster, region=None, account=None: ana)
    say("start", GROUP)
    ((_, document),) = system.upgrade_executions.started
    assert document["by"] == ana.caller
    a_record(system, requested_by="arn:aws:iam::111122223333:user/bob")
    system.upgrade_executions.open.add(f"{GROUP}-1")
    say("pause", GROUP)
    assert system.upgrades.read(GROUP).requested_by == ana.caller


def test_a_start_of_several_groups_names_those_that_follow(say, leeward, system):
    system.groups.by_name["batch"] = replace(system.groups.by_name[GROUP], name="batch")
    assert say("start", GROUP, "batch", "--override", "NotSelected")["said"] == "started, then batch"
    ((_, document),) = system.upgrade_executions.started
    assert document == {"group": GROUP, "cluster": CLUSTER, "then": ["batch"], "override": ["NotSelected"]}


def test_groups_that_follow_are_noted_where_the_first_runs_already(say, system):
    system.groups.by_name["batch"] = replace(system.groups.by_name[GROUP], name="batch")
    a_record(system)
    system.upgrade_executions.open.add(f"{GROUP}-1")
    assert say("start", GROUP, "batch")["said"] == "it runs already, then batch"
    assert system.upgrades.records[GROUP].then == ("batch",)


def test_a_group_twice_or_unknown_and_several_groups_for_a_wish_are_refused(leeward, system):
    for arguments, said in (
        (("start", GROUP, GROUP, "--yes"), "each of them once"),
        (("start", GROUP, "web-b", "--yes"), "found no group 'web-b', expected one of the cluster's groups: web-a"),
        (("pause", GROUP, "batch"), "found unknown arguments: batch, expected none"),
    ):
        result = leeward("upgrade", *arguments, "--cluster", CLUSTER)
        assert (result.code, said in result.err) == (2, True)


@pytest.mark.parametrize("command", [("start", "--yes"), ("abort", "--yes"), ("plan",), ("status",)])
def test_a_group_of_another_cluster_is_not_taken_for_its_namesake(leeward, system, command):
    a_record(system)
    system.groups.by_name[GROUP] = replace(a_group(GROUP, "i-0abc"), tags={"kubernetes.io/cluster/other": "owned"})
    result = leeward("upgrade", command[0], GROUP, *command[1:], "--cluster", CLUSTER)
    assert (result.code, f"found no group '{GROUP}'" in result.err) == (2, True)
    assert not system.upgrade_executions.started
    assert system.upgrades.read(GROUP).control is ControlRequest.RUN


def test_a_parameter_that_leeward_may_not_read_is_refused_with_the_way_out(leeward, system):
    parameter = "/golden/images/web"
    result = leeward("upgrade", "start", GROUP, "--ami", parameter, "--cluster", CLUSTER, "--yes")
    assert result.code == 2
    assert f"aws ssm get-parameter --name {parameter}" in result.err
    assert not system.upgrade_executions.started


def test_a_second_start_names_what_runs(say, system):
    a_record(system)
    system.upgrade_executions.open.add(f"{GROUP}-1")
    assert say("start", GROUP)["said"] == "it runs already"
    assert not system.upgrade_executions.started


def test_a_start_after_a_failure_takes_the_next_free_name(say, system):
    a_record(system, error="PodEvictionFailure: pods", ended=system.clock.now())
    system.upgrade_executions.closed |= {f"{GROUP}-1", f"{GROUP}-2"}
    assert say("start", GROUP)["execution"] == f"{GROUP}-3"


@pytest.mark.parametrize(
    ("action", "control"),
    [
        ("pause", ControlRequest.PAUSE),
        ("abort", ControlRequest.ABORT),
        ("rollback", ControlRequest.ROLLBACK),
        ("resume", ControlRequest.RUN),
    ],
)
def test_a_control_request_is_recorded_for_the_execution_that_runs_it(say, system, action, control):
    a_record(system)
    system.upgrade_executions.open.add(f"{GROUP}-1")
    assert say(action, GROUP) == say(action, GROUP), "said twice it is the same"
    assert system.upgrades.records[GROUP].control is control
    assert not system.upgrade_executions.started


def test_a_pause_of_a_managed_group_says_that_eks_goes_on(say, system):
    a_record(system)
    record = system.upgrades.records[GROUP]
    system.upgrades.records[GROUP] = replace(record, target=UpgradeTarget(nodegroup="ng"), update="update-1")
    system.upgrade_executions.open.add(f"{GROUP}-1")
    assert "EKS cannot pause an update" in say("pause", GROUP)["said"]


@pytest.mark.parametrize("action", ["abort", "rollback", "resume"])
def test_where_nothing_runs_an_execution_is_begun_for_it(say, system, action):
    a_record(system)
    system.upgrade_executions.closed.add(f"{GROUP}-1")
    assert say(action, GROUP)["execution"] == f"{GROUP}-2"


def test_a_wish_without_an_upgrade_is_refused(leeward, system):
    result = leeward("upgrade", "pause", GROUP, "--cluster", CLUSTER)
    assert result.code == 2
    assert "found none that was begun, expected one to pause" in result.err


def test_the_status_is_that_of_the_record_and_the_world(say, system):
    assert say("status", GROUP)["phase"] == "not-started"
    a_record(system, control=ControlRequest.PAUSE)
    found = say("status", GROUP)
    assert (found["phase"], found["nodes"]["old"]) == ("paused", 1)


def test_an_end_is_estimated_in_whole_seconds_while_there_is_one_to_come(leeward, system):
    a_record(system)
    system.upgrade_executions.open.add(f"{GROUP}-1")
    system.clock.advance(seconds=0.25)
    shown = leeward("upgrade", "status", GROUP, "--cluster", CLUSTER).out
    assert re.search(r"^Done at about: +20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ$", shown, re.MULTILINE), shown
    system.upgrades.write(replace(system.upgrades.read(GROUP), ended=system.clock.now()))
    assert "Done at" not in leeward("upgrade", "status", GROUP, "--cluster", CLUSTER).out


def test_right_after_the_start_the_status_names_the_execution_that_has_not_said_anything_yet(say, system):
    name = say("start", GROUP)["execution"]
    found = say("status", GROUP)
    assert (found["phase"], found["execution"]) == ("starting", name)


def test_after_an_upgrade_has_ended_the_next_one_is_starting_and_not_done(say, system):
    a_record(system, ended=system.clock.now())
    assert say("status", GROUP)["phase"] == "done"
    name = say("start", GROUP)["execution"]
    assert (say("status", GROUP)["phase"], name) == ("starting", f"{GROUP}-2")
    assert say("status", GROUP)["eta"] is None


def test_what_starts_counts_no_nodes_before_it_has_recorded_its_target(leeward, say, system):
    """By the group's present version every node would be a new one."""
    execution = say("start", GROUP)["execution"]
    shown = leeward("upgrade", "status", GROUP, "--cluster", CLUSTER).out
    assert shown.startswith(f"{GROUP}: starting\nExecution:   {execution}\nnext: ")
    assert line_of(group_status(GROUP, CLUSTER, system.ports)) == "starting"


def test_an_upgrade_without_an_execution_is_reported_as_stopped(say, system):
    a_record(system)
    found = say("status", GROUP)
    assert (found["phase"], found["execution"], found["eta"]) == ("stopped", None, None)


def test_a_snapshot_cannot_be_reported_anything(leeward, tmp_path):
    result = leeward("upgrade", "start", GROUP, "--snapshot", tmp_path)
    assert result.code == 2
    assert "it is live alone" in result.err


def test_without_a_cluster_nothing_is_requested(leeward):
    assert leeward.refuses("upgrade", "start", GROUP) == "upgrade start: found no --cluster, expected --cluster NAME"


def test_the_status_of_a_group_that_no_policy_selects_is_judged_by_the_defaults(say, system, monkeypatch):
    monkeypatch.setattr(system.clusters, "policies", lambda cluster: policies())
    assert say("status", GROUP)["phase"] == "not-started"


def test_the_status_of_a_managed_group_without_a_record_wants_eks_labels_on_new_nodes(say, system):
    group = system.groups.by_name[GROUP]
    members = tuple(replace(one, template=TEMPLATE) for one in group.instances)
    tags = {**group.tags, well_known.NODEGROUP_TAG: "ng"}
    system.groups.by_name[GROUP] = replace(group, tags=tags, instances=members)
    (missing,) = say("status", GROUP)["gate"]["missing"]
    assert "without the labels eks.amazonaws.com/nodegroup=ng" in missing


def test_a_managed_group_is_upgraded_by_the_state_machine_of_its_own(say, system):
    group = system.groups.by_name[GROUP]
    system.groups.by_name[GROUP] = replace(group, tags={**group.tags, well_known.NODEGROUP_TAG: "ng"})
    assert say("start", GROUP)["execution"] == f"{GROUP}-1"
    assert system.managed_upgrade_executions.started == [(f"{GROUP}-1", {"group": GROUP, "cluster": CLUSTER})]
    a_record(system)
    assert say("start", GROUP)["said"] == "it runs already"
    system.managed_upgrade_executions.open.clear()
    assert say("abort", GROUP)["execution"] == f"{GROUP}-2"
    assert not system.upgrade_executions.started
