"""A cluster `blue` for `leeward snapshot`, as raw output and behind both kinds of fakes: those that
live commands ask, and those that the snapshot is written from. Beside it there are things of others."""

from dataclasses import replace
from pathlib import Path

from leeward.model.attachment import VolumeAttachment
from leeward.model.group import Group, LifecycleHook
from leeward.model.image import Image
from leeward.model.instance import Instance
from leeward.model.instance_status import Impairment
from leeward.model.instance_type import InstanceType
from leeward.model.launch import LaunchSettings
from leeward.model.node import Node
from leeward.model.nodegroup import Nodegroup
from leeward.model.pod import Pod, PodDisruptionBudget
from leeward.model.subnet import Subnet
from leeward.policy.parse import parse_documents
from leeward.ports.kubernetes import Listed
from tests.cli.snapshots.disruption import a_group, a_node, a_pod, a_template, a_type, an_instance
from tests.cli.snapshots.placement import a_subnet
from tests.fakes.network import FakeLaunchSources
from tests.fakes.raw_aws import FakeRawAws
from tests.fakes.system import FakeSystem

SECRET = "sesame-open"  # in every place in which people leave one
APPLIED = {"kubectl.kubernetes.io/last-applied-configuration": SECRET}
OURS, GREEN = {"Key": "kubernetes.io/cluster/blue", "Value": "owned"}, {"Key": "eks:cluster-name", "Value": "green"}
MANAGED = [{"Key": "eks:cluster-name", "Value": "blue"}, {"Key": "eks:nodegroup-name", "Value": "workers"}]
POLICIES = [
    {
        "apiVersion": "leeward.dev/v1",
        "kind": "ClusterSettings",
        "metadata": {"name": "blue"},
        "spec": {"webhook": {"url": "https://example.com/hook"}},
    },
    {
        "apiVersion": "leeward.dev/v1",
        "kind": "NodePolicy",
        "metadata": {"name": "all"},
        "spec": {
            "selector": {"groups": ["web", "batch", "eks-*"]},
            "disruption": {"budgets": [{"nodes": "100%"}], "consolidateAfter": "0s"},
            "repair": {},
        },
    },
]
NEEDS = {"VCpuCount": {"Min": 2, "Max": 4}, "MemoryMiB": {"Min": 1}}
PRICES = {"m5.large": 0.096, "m5.xlarge": 0.192, "c5.large": 0.085}


def _meta(name, **more):
    return {"metadata": {"name": name, "managedFields": [{"manager": "kubectl"}], **more}}


def _pod(name, node, **meta):
    pod = a_pod(name, node, labels={"app": "web"}, managedFields=[{"manager": "x"}], **meta)
    pod.pop("kind")  # as the API lists it
    pod["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    (container,) = pod["spec"]["containers"]
    container |= {
        "env": [
            {"name": "PASSWORD", "value": SECRET},
            {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "t", "key": "k"}}},
        ],
        "command": ["serve", f"--password={SECRET}"],
        "args": [SECRET],
        "livenessProbe": {"httpGet": {"httpHeaders": [{"name": "Authorization", "value": SECRET}]}},
    }
    return pod


def _nodes():
    nodes = [a_node(name, annotations=APPLIED) for name in ("n1", "n2", "n3", "m1")]
    return [{key: value for key, value in node.items() if key != "kind"} for node in nodes]


def _cni():
    container = {"name": "aws-node", "env": [{"name": "WARM_IP_TARGET", "value": "3"}]}
    beside = {"name": "agent", "env": [{"name": "KEY", "value": SECRET}]}
    template = {"metadata": {"annotations": {"note": SECRET}}, "spec": {"containers": [container, beside]}}
    return _meta("aws-node", namespace="kube-system", annotations=APPLIED) | {"spec": {"template": template}}


def _kubernetes():
    asks = {"karpenter.sh/do-not-disrupt": "true", "note": SECRET, **APPLIED}
    claim = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]}
    bound = _pod("p2", "n2")
    bound["spec"] |= claim
    budget = {
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "maxUnavailable": 0},
        "status": {"disruptionsAllowed": 0, "currentHealthy": 4, "desiredHealthy": 4, "expectedPods": 4},
    }
    place = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["us-east-1a"]}
    return {
        Listed.NODES: _nodes(),
        Listed.PODS: [_pod("p1", "n1"), bound, _pod("p3", "n3", annotations=asks), _pod("p4", "m1")],
        Listed.BUDGETS: [_meta("web", namespace="shop", uid="b1", annotations=APPLIED) | budget],
        Listed.DAEMON_SETS: [_cni()],
        Listed.VOLUMES: [
            _meta("pv-1")
            | {
                "spec": {
                    "claimRef": {"namespace": "shop", "name": "data"},
                    "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [place]}]}},
                }
            }
        ],
        Listed.CLAIMS: [_meta("data", namespace="shop") | {"spec": {"volumeName": "pv-1", "storageClassName": "gp3"}}],
        Listed.ATTACHMENTS: [
            _meta("va-1")
            | {"spec": {"nodeName": "n2", "source": {"persistentVolumeName": "pv-1"}}, "status": {"attached": True}}
        ],
        Listed.STORAGE_CLASSES: [_meta("gp3") | {"provisioner": "ebs.csi.aws.com"}],
        Listed.CSI_NODES: [
            _meta("n2") | {"spec": {"drivers": [{"name": "ebs.csi.aws.com", "allocatable": {"count": 25}}]}}
        ],
        Listed.NAMESPACES: [_meta("shop", labels={"team": "shop"})],
    }


def _group(name, template, *members, tags=(OURS,), version=1):
    group = a_group(name, template, *members) | {"Tags": list(tags)}
    for member in group["Instances"]:
        member["InstanceType"] = "m5.xlarge"
        member["LaunchTemplate"] = {"LaunchTemplateId": template, "Version": str(version)}
    return group


def _holds():
    batch = _group("batch", "lt-batch")
    overrides = [{"InstanceRequirements": NEEDS}]
    chosen = {"LaunchTemplateSpecification": batch.pop("LaunchTemplate"), "Overrides": overrides}
    batch["MixedInstancesPolicy"] = {"LaunchTemplate": chosen, "InstancesDistribution": {}}
    hooks = [
        {"LifecycleHookName": "leeward-terminate", "AutoScalingGroupName": name, "DefaultResult": "CONTINUE"}
        for name in ("web", "batch", "green-web")
    ]
    versions = [
        a_template("lt-web", "m5.xlarge") | {"DefaultVersion": False},
        a_template("lt-web", "m5.xlarge", "ami-2", version=2) | {"DefaultVersion": False},
        a_template("lt-web", "m5.xlarge", "ami-3", version=3),
        a_template("lt-web", "m5.xlarge", "ami-4", version=4) | {"DefaultVersion": False},
        a_template("lt-batch", "m5.large"),
        a_template("lt-eks", "m5.xlarge"),
        a_template("lt-green", "m5.large"),
    ]
    names = ("n1", "n2", "n3", "m1", "foreign")
    checked = {"Status": "impaired", "Details": [{"Name": "reachability", "ImpairedSince": "2024-04-30T12:00:00Z"}]}
    nodegroup = {"nodegroupName": "workers", "clusterName": "blue", "amiType": "AL2_x86_64", "version": "1.29"}
    return {
        "auto-scaling-groups": [
            _group("web", "lt-web", "n1", "n2", "n3", version=2),
            batch,
            _group("eks-workers", "lt-eks", "m1", tags=MANAGED),
            _group("green-web", "lt-green", "foreign", tags=[GREEN]),
        ],
        "lifecycle-hooks": hooks,
        "launch-template-versions": versions,
        "instances": [
            an_instance(name, Tags=[{"Key": "aws:autoscaling:groupName", "Value": "web"}] if name[0] == "n" else [])
            for name in names
        ],
        "instance-types": [
            a_type("m5.large", 2, 8192),
            a_type("m5.xlarge", 4, 16384),
            a_type("c5.large", 2, 4096),
            a_type("m5.24xlarge", 96, 393216),
        ],
        "instance-status": [
            {"InstanceId": name, "SystemStatus": checked} for name in ("i-n3", "i-foreign")
        ],
        "images": [
            {"ImageId": "ami-1", "OwnerId": "602401143452", "ImageOwnerAlias": "amazon"},
            {"ImageId": "ami-foreign", "OwnerId": "999988887777"},
        ],
        "subnets": [
            a_subnet("a", 100),
            a_subnet("b", 0, Tags=[{"Key": "kubernetes.io/role/cni", "Value": "0"}]),
            a_subnet("c", 9),
        ],
        "nodegroups": [{"nodegroup": nodegroup}],
        "cluster": [{"cluster": {"name": "blue", "version": "1.30"}}, {"cluster": {"name": "green"}}],
    }  # fmt: skip


class VersionedLaunches(FakeLaunchSources):
    """Every version of every launch template, as EC2 answers for one."""

    def __init__(self, versions, types):
        super().__init__(types)
        self.versions = versions

    def settings(self, group):
        wanted = group.launch.template
        mine = [one for one in self.versions if one["LaunchTemplateId"] == wanted.id]
        by_word = {
            "$Latest": max(mine, key=lambda one: one["VersionNumber"]),
            "$Default": next(one for one in mine if one["DefaultVersion"]),
        }
        by_number = {str(one["VersionNumber"]): one for one in mine}
        found = (by_word | by_number).get(wanted.version)
        return LaunchSettings.from_template(found) if found else None


class LiveWorld:
    """`system` is what live commands ask, `aws` what the snapshot asks; both say the same."""

    def __init__(self):
        holds, listed = _holds(), _kubernetes()
        self.aws = FakeRawAws(holds)
        self.aws.deployed = list(POLICIES)
        documents = [(f"policy {number}", document) for number, document in enumerate(POLICIES)]
        self.system = system = FakeSystem(
            instances=[Instance.from_json(one) for one in holds["instances"]],
            groups=[Group.from_json(one) for one in holds["auto-scaling-groups"]],
            hooks=[LifecycleHook.from_json(one) for one in holds["lifecycle-hooks"]],
            nodes=[Node.from_json(one) for one in listed[Listed.NODES]],
            written=parse_documents(documents, cluster="blue"),
        )
        system.nodegroups.known = {("blue", "workers"): Nodegroup.from_json(holds["nodegroups"][0]["nodegroup"])}
        types = [InstanceType.from_json(one) for one in holds["instance-types"]]
        launches = VersionedLaunches(holds["launch-template-versions"], types)
        launches.images = {image.id: image for image in map(Image.from_json, holds["images"])}
        system.launches = launches
        system.ports = replace(system.ports, launches=launches)
        system.network.by_id = {one.id: one for one in map(Subnet.from_json, holds["subnets"])}
        system.price_list.prices = dict(PRICES)
        impaired = map(Impairment.from_json, holds["instance-status"])
        system.instances.failing = {one.instance: one for one in impaired if one}
        self._fill(system.kubernetes, listed)

    @staticmethod
    def _fill(api, listed):
        api.raw = listed
        api.by_key = {pod.key: pod for pod in map(Pod.from_json, listed[Listed.PODS])}
        api.budget_list = [PodDisruptionBudget.from_json(one) for one in listed[Listed.BUDGETS]]
        api.daemon_set_names = frozenset({"kube-system/aws-node"})
        api.cni = listed[Listed.DAEMON_SETS][0]
        api.volume_list = list(listed[Listed.VOLUMES])
        api.attachment_list = [VolumeAttachment.from_json(one) for one in listed[Listed.ATTACHMENTS]]


def text_of(folder: Path) -> str:
    """All files of a folder, one after the other."""
    return "\n".join(path.read_text() for path in sorted(folder.iterdir()))
