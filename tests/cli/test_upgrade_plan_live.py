"""`leeward upgrade plan --cluster`: the findings as offline, from the cluster and AWS; those of the last run."""

import json
import re
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from leeward.adapters import wiring
from leeward.errors import AccessDeniedError
from leeward.model import well_known
from leeward.model.image import Image
from leeward.model.launch import LaunchSettings, LaunchSource, LaunchTemplateRef
from leeward.model.pause import PauseRecord
from leeward.policy.document import GroupSelector, UpdatePolicy
from leeward.ports.kubernetes import Listed
from leeward.time_budget import TimeBudget
from leeward.upgrade.preflight.gather import run_preflight
from leeward.upgrade.run import UpgradeNext, UpgradeRun
from leeward.upgrade.start import take_lease
from leeward.upgrade.steps import STEPS
from tests.cli.snapshots.disruption import a_node as a_raw_node
from tests.cli.snapshots.disruption import a_pod as a_raw_pod
from tests.fakes.builders import a_group, a_pause, a_policy, an_instance, policies
from tests.fakes.system import FakeSystem

GROUP, CLUSTER = "web-a", "blue"
IMAGE = "ami-0123456789abcdef0"
EKS = "/aws/service/eks/optimized-ami/{version}/amazon-linux-2023/x86_64/standard/recommended/image_id"
OLD = LaunchTemplateRef(id=f"lt-{GROUP}", name=GROUP, version="1")


@pytest.fixture
def system(monkeypatch):
    group = a_group(GROUP, "i-n1", "i-n2")
    members = tuple(replace(one, type="m5.large", template=OLD) for one in group.instances)
    launch = LaunchSource(template=replace(OLD, version="2"))
    system = FakeSystem(
        instances=[an_instance(one.id, spot=False) for one in members],
        groups=[replace(group, instances=members, launch=launch)],
        written=policies(a_policy("web")),
    )
    system.templates.version_for(OLD, "ami-2", token="t")
    system.launches.by_group[GROUP] = LaunchSettings(image="ami-2", instance_type="m5.large")
    system.kubernetes.raw = {
        Listed.NODES: [a_raw_node("n1"), a_raw_node("n2")],
        Listed.PODS: [a_raw_pod("p1", "n1"), a_raw_pod("p2", "n2")],
    }
    monkeypatch.setattr(wiring, "command_line_ports", lambda cluster, region=None, account=None: system.ports)
    return system


@pytest.fixture
def plan(leeward, system):
    def run(*arguments, code=0):
        result = leeward("upgrade", "plan", GROUP, "--cluster", CLUSTER, "-o", "json", *arguments)
        assert (result.code, result.err) == (code, "")
        jsonschema.validate(result.json, json.loads(Path("docs/schema/upgrade-plan.json").read_text()))
        return result.json

    return run


def codes(found):
    return {one["code"] for one in found["findings"]}


def test_a_live_plan_has_waves_time_and_cost(plan, system):
    found = plan()
    assert sorted(node for wave in found["waves"] for node in wave) == ["n1", "n2"]
    assert found["durationSeconds"] > 0
    assert found["surgeCost"] > 0
    assert "TemplateIncomplete" not in codes(found)


def test_a_pause_of_the_cluster_or_the_group_stands_above_the_plan_and_of_another_group_it_does_not(leeward, system):
    pauses = (a_pause(), a_pause(group=GROUP, why="bad image"), a_pause(group="web-b"))
    system.pauses.write(PauseRecord(cluster=CLUSTER, pauses=pauses))
    lines = leeward("upgrade", "plan", GROUP, "--cluster", CLUSTER).out.splitlines()
    assert [line.startswith("PAUSED: ") for line in lines[:3]] == [True, True, False]
    assert lines[1].endswith("bad image")


def test_pods_that_nothing_can_host_on_the_new_template_are_found_live(plan, system):
    system.kubernetes.raw[Listed.PODS].append(a_raw_pod("large", "n1", cpu="3"))
    found = plan(code=1)
    assert codes(found) >= {"PodsFitNowhere"}
    assert plan("--override", "PodsFitNowhere")["findings"] == found["findings"]


def test_nodes_with_the_image_that_is_requested_are_new(plan, system):
    """EC2 makes no version for an image that the group's version has already."""
    members = system.groups.by_name[GROUP].instances
    new = replace(members[1], template=replace(OLD, version="2"))
    group = replace(system.groups.by_name[GROUP], instances=(members[0], new))
    system.groups.by_name[GROUP] = group
    image = "ami-0123456789abcdef0"
    system.launches.by_group[GROUP] = LaunchSettings(image=image, instance_type="m5.large")
    assert [node for wave in plan("--ami", image)["waves"] for node in wave] == ["n1"]


def test_a_version_that_does_not_exist_is_refused(leeward, system):
    system.launches.by_group.clear()
    result = leeward("upgrade", "plan", GROUP, "--cluster", CLUSTER, "--launch-template-version", "9")
    assert (result.code, f"found no version 9 of lt-{GROUP}" in result.err) == (2, True)


def test_a_zone_without_addresses_is_found_live(plan, system):
    network = system.network.by_id
    network.update({name: replace(subnet, free_ips=0) for name, subnet in network.items()})
    assert "ZoneWithoutAddresses" in codes(plan(code=1))


def test_what_runs_beside_is_found_live(plan, system):
    model = system.service_limits.model
    model.running[GROUP], model.actions[GROUP] = ("refresh-1",), ("nightly",)
    assert codes(plan(code=1)) >= {"InstanceRefreshRunning", "ScheduledActions"}


def test_versions_quota_and_architecture_are_judged_live(plan, system):
    model = system.service_limits.model
    model.versions[CLUSTER], model.left[False] = "1.30", 1
    model.known_images[IMAGE] = Image(id=IMAGE, architecture="arm64", owner="999988887777")
    system.templates.parameters[EKS.format(version="1.31")] = "ami-2"
    assert "KubeletNewer" in codes(plan("--kubernetes-version", "1.31", code=1))
    assert codes(plan("--ami", IMAGE, code=1)) >= {"ArchitectureMismatch", "InstanceQuota"}


@pytest.mark.parametrize(
    ("owner", "alias", "blocked"),
    [("999988887777", "", True), ("111122223333", "", False), ("602401143452", "amazon", False)],
)
def test_an_image_of_a_foreign_owner_blocks_unless_it_is_overridden(plan, system, owner, alias, blocked):
    system.service_limits.model.known_images[IMAGE] = Image(id=IMAGE, owner=owner, alias=alias)
    system.ports = replace(system.ports, origins=frozenset({("111122223333", "us-east-1")}))
    found = codes(plan("--ami", IMAGE, code=int(blocked)))
    assert ("ForeignImage" in found) == blocked


def test_an_image_that_ec2_does_not_return_is_named_and_blocks(plan, system):
    system.service_limits.model.deregistered.add(IMAGE)
    assert "ImageNotFound" in codes(plan("--ami", IMAGE, code=1))
    assert "ImageNotFound" not in codes(plan("--ami", "ami-00000000000000007"))


def test_the_surge_that_is_shown_is_the_growth_of_the_desired_size(leeward, system, monkeypatch):
    wide = replace(a_policy("web"), update=UpdatePolicy(max_unavailable=5))
    monkeypatch.setattr(system.clusters, "policies", lambda cluster: policies(wide))
    shown = leeward("upgrade", "plan", GROUP, "--cluster", CLUSTER).out
    above, first = map(
        int, re.search(r"^Surge: +at most (\d+) nodes? above the size, (\d+) launched", shown, re.M).groups()
    )
    before, during = map(int, re.search(r"^Desired size: +(\d+) -> (\d+) at most", shown, re.M).groups())
    assert first <= above == during - before


def test_the_fix_of_findings_that_are_alike_is_printed_once(leeward, system):
    for method in ("vcpus_left", "refreshes"):
        system.service_limits.fail(method, AccessDeniedError(f"{method}: not allowed"))
    shown = leeward("upgrade", "plan", GROUP, "--cluster", CLUSTER).out
    assert (shown.count("NotJudged "), shown.count("fix NotJudged,")) == (2, 1)


NO_PARAMETER = (
    ("--ami", "al2023@1.35", EKS.format(version="1.35")),
    ("--kubernetes-version", "1.35", EKS.format(version="1.35")),
    ("--ami", "/aws/service/eks/optimized-ami/typo", "/aws/service/eks/optimized-ami/typo"),
)


@pytest.mark.parametrize(("option", "value", "parameter"), NO_PARAMETER)
@pytest.mark.parametrize("action", [("plan",), ("start", "--yes")], ids=lambda words: words[0])
def test_a_target_whose_parameter_does_not_exist_is_refused_with_those_that_do(
    leeward, system, action, option, value, parameter
):
    refused = leeward.refuses("upgrade", action[0], GROUP, *action[1:], "--cluster", CLUSTER, option, value)
    assert f"{value}: found no SSM parameter {parameter}, expected an image that there is" in refused
    assert "aws ssm get-parameters-by-path --recursive --path /aws/service/eks/optimized-ami --query" in refused
    assert not system.upgrade_executions.started
    system.templates.parameters[parameter] = "ami-2"
    assert leeward("upgrade", "plan", GROUP, "--cluster", CLUSTER, option, value).code == 0


def test_an_image_that_eks_publishes_and_ec2_does_not_have_blocks(plan, system):
    system.templates.parameters[EKS.format(version="1.31")] = IMAGE
    assert "ImageNotFound" not in codes(plan("--ami", "al2023@1.31"))
    system.templates.missing.add(IMAGE)
    system.service_limits.model.deregistered.add(IMAGE)
    (finding,) = [one for one in plan("--ami", "al2023@1.31", code=1)["findings"] if one["code"] == "ImageNotFound"]
    assert finding["object"] == f"image {IMAGE}"


def test_a_parameter_that_a_start_refuses_is_not_planned(leeward, system):
    for action in (("plan",), ("start", "--yes")):
        words = ("upgrade", action[0], GROUP, *action[1:], "--cluster", CLUSTER, "--ami", "/golden/web")
        assert "expected one under /aws/service/eks/" in leeward.refuses(*words)


def test_a_parameter_that_may_not_be_read_is_not_judged(plan, system):
    system.templates.fail("image_behind", AccessDeniedError("ssm:GetParameter on /aws/service/eks: not allowed"))
    (finding,) = [one for one in plan("--ami", "al2023@1.31")["findings"] if one["code"] == "NotJudged"]
    assert "ssm:GetParameter" in finding["message"]


def test_what_may_not_be_read_is_reported_and_not_judged(plan, system):
    system.service_limits.fail("vcpus_left", AccessDeniedError("servicequotas:GetServiceQuota: not allowed"))
    (one,) = [one for one in plan()["findings"] if one["code"] == "NotJudged"]
    assert "servicequotas:GetServiceQuota" in one["message"]


def test_a_launch_configuration_is_a_finding_and_no_error(plan, system):
    group = system.groups.by_name[GROUP]
    system.groups.by_name[GROUP] = replace(group, launch=LaunchSource(configuration="old"))
    assert "NoLaunchTemplate" in codes(plan(code=1))


def test_a_group_that_no_policy_selects_is_blocked(plan, system, monkeypatch):
    others = policies(replace(a_policy("web"), selector=GroupSelector(groups=("other-*",))))
    monkeypatch.setattr(system.clusters, "policies", lambda cluster: others)
    assert "NotSelected" in codes(plan(code=1))


def test_more_than_one_target_is_refused(leeward, system):
    targets = ("--ami", "al2023@1.31", "--kubernetes-version", "1.31")
    result = leeward("upgrade", "plan", GROUP, "--cluster", CLUSTER, *targets)
    assert (result.code, "expected one of them at most" in result.err) == (2, True)


def test_a_group_that_is_not_there_is_named(leeward, system):
    result = leeward("upgrade", "plan", "absent", "--cluster", CLUSTER)
    assert (result.code, "'absent'" in result.err) == (2, True)


def begun(system, **asked):
    """The first two steps of the machine."""
    call = {"run": {"group": GROUP, **asked}, "execution": "manual"}
    run = take_lease(UpgradeRun(group=GROUP, execution="", next=UpgradeNext.CHECK), call, system.ports)
    return STEPS["check"](run, {}, system.ports)


def test_the_machine_finds_what_the_command_finds_and_keeps_it(plan, leeward, system):
    system.service_limits.model.running[GROUP] = ("refresh-1",)
    now = plan(code=1)
    blocked = begun(system)
    assert blocked.next is UpgradeNext.BLOCKED
    assert "InstanceRefreshRunning (group web-a)" in blocked.why
    system.service_limits.model.running.clear()
    assert plan("--recorded", code=1) == now
    assert "for execution manual" in leeward("upgrade", "plan", GROUP, "--cluster", CLUSTER, "--recorded").out


def test_what_was_overridden_then_has_passed(plan, system):
    system.service_limits.model.running[GROUP] = ("refresh-1",)
    assert begun(system, override=["InstanceRefreshRunning"]).next is UpgradeNext.PREPARE
    assert "InstanceRefreshRunning" in codes(plan("--recorded"))


def test_nothing_is_recorded_before_an_upgrade_has_begun(leeward, system):
    result = leeward("upgrade", "plan", GROUP, "--cluster", CLUSTER, "--recorded")
    assert (result.code, "expected one that has begun" in result.err) == (2, True)


def test_a_managed_group_is_planned_as_eks_rolls_it(plan, system):
    group = system.groups.by_name[GROUP]
    tags = {**group.tags, well_known.EKS_CLUSTER_TAGS[0]: CLUSTER, well_known.NODEGROUP_TAG: "ng"}
    system.groups.by_name[GROUP] = replace(group, tags=tags)
    system.managed_updates.model.know(CLUSTER, "ng", groups=(GROUP,), max_unavailable=2, strategy="MINIMAL")
    found = plan(code=1)
    assert (found["parallel"], found["surge"], found["strategy"]) == (2, 0, "MINIMAL")
    assert "ManagedParallelism" in codes(found)


def test_a_pre_flight_without_time_starts_and_says_what_it_has_not_tried(system):
    """Without the limit all pods fit; forty are more than one look at the clock."""
    pods = [a_raw_pod(f"p{number}", f"n{1 + number % 2}") for number in range(40)]
    for pod in pods:
        pod["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1m", "memory": "1Mi"}}
    system.kubernetes.raw[Listed.PODS] = pods
    begun(system)
    record, no_time = system.upgrades.read(GROUP), replace(system.ports, budget=TimeBudget.of(system.clock, 0))
    in_time, late = (run_preflight(record, ports) for ports in (system.ports, no_time))
    untried = [one.message for one in late.plan.findings if one not in in_time.plan.findings]
    assert untried == ["not every pod was tried on the new template: there was no time left"]
    assert (in_time.blocked, late.blocked) == ("", "")
    assert sorted(name for wave in late.plan.waves for name in wave) == ["n1", "n2"]
