"""Policies and the groups that they select."""

import json
from dataclasses import replace

import pytest

from leeward.doctor.finding import Check, State
from leeward.errors import AccessDeniedError, InvalidPolicyError
from leeward.model import well_known
from leeward.model.facts import FactKind, NamedHooks, Sheet, named_hooks_content
from leeward.model.group import LAUNCHING, GroupInstance, HookResult, LifecycleHook
from leeward.model.launch import LaunchSource, LaunchTemplateRef, Override
from leeward.model.launch_refusal import RefusalCause, fix_for
from leeward.model.pause import Pauses
from leeward.model.termination import Cause, CauseKind, Replacement
from tests.fakes.builders import (
    CLUSTER,
    GROUP,
    PUT_BY_SYNC,
    ZONE,
    a_group,
    a_policy,
    a_subject,
    our_hook,
    pausing,
    policies,
)
from tests.fakes.clock import START
from tests.fakes.disruptions import a_disruption
from tests.fakes.refusals import REFUSALS
from tests.unit.doctor.patient import NODE, Patient
from tests.unit.doctor.upgrades import an_upgrade

TAG = well_known.CLUSTER_TAG_PREFIX + CLUSTER


def test_policies_that_cannot_be_understood_are_reported_in_their_own_words(patient):
    said = "/leeward/blue/policies/00-web: spec.drain.timeout: found 1x, expected a duration\nand another"
    patient.system.clusters.fail("policies", InvalidPolicyError(said))
    found = patient.trouble(Check.POLICIES)
    assert (found.state, found.found) == (State.FAILED, said.replace("\n", "; "))


def test_policies_that_may_not_be_read(patient):
    patient.system.clusters.fail("policies", AccessDeniedError("ssm:GetParametersByPath on it: AccessDenied"))
    assert patient.trouble(Check.POLICIES).fix == "allow yourself ssm:GetParametersByPath"


def test_a_cluster_without_any_policy():
    patient = Patient(written=replace(policies(), policies=()))
    assert {found.check for found in patient.troubles() if found.state is State.FAILED} == {Check.POLICIES}


def test_the_only_policy_selects_nothing():
    found, left_over = Patient(written=policies(a_policy("web", "wbe-*"))).troubles()
    assert (found.check, found.state) == (Check.SELECTION, State.FAILED)
    assert "none of the cluster's 1 group matches wbe-*" in found.found
    assert (left_over.check, left_over.state) == (Check.HOOK, State.WARNING)


def test_a_launch_hook_that_a_removed_policy_named():
    patient = Patient(written=policies(a_policy("batch", "batch-*")))
    hooks = [LifecycleHook(name=name, group=GROUP, transition=LAUNCHING, heartbeat_timeout=600) for name in ("w", "x")]
    patient.system.groups.hooks_of[GROUP] = hooks
    named = named_hooks_content({GROUP: NamedHooks(names=("w",), at=START)})
    patient.system.catalog.keep(CLUSTER, FactKind.NAMED_HOOKS, Sheet(synced=START, content=named))
    found = [finding for finding in patient.troubles() if finding.check is Check.HOOK]
    assert [(finding.state, finding.found.split(" is on it")[0]) for finding in found] == [
        (State.WARNING, "launch hook w")
    ]
    assert "until 2026-03-04T10:00" in found[0].found, found


def test_one_idle_policy_beside_others_is_a_warning():
    found = Patient(written=policies(a_policy(), a_policy("batch", "batch-*"))).trouble(Check.SELECTION)
    assert (found.object, found.state) == ("policy batch of cluster blue", State.WARNING)


def test_a_policy_behind_one_that_takes_its_groups_is_reported_so():
    found = Patient(written=policies(a_policy("all", "*"), a_policy("web", "web-*"))).trouble(Check.SELECTION)
    assert (found.object, found.found) == (
        "policy web of cluster blue",
        "selects nothing: all stands before it and selects its groups",
    )


@pytest.mark.parametrize("switch", [{"paused": "all"}, {"interruption": False}])
def test_what_is_switched_off_is_a_warning_and_no_hook_is_missed(switch):
    patient = Patient(written=policies(a_policy(), **switch))
    patient.system.groups.hooks_of.clear()
    assert patient.trouble(Check.SWITCHES).state is State.WARNING


def test_a_pause_says_who_why_since_and_until_when():
    patient = Patient(written=pausing(policies(a_policy()), group=GROUP))
    found = patient.trouble(Check.SWITCHES)
    assert (found.object, found.state) == (f"group {GROUP}", State.WARNING)
    assert found.found == (
        "paused by arn:aws:iam::111122223333:user/ana since 2026-03-02T09:00:00Z without an end, "
        "no disruption, repair or upgrade begins: game day"
    )
    assert f"leeward resume --cluster {CLUSTER} --group {GROUP}" in found.fix


def test_a_switch_that_cannot_be_read_has_failed():
    written = replace(policies(a_policy()), pauses=Pauses(cluster=CLUSTER, unreadable="AccessDeniedError: denied"))
    assert Patient(written=written).trouble(Check.SWITCHES).state is State.FAILED


def test_a_group_without_our_hook(patient):
    patient.system.groups.hooks_of.clear()
    found = patient.trouble(Check.HOOK)
    assert (found.object, found.state) == (f"group {GROUP}", State.FAILED)
    assert "leeward-sync" in found.fix


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"heartbeat_timeout": 3600}, "waits 3600 s and then answers CONTINUE, expected 1728 s and CONTINUE"),
        ({"default": HookResult.ABANDON}, "waits 1728 s and then answers ABANDON, expected 1728 s and CONTINUE"),
        ({"metadata": None}, "not marked as ours"),
    ],
)
def test_a_hook_that_is_not_as_fn_sync_puts_it(patient, change, words):
    patient.system.groups.hooks_of[GROUP] = [replace(our_hook(heartbeat_timeout=PUT_BY_SYNC), **change)]
    found = patient.trouble(Check.HOOK)
    assert (found.state, words in found.found) == (State.FAILED, True)


def test_a_hook_that_the_policy_names_will_do():
    patient = Patient(written=policies(a_policy(hooks=["mine"])))
    patient.system.groups.hooks_of[GROUP] = [replace(our_hook(), name="mine", metadata=None)]
    assert patient.troubles() == []


def test_a_hook_that_notifies_our_queue_will_do(patient):
    queue = patient.deployment.functions["leeward-sync"].environment["QUEUE_ARN"]
    patient.system.groups.hooks_of[GROUP] = [replace(our_hook(), name="direct", metadata=None, target_arn=queue)]
    assert patient.troubles() == []


def test_a_hook_that_notifies_a_topic_of_the_settings_will_do(patient):
    topic = "arn:aws:sns:us-east-1:111122223333:hooks"
    for name, function in patient.deployment.functions.items():
        reported = {**function.environment, "HOOK_TOPICS": json.dumps([topic])}
        patient.deployment.functions[name] = replace(function, environment=reported)
    patient.system.groups.hooks_of[GROUP] = [replace(our_hook(), name="direct", metadata=None, target_arn=topic)]
    assert patient.troubles() == []


@pytest.mark.parametrize(("seconds", "warned"), [(120, True), (299, True), (300, False), (900, False)])
def test_a_launch_hook_of_ours_that_outlasts_no_failed_sweep(seconds, warned):
    patient = Patient(written=policies(a_policy(hooks=["joins"])))
    launch = replace(our_hook(transition=LAUNCHING, heartbeat_timeout=seconds), name="joins", metadata=None)
    patient.system.groups.hooks_of[GROUP].append(launch)
    found = [one for one in patient.findings() if one.object == f"group {GROUP}" and "joins waits" in one.found]
    assert [one.state for one in found] == ([State.WARNING] if warned else [])
    assert all("--lifecycle-hook-name joins --heartbeat-timeout 300" in one.fix for one in found)


@pytest.mark.parametrize(("seconds", "warned"), [(120, True), (299, True), (300, False)])
def test_a_terminate_hook_of_ours_that_outlasts_no_failed_sweep(seconds, warned):
    patient = Patient(written=policies(a_policy(hooks=["drains"])))
    drains = replace(our_hook(heartbeat_timeout=seconds), name="drains", metadata=None)
    patient.system.groups.hooks_of[GROUP].append(drains)
    found = [one for one in patient.findings() if one.object == f"group {GROUP}" and "drains waits" in one.found]
    assert [one.state for one in found] == ([State.WARNING] if warned else [])
    assert all("where its event is lost" in one.found for one in found)
    assert all("--lifecycle-hook-name drains --heartbeat-timeout 300" in one.fix for one in found)


def test_a_short_launch_hook_of_another_team_is_left_to_them(patient):
    theirs = replace(our_hook(transition=LAUNCHING, heartbeat_timeout=60), name="theirs", metadata=None)
    patient.system.groups.hooks_of[GROUP].append(theirs)
    assert not any("theirs" in one.found for one in patient.findings())


def test_our_hook_on_a_group_that_nothing_selects(patient):
    patient.system.groups.by_name["batch"] = a_group("batch")
    patient.system.groups.hooks_of["batch"] = [our_hook("batch")]
    found = patient.trouble(Check.HOOK)
    assert (found.object, found.state) == ("group batch", State.WARNING)


def test_hooks_that_may_not_be_read(patient):
    patient.system.groups.fail("hooks", AccessDeniedError("autoscaling:DescribeLifecycleHooks: denied"))
    assert patient.trouble(Check.HOOK).fix == "allow yourself autoscaling:DescribeLifecycleHooks"


def test_a_tag_with_a_value_that_our_roles_do_not_accept(patient):
    patient.has_group(tags={TAG: "true"})
    found = patient.trouble(Check.TAGS)
    assert (found.state, "'true', expected owned or shared" in found.found) == (State.FAILED, True)
    assert f"Key={TAG},Value=owned" in found.fix


def test_the_tag_of_a_managed_group_will_do(patient):
    patient.has_group(tags={"eks:cluster-name": CLUSTER})
    assert patient.troubles() == []


def test_a_group_without_a_tag_whose_instances_are_nodes_of_the_cluster(patient):
    patient.system.groups.by_name["web-b"] = replace(a_group("web-b", NODE), tags={})
    found = patient.trouble(Check.TAGS)
    assert (found.object, found.state) == ("group web-b", State.FAILED)
    assert f"nodes of {CLUSTER}" in found.found


def test_an_empty_group_without_a_tag_that_a_policy_names(patient):
    patient.system.groups.by_name["web-b"] = replace(a_group("web-b"), tags={})
    assert patient.trouble(Check.TAGS).state is State.WARNING


@pytest.mark.parametrize("tags", [{well_known.CLUSTER_TAG_PREFIX + "green": "owned"}, {"eks:cluster-name": "green"}])
def test_another_clusters_group_of_that_name_is_none_of_ours(patient, tags):
    patient.system.groups.by_name["web-b"] = replace(a_group("web-b", NODE), tags=tags)
    assert patient.troubles() == []


def test_a_group_of_strangers_is_not_claimed_for_a_policy_that_takes_all():
    patient = Patient(written=policies(a_policy("all", "*")))
    patient.system.groups.by_name["database"] = replace(a_group("database", "i-0other"), tags={})
    patient.system.groups.by_name["empty"] = replace(a_group("empty"), tags={})
    assert patient.troubles() == []


@pytest.mark.parametrize("process", ["Launch", "Terminate"])
def test_a_process_without_which_nothing_comes_or_goes(patient, process):
    patient.has_group(suspended=("AZRebalance", process))
    found = patient.trouble(Check.PROCESSES)
    assert found.found == f"suspended: {process}"
    assert found.fix.endswith(f"--auto-scaling-group-name {GROUP} --scaling-processes {process}")


def test_a_group_whose_sizes_are_no_instance_counts(patient):
    known = patient.system.groups.by_name
    known[GROUP] = replace(known[GROUP], capacity_units="its sizes count vcpu (DesiredCapacityType)")
    found = patient.trouble(Check.CAPACITY_UNITS)
    assert (found.state, "is neither upgraded nor disrupted" in found.found) == (State.WARNING, True)


def test_an_instance_refresh(patient):
    patient.system.service_limits.model.running[GROUP] = ("refresh-1",)
    found = patient.trouble(Check.INSTANCE_REFRESH)
    assert (found.state, "refresh-1" in found.found) == (State.WARNING, True)


def member(lifecycle):
    return (GroupInstance(id=NODE, zone=ZONE, lifecycle=lifecycle),)


def test_an_instance_that_our_hook_holds_without_a_termination(patient):
    patient.has_group(instances=member("Terminating:Wait"))
    found = patient.trouble(Check.LIFECYCLE)
    assert (found.object, found.state) == (f"instance {NODE}", State.WARNING)
    assert "leeward-terminate" in found.found
    assert "reconciler" in found.fix


def test_one_that_a_termination_of_ours_leads_out_is_in_order(patient):
    patient.has_group(instances=member("Terminating:Wait"))
    cause = Cause(id="event", kind=CauseKind.ASG_TERMINATE, at=START)
    patient.system.claims.claim(a_subject(NODE), cause, START)
    assert patient.troubles() == []


def test_one_that_another_owners_launch_hook_holds(patient):
    theirs = LifecycleHook(name="bake", group=GROUP, transition=LAUNCHING)
    patient.system.groups.hooks_of[GROUP].append(theirs)
    patient.has_group(instances=member("Pending:Wait"))
    found = patient.trouble(Check.LIFECYCLE)
    assert ("by bake" in found.found, "none of these hooks is ours" in found.fix) == (True, True)


def test_one_that_its_group_has_retained(patient):
    patient.has_group(instances=member("Terminating:Retained"), retains=True)
    patient.system.groups.hooks_of[GROUP] = [
        replace(our_hook(heartbeat_timeout=PUT_BY_SYNC), default=HookResult.ABANDON)
    ]
    assert "retained" in patient.trouble(Check.LIFECYCLE).found


class TestLaunches:
    """LaunchInstances refused in any way is a warning with its cause and the way out."""

    @pytest.mark.parametrize(("cause", "refusal"), REFUSALS.items())
    def test_as_a_termination_met_it(self, patient, cause, refusal):
        claims, cause_of = patient.system.claims, Cause(id="spot", kind=CauseKind.SPOT_INTERRUPTION, at=START)
        claims.claim(a_subject(NODE), cause_of, START)
        claims.replaced(NODE, Replacement(reason=refusal, refused=True), START)
        patient.system.executions.open.add(f"{NODE}-1")
        assert_reported(patient.trouble(Check.LAUNCHES), cause, refusal)

    @pytest.mark.parametrize(("cause", "refusal"), REFUSALS.items())
    def test_as_an_upgrade_met_it(self, patient, cause, refusal):
        record = replace(an_upgrade(began=START, execution="first"), refusal=refusal, ended=START)
        patient.system.upgrades.records[GROUP] = record
        assert_reported(patient.trouble(Check.LAUNCHES), cause, refusal)

    @pytest.mark.parametrize(("cause", "refusal"), REFUSALS.items())
    def test_as_a_disruption_run_met_it(self, patient, cause, refusal):
        patient.system.disruptions.records[CLUSTER] = a_disruption(refusals={GROUP: refusal}, ended=START)
        assert_reported(patient.trouble(Check.LAUNCHES), cause, refusal)

    def test_a_launch_configuration_is_known_beforehand(self, patient):
        patient.has_group(launch_template=False)
        assert_reported(patient.trouble(Check.LAUNCHES), RefusalCause.REFUSED, "launch configuration")


def assert_reported(found, cause, refusal):
    assert (found.state, found.object, found.fix) == (State.WARNING, f"group {GROUP}", fix_for(cause))
    assert cause.value in found.found
    assert refusal in found.found


TEMPLATE = LaunchSource(
    template=LaunchTemplateRef(id="lt-1", version="$Latest"),
    overrides=(Override(instance_type="m6g.large", template=LaunchTemplateRef(id="lt-2", version="1")),),
)


@pytest.mark.parametrize(
    ("tags", "fine"),
    [
        ({"kubernetes.io/cluster/blue": "owned"}, True),
        ({"kubernetes.io/cluster/blue": "shared"}, True),
        ({"eks:cluster-name": "blue"}, True),
        ({"kubernetes.io/cluster/blue": "true"}, False),
        ({"kubernetes.io/cluster/green": "owned"}, False),
        ({"aws:eks:cluster-name": "blue"}, False),  # no role has a condition on it
        ({}, False),
    ],
)
def test_a_launch_template_carries_the_tag_that_the_roles_ask_for(patient, tags, fine):
    patient.has_group(launch=TEMPLATE)
    patient.deployment.template_tags = {"lt-1": tags, "lt-2": {"kubernetes.io/cluster/blue": "owned"}}
    found = patient.troubles()
    assert bool(found) is not fine
    for one in found:
        assert (one.check, one.state, "lt-1" in one.object) == (Check.TEMPLATE_TAGS, State.WARNING, True)
        assert one.fix == ("aws ec2 create-tags --resources lt-1 --tags Key=kubernetes.io/cluster/blue,Value=owned")


def test_templates_of_single_types_are_named_too(patient):
    patient.has_group(launch=TEMPLATE)
    patient.deployment.template_tags = {"lt-1": {"eks:cluster-name": "blue"}}
    assert "lt-2" in patient.trouble(Check.TEMPLATE_TAGS).object


def test_tags_of_templates_that_may_not_be_read(patient):
    patient.deployment.fail("tags", AccessDeniedError("ec2:DescribeTags: not allowed"))
    assert patient.trouble(Check.TEMPLATE_TAGS).fix == "allow yourself ec2:DescribeTags"
