"""Who blocks a node and until when: eight kinds at once, on a node whose group takes it."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from leeward.model.times import parse_instant
from local import fleet
from local.cluster.settings import NEVER_READY

pytestmark = pytest.mark.local

STUCK = "blocked-csi"
HOOK_WAITS = timedelta(hours=48) / 100  # the HeartbeatTimeout that fn sync gives it, for a policy without `until`


def workload(name, *, annotations=None, tolerations=()):
    made = fleet.deployment(f"blocked-{name}", 1, cpu="10m", grace=1, annotations=annotations)
    made["spec"]["template"]["spec"]["tolerations"] = list(tolerations)
    return made


def at_least(name, count, selecting=None):
    made = fleet.budget(f"blocked-{name}", minAvailable=count)
    made["spec"]["selector"] = {"matchLabels": {"app": f"blocked-{selecting or name}"}}
    return made


def lonely(node):
    spec = {"nodeName": node, "terminationGracePeriodSeconds": 1, "containers": [{"name": "app", "image": "app"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "blocked-lonely"}, "spec": spec}


def volume_that_stays(node):
    """Its driver never confirms that it has left."""
    volume = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "claimRef": {"namespace": "default", "name": "blocked-data"},
        "csi": {"driver": "ebs.csi.aws.com", "volumeHandle": "vol-1"},
    }
    attached = {"attacher": "ebs.csi.aws.com", "nodeName": node, "source": {"persistentVolumeName": STUCK}}
    return (
        {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": STUCK}, "spec": volume},
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "VolumeAttachment",
            "metadata": {"name": STUCK, "finalizers": ["external-attacher/ebs-csi-aws-com"]},
            "spec": attached,
        },
    )


WORKLOADS = (
    workload("zero"),
    at_least("zero", 1),
    workload("twice"),
    at_least("twice-a", 0, "twice"),
    at_least("twice-b", 0, "twice"),
    workload("train", annotations={"karpenter.sh/do-not-disrupt": "4h"}),
    workload("batch", annotations={"karpenter.sh/do-not-disrupt": "true"}),
    workload("watcher", tolerations=[{"operator": "Exists"}]),
)
FAILING = (workload("failing", annotations={NEVER_READY: "true"}), at_least("failing", 1))


@pytest.fixture
def team(stack, crew):
    """A node with all of it, which its group is ending; everything goes afterwards."""
    made = crew(1, name="blocked", hook=True)
    (victim,) = made.instances
    node = made.node_name(victim)
    made.run_pods(*WORKLOADS, instance=victim)
    for one in FAILING:
        if one["kind"] == "Deployment":
            one["spec"]["template"]["spec"]["nodeSelector"] = {"group": made.group}
    stack.kubectl("apply", "-f", "-", stdin=fleet.manifests([*FAILING, lonely(node), *volume_that_stays(node)]))
    stack.kubectl("delete", "volumeattachment", STUCK, "--wait=false")
    yield made
    names = [one["metadata"]["name"] for one in (*WORKLOADS, *FAILING) if one["kind"] == "Deployment"]
    budgets = [one["metadata"]["name"] for one in (*WORKLOADS, *FAILING) if one["kind"] != "Deployment"]
    stack.kubectl("delete", "deployment", *names)
    stack.kubectl("delete", "pdb", *budgets)
    stack.kubectl("delete", "pod", "blocked-lonely", "--ignore-not-found", "--wait=false")
    stack.kubectl("patch", "volumeattachment", STUCK, "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    made.closed(victim)


def reported(leeward, team):
    code, out, err = leeward("blockers", team.node_name(team.instances[0]))
    assert (code, err) == (0, "")
    found = json.loads(out)["blockers"]
    assert all("kubectl" in one["fix"] or "aws " in one["fix"] for one in found)
    return {(one["kind"], one["owner"]): one["until"] and parse_instant(one["until"]) for one in found}


HELD = [  # by these a drain is held
    ("pdb-never", "Deployment/blocked-zero"),
    ("pdb-several", "Deployment/blocked-twice"),
    ("pdb-failing-pod", "Deployment/blocked-failing"),
    ("unmanaged-pod", "Pod/blocked-lonely"),
    ("tolerates-taint", "Deployment/blocked-watcher"),
]


def test_each_of_eight_kinds_is_named_with_its_owner_and_until_when(stack, team, leeward):
    """Those that ask to be left alone are reported as long as no drain runs: they hold up no drain of its group's."""
    (victim,) = team.instances
    hook, began = ("lifecycle-hook", f"AutoScalingGroup/{team.group}"), datetime.now(UTC)
    before = reported(leeward, team)
    assert {one: before[one] for one in HELD} == dict.fromkeys(HELD)
    assert before["do-not-disrupt", "Deployment/blocked-batch"] is None
    train = before["do-not-disrupt", "Deployment/blocked-train"]
    assert timedelta(0) < began + timedelta(hours=4) - train < timedelta(minutes=10)
    volume = before["volume-attached", "PersistentVolumeClaim/blocked-data"]
    assert timedelta(0) < began + timedelta(minutes=6) - volume < timedelta(minutes=5)

    stack.client("autoscaling").terminate_instance_in_auto_scaling_group(
        InstanceId=victim, ShouldDecrementDesiredCapacity=True
    )
    team.until(lambda: (found := team.record(victim)) is not None and "draining" in found.times, "its drain")
    during = team.until(lambda: found if hook in (found := reported(leeward, team)) else None, "its hook")
    gives_up = team.record(victim).times["draining"] + timedelta(minutes=10)
    assert {one: during[one] for one in HELD} == dict.fromkeys(HELD, gives_up)
    asked = began.replace(microsecond=0)  # the time of the hook's event has whole seconds
    assert timedelta(0) <= during[hook] - (asked + HOOK_WAITS) < timedelta(minutes=15)
