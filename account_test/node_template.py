"""The launch template of the test's nodes: Amazon Linux 2023, which nodeadm joins to the cluster (EKS user guide,
"Customize managed nodes with launch templates", "AL2023"). Every node carries the run's label and taint, so that no
other workload's pod is scheduled on it."""

import base64
from collections.abc import Mapping
from typing import Any

from account_test.context import Context
from account_test.run import TAG, Run

_NODE_CONFIG = """MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="//"

--//
Content-Type: application/node.eks.aws

---
apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  cluster:
    name: {name}
    apiServerEndpoint: {endpoint}
    certificateAuthority: {authority}
    cidr: {cidr}
  kubelet:
    flags:
      - --node-labels={tag}={label}
      - --register-with-taints={tag}={label}:NoSchedule

--//--
"""
AUTOSCALER = "k8s.io/cluster-autoscaler/node-template"


def user_data(context: Context, cluster: Mapping[str, Any], group: str) -> str:
    """Return the user data of an instance of a self-managed group, in base64."""
    network = cluster.get("kubernetesNetworkConfig") or {}
    text = _NODE_CONFIG.format(
        name=context.run.cluster,
        endpoint=cluster["endpoint"],
        authority=(cluster.get("certificateAuthority") or {}).get("data") or "",
        cidr=network.get("serviceIpv4Cidr") or network.get("serviceIpv6Cidr") or "10.100.0.0/16",
        tag=TAG,
        label=group,
    )
    return base64.b64encode(text.encode()).decode()


def instance_tags(run: Run, name: str) -> list[dict[str, str]]:
    """Return the tags of instances and volumes."""
    return [{"Key": key, "Value": value} for key, value in {"Name": name, **run.tags}.items()]


def template_data(context: Context, cluster: Mapping[str, Any], group: str) -> dict[str, Any]:
    """Return the launch template data of a self-managed group."""
    run, base = context.run, context.base
    data: dict[str, Any] = {
        "ImageId": base["image"],
        "InstanceType": run.instance_type,
        "UserData": user_data(context, cluster, group),
        "MetadataOptions": {"HttpTokens": "required", "HttpPutResponseHopLimit": 2},
        "TagSpecifications": [
            {"ResourceType": kind, "Tags": instance_tags(run, group)} for kind in ("instance", "volume")
        ],
    }
    if base.get("profile"):
        data["IamInstanceProfile"] = {"Name": base["profile"]}
    if base.get("securityGroup"):
        data["SecurityGroupIds"] = [base["securityGroup"]]
    return data


def group_tags(run: Run, group: str) -> list[dict[str, Any]]:
    """Return the tags of the Auto Scaling group, propagated to its instances: its cluster, and the labels and taints of
    its nodes.
    """
    tags = {
        f"kubernetes.io/cluster/{run.cluster}": "owned",
        f"{AUTOSCALER}/label/{TAG}": group,
        f"{AUTOSCALER}/taint/{TAG}": f"{group}:NoSchedule",
        "Name": group,
        **run.tags,
    }
    return [{"Key": key, "Value": value, "PropagateAtLaunch": True} for key, value in tags.items()]
