"""An image that breaks one workload of twenty: how far an upgrade gets whose policy names an alarm on that workload."""

from dataclasses import replace
from datetime import timedelta

import pytest

from leeward.policy.document import ClusterPolicies
from local.cluster.objects import condition_of
from local.cluster.settings import NEVER_READY
from tests.simulation.fleet_stand_in import budget, deployment
from tests.simulation.upgrade_stand_in import Upgraded, a_fleet

WORKLOADS, NODES = 20, 10
BROKEN, ALARM = "app-07", "app-07 has fewer ready replicas than it should"
LATE = 180  # seconds: three data points of one minute each, so that the alarm does not ring for a single one


def settled(policies: ClusterPolicies) -> ClusterPolicies:
    """The policies with the default pause before an empty node is terminated."""
    written = [replace(one, drain=replace(one.drain, settle=timedelta(seconds=60))) for one in policies.policies]
    return replace(policies, policies=tuple(written))


def on_every_node(name: str) -> dict:
    """A Deployment with a replica on each node."""
    made = deployment(name, NODES)
    pod = made["spec"]["template"]["spec"]
    pod["containers"][0]["resources"]["requests"] = {"cpu": "50m", "memory": "64Mi"}
    spread = {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway"}
    pod["topologySpreadConstraints"] = [{**spread, "labelSelector": {"matchLabels": {"app": name}}}]
    return made


class Story(Upgraded):
    """Pods of the broken workload never become Ready on nodes of the second version, and CloudWatch sees it."""

    def __init__(self, *, budgets, parallel):
        names = [f"app-{number:02}" for number in range(WORKLOADS)]
        objects = [on_every_node(name) for name in names]
        objects += [budget(name) for name in names if budgets]
        fleet = a_fleet(NODES, maximum=NODES, workloads=tuple(objects), alarms=(ALARM,), max_unavailable=parallel)
        super().__init__(replace(fleet, policies=settled(fleet.policies)))
        self.store, self.alarms = self.world.cluster.store, self.world.system.alarms
        self.alarms.quiet(ALARM)
        self.low_since, self.rang = None, None
        self.watch(self.play)

    def new_nodes(self):
        new = {member.id for member in self.group.instances if member.template and member.template.version == "2"}
        nodes = self.store.each("nodes")
        return {node["metadata"]["name"] for node in nodes if node["spec"]["providerID"].rpartition("/")[2] in new}

    def play(self):
        pods = [pod for pod in self.store.each("pods") if pod["metadata"].get("labels", {}).get("app") == BROKEN]
        new = self.new_nodes()
        for pod in pods:
            if pod["spec"].get("nodeName") in new:
                pod["metadata"].setdefault("annotations", {})[NEVER_READY] = "true"
        ready = sum((condition_of(pod, "Ready") or {}).get("status") == "True" for pod in pods)
        now = self.world.timeline.now()
        if ready >= NODES:
            self.low_since = None
        elif self.low_since is None:
            self.low_since = now
        elif self.rang is None and now - self.low_since >= LATE:
            self.rang = now
            self.alarms.ring(ALARM, now)


@pytest.mark.parametrize(("budgets", "parallel"), [(True, 2), (False, 4)], ids=["with budgets", "without budgets"])
def test_the_image_reaches_one_wave_at_most(budgets, parallel):
    story = Story(budgets=budgets, parallel=parallel).start(launchTemplateVersion="2").run(2)
    assert story.rang is not None
    assert story.record.alarm.startswith(f"alarm {ALARM} is in ALARM since ")
    assert story.record.started <= parallel
