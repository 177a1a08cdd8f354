"""Groups, nodes, pods and whole upgrades with defaults; the name of a node's instance is `i-` and its name."""

from datetime import UTC, datetime, timedelta

from leeward.cluster.facets import Known
from leeward.model import well_known
from leeward.model.group import Group, GroupInstance, LifecycleHook
from leeward.model.launch import LaunchSource, LaunchTemplateRef
from leeward.model.node import Node, disruption_taint
from leeward.model.pod import Owner, Pod, PodDisruptionBudget, Toleration
from leeward.policy.document import ClusterPolicies, ClusterSettings, GroupSelector, NodePolicy, UpdatePolicy
from leeward.snapshot.cluster import ClusterSnapshot
from leeward.upgrade.members import UpgradeTarget
from leeward.upgrade.preflight.model import Preflight, PreflightInputs
from leeward.upgrade.record import UpgradeRecord
from leeward.upgrade.surge.sizes import Strategy
from leeward.upgrade.waves.model import ClusterConstraints, WaveNode
from tests.fakes import builders
from tests.fakes.builders import pausing

NOON = datetime(2024, 5, 6, 12, tzinfo=UTC)
OLD, NEW = "1", "2"
HOOK = LifecycleHook(name=well_known.TERMINATE_HOOK, group="web", transition="autoscaling:EC2_INSTANCE_TERMINATING")


def a_wave_node(name, zone="a", *, age=0, failed=False, budgets=None, workloads=None):
    created = NOON - timedelta(hours=age)
    return WaveNode(
        name=name,
        zone=zone,
        created=created,
        failed_before=failed,
        budgets=budgets or {},
        workloads=workloads or {},
    )


def rivals(allowed=None, replicas=None, serving=None):
    replicas = replicas or {}
    return ClusterConstraints(
        allowed=allowed or {}, replicas=replicas, serving=replicas if serving is None else serving
    )


def template(version):
    return LaunchTemplateRef(id="lt-1", version=version)


def an_instance(name, zone="a", version=OLD, lifecycle="InService"):
    recorded = template(version) if version else None
    return GroupInstance(id=f"i-{name}", zone=zone, lifecycle=lifecycle, type="m5.large", template=recorded)


def a_node(name, zone="a", *, ready=True, labels=None, tainted=False, cordoned=False, created=NOON, kubelet=""):
    taints = (disruption_taint(builders.DEPLOYMENT),) if tainted else ()
    return Node(
        name=name,
        uid=name,
        resource_version="1",
        provider_id=f"aws:///{zone}/i-{name}",
        labels={well_known.ZONE_LABEL: zone, well_known.INSTANCE_TYPE_LABEL: "m5.large", **(labels or {})},
        annotations={},
        taints=taints,
        unschedulable=cordoned or tainted,
        ready=ready,
        deleting=False,
        created=created,
        kubelet=kubelet,
    )


def a_pod(name, node="n1", *, app="web", ready=True, owner=True, phase="Running", **fields):
    return Pod(
        namespace="shop",
        name=name,
        uid=name,
        node=node,
        phase=phase,
        labels={"app": app},
        owner=Owner(api_version="apps/v1", kind="ReplicaSet", name=app) if owner is True else owner or None,
        ready=ready,
        **fields,
    )


EVERYTHING = (Toleration(operator="Exists"),)


def a_pdb(name="web", app="web", allowed=1, **fields):
    return PodDisruptionBudget(
        namespace="shop",
        name=name,
        selector={"matchLabels": {"app": app}},
        disruptions_allowed=allowed,
        **fields,
    )


def a_group(*instances, desired=None, maximum=10, **fields):
    return Group(
        **{
            "name": "web",
            "tags": {},
            "minimum": 0,
            "maximum": maximum,
            "desired": len(instances) if desired is None else desired,
            "zones": tuple(sorted({one.zone for one in instances})),
            "instances": instances,
            "launch": LaunchSource(template=template(NEW)),
            **fields,
        }
    )


def a_policy(update=None, **fields):
    return NodePolicy(name="web", selector=GroupSelector(groups=("web",)), update=update or UpdatePolicy(), **fields)


def an_upgrade(
    *nodes,
    new=(),
    unjoined=(),
    group=None,
    policy=None,
    settings=None,
    paused=None,
    hooks=(HOOK,),
    inputs=None,
    target=None,
    **world,
):
    """Nodes are old unless `new` names them; `unjoined` are (name, zone) of old instances without a node."""
    joined = [
        an_instance(node.name, node.labels[well_known.ZONE_LABEL], NEW if node.name in new else OLD) for node in nodes
    ]
    found = a_group(*joined, *(an_instance(name, zone) for name, zone in unjoined), **(group or {}))
    chosen = policy or a_policy()
    written = ClusterPolicies(settings=settings or ClusterSettings(name="blue"), policies=(chosen,))
    snapshot = ClusterSnapshot(
        cluster="blue",
        now=NOON,
        policies=written if paused is None else pausing(written, group=paused),
        node_list=Known(nodes),
        groups={"web": found},
        hooks={"web": hooks},
        **world,
    )
    return Preflight.of(
        snapshot, found, chosen, target or UpgradeTarget(template=template(NEW)), inputs or PreflightInputs()
    )


def begun(system, **given):
    """The record of an upgrade of the fakes' group that has just begun, written."""
    return system.upgrades.write(a_record(system, **given))


def a_record(system, **given):
    """The same, not written."""
    fields = {"target": UpgradeTarget(), "strategy": Strategy.DEFAULT, "desired": 1, "maximum": 10, **given}
    return UpgradeRecord(group=builders.GROUP, cluster=builders.CLUSTER, began=system.clock.now(), **fields)
