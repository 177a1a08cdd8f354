"""Pre-flight on the deployed stack: what would stop an upgrade, its time and its cost, by command and by start."""

import json
from datetime import UTC, datetime

import pytest

from local import fleet
from tests.local.chain.conftest import called
from tests.local.chain.groups.test_node_group_upgrade import start

pytestmark = [pytest.mark.local, pytest.mark.long]

BLOCKERS = {"PdbNeverAllows", "PodsFitNowhere", "ZoneWithoutAddresses", "InstanceQuota"}
STANDARD, USED = "L-1216C47A", 62.0  # quota of running on-demand standard instances, and vCPUs in use
PRICE = 0.096


@pytest.fixture(scope="module")
def own(stack):
    return fleet.build_network(stack)


@pytest.fixture(scope="module")
def blocked(stack, story, own):
    """Three nodes with everything in their way: a budget that never allows, a pod for one of the old nodes alone, a
    subnet without addresses, and a quota with one vCPU left.
    """
    stack.control("PUT", "prices", {"on-demand": {"m5.large": PRICE}})
    stack.control("PUT", "quotas", {STANDARD: USED + 1})
    names = {"Service": "EC2", "Resource": "vCPU", "Type": "Resource", "Class": "Standard/OnDemand"}
    metric = {"MetricName": "ResourceCount", "Value": USED, "Timestamp": datetime.now(UTC)}
    dimensions = [{"Name": name, "Value": value} for name, value in names.items()]
    stack.client("cloudwatch").put_metric_data(Namespace="AWS/Usage", MetricData=[{**metric, "Dimensions": dimensions}])
    story = story(3, "broken", within=own, maximum=3)
    bound = story.workload("bound", 1)
    bound["spec"]["template"]["spec"]["nodeSelector"]["kubernetes.io/hostname"] = story.team.node_name(min(story.old))
    story.apply(bound, story.workload("vault", 1), fleet.budget("vault", maxUnavailable=0))
    called(stack, "sync")
    stack.control("PUT", f"subnets/{own.subnets[0]}", {"freeIps": 1})
    yield story
    stack.control("PUT", "prices", {})
    stack.control("PUT", "quotas", {})
    stack.kubectl("delete", "deployment,pdb", "vault", "bound", "--ignore-not-found")


def codes(plan, severity):
    return {one["code"] for one in plan["findings"] if one["severity"] == severity}


def test_it_reports_budgets_addresses_pods_sizes_and_quotas_with_time_and_cost(blocked, leeward):
    code, out, err = leeward("upgrade", "plan", blocked.group, "--ami", blocked.another_image())
    plan = json.loads(out)
    assert (code, codes(plan, "blocker")) == (1, BLOCKERS), (out, err)
    assert "MaxSizeRaised" in codes(plan, "warning")
    objects = {one["code"]: one["object"] for one in plan["findings"]}
    assert objects["PdbNeverAllows"] == "pdb default/vault"
    assert objects["PodsFitNowhere"].startswith("pod default/bound-")
    assert objects["ZoneWithoutAddresses"] == "zone us-east-1a"
    assert all(one["fix"] for one in plan["findings"])
    assert plan["sizes"]["desired"] == {"before": 3, "during": 6, "after": 3}
    assert sorted(name for wave in plan["waves"] for name in wave) == sorted(
        blocked.team.node_name(one) for one in blocked.old
    )
    assert plan["durationSeconds"] > 0
    assert plan["surgeCost"] == round(3 * PRICE * plan["durationSeconds"] / 3600, 4)


def test_a_start_in_the_console_finds_the_same_and_changes_nothing(stack, blocked, leeward):
    blocked.execution = f"{blocked.group}-console"
    start(stack, blocked.execution, group=blocked.group, ami=blocked.another_image())
    outcome = blocked.ended()
    assert (outcome["status"], outcome["error"]) == ("FAILED", "PreflightBlocked")
    assert "InstanceQuota" in outcome["cause"], outcome["cause"]
    code, out, err = leeward("upgrade", "plan", blocked.group, "--recorded")
    assert codes(json.loads(out), "blocker") == BLOCKERS, (code, out, err)
    template = blocked.described["LaunchTemplate"]
    versions = stack.client("ec2").describe_launch_template_versions(LaunchTemplateId=template["LaunchTemplateId"])
    assert (template["Version"], len(versions["LaunchTemplateVersions"])) == ("1", 1)
    assert blocked.untouched
    assert blocked.launched() == []
    assert blocked.sizes == (0, 3, 3)


def test_with_everything_fixed_as_it_says_it_starts(stack, blocked, own, leeward):
    stack.kubectl("delete", "pdb", "vault")
    stack.kubectl("delete", "deployment", "bound")
    stack.control("PUT", f"subnets/{own.subnets[0]}", {"freeIps": None})
    stack.control("PUT", "quotas", {STANDARD: 2 * USED})
    plan = ("upgrade", "plan", blocked.group, "--ami", blocked.another_image())
    blocked.team.until(lambda: leeward(*plan)[0] == 0, "a plan without blockers")
    blocked.to_another_image().succeeded()
    blocked.is_as_before(version="2")
