"""Foundation of all plays: the node role, the tap on events, the namespace and its workload, the ClusterRoles."""

import json
import time
from collections.abc import Mapping
from typing import Any

import yaml
from botocore.exceptions import ClientError

from account_test.aws import code
from account_test.context import Context
from account_test.errors import PreflightError
from account_test.run import ROOT, TAG

NODE_POLICIES = ("AmazonEKSWorkerNodePolicy", "AmazonEKS_CNI_Policy", "AmazonEC2ContainerRegistryPullOnly")
IMAGE = "/aws/service/eks/optimized-ami/{version}/amazon-linux-2023/x86_64/standard/recommended/image_id"
PAUSE_IMAGE = "registry.k8s.io/pause:3.10"
TAPPED = {"source": ["aws.ec2", "aws.autoscaling"]}


def lay_once(context: Context) -> None:
    """Create the foundation unless this run has done so."""
    if "laid" not in context.base:
        lay(context, context.aws("eks").describe_cluster(name=context.run.cluster)["cluster"])
        context.base["laid"] = "true"


def lay(context: Context, cluster: Mapping[str, Any]) -> None:
    """Create the foundation in the order of dependency. Everything is recorded in the journal before it is made."""
    context.base["image"] = image_of(context, cluster)
    context.base["securityGroup"] = (cluster.get("resourcesVpcConfig") or {}).get("clusterSecurityGroupId") or ""
    node_role(context)
    tap(context)
    for thing in cluster_roles():
        kind, name = thing["kind"], thing["metadata"]["name"]
        if context.kube.read(kind, name) is None:  # those of an existing Leeward stay, and stay as they are
            context.journal.making("kubernetes", name, object=kind)
            context.kube.create(thing)
    context.journal.making("kubernetes", context.run.namespace, object="Namespace")
    context.kube.create(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": context.run.namespace, "labels": {TAG: "true"}}}
    )


def image_of(context: Context, cluster: Mapping[str, Any]) -> str:
    """Return the given image, else the one that EKS recommends for the cluster's version. Raises PreflightError."""
    if context.run.image:
        return context.run.image
    name = IMAGE.format(version=cluster["version"])
    try:
        return str(context.aws("ssm").get_parameter(Name=name)["Parameter"]["Value"])
    except ClientError as error:
        raise PreflightError(
            f"no node image: SSM parameter {name}: {code(error)}; name one: --image ami-..."
        ) from error


def node_role(context: Context) -> None:
    """Create the role of the test's instances, which the cluster accepts as a node."""
    run, iam = context.run, context.aws("iam")
    name = run.name("node")
    trust = _trust("ec2.amazonaws.com")
    context.journal.making("role", name)
    arn = _made(
        lambda: iam.create_role(RoleName=name, AssumeRolePolicyDocument=trust, Tags=_tags(context))["Role"]["Arn"]
    )
    context.base["nodeRole"] = arn or run.arn("iam", f"role/{name}").replace(f":{run.region}:", "::")
    for policy in NODE_POLICIES:
        iam.attach_role_policy(RoleName=name, PolicyArn=f"arn:{run.partition}:iam::aws:policy/{policy}")
    context.journal.making("instance-profile", name)
    _made(lambda: iam.create_instance_profile(InstanceProfileName=name, Tags=_tags(context)))
    _made(lambda: iam.add_role_to_instance_profile(InstanceProfileName=name, RoleName=name))
    if run.endpoint is None:  # the local EC2 runs instances without profiles
        context.base["profile"] = name
        time.sleep(15)  # IAM is eventually consistent: EC2 refuses a profile that it does not know yet
    context.journal.making("access-entry", context.base["nodeRole"], cluster=run.cluster)
    eks = context.aws("eks")
    _made(
        lambda: eks.create_access_entry(
            clusterName=run.cluster, principalArn=context.base["nodeRole"], type="EC2_LINUX", tags=run.tags
        )
    )


def tap(context: Context) -> None:
    """Create a queue that receives the events of EC2 and Auto Scaling, for the comparison with the events that tests
    are made of.
    """
    run, sqs, events = context.run, context.aws("sqs"), context.aws("events")
    name = run.name("tap")
    arn = run.arn("sqs", name)
    allow = {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Effect": "Allow",
                "Principal": {"Service": "events.amazonaws.com"},
                "Action": "sqs:SendMessage",
                "Resource": arn,
                "Condition": {"ArnEquals": {"aws:SourceArn": run.arn("events", f"rule/{name}")}},
            }
        ],
    }
    context.journal.making("queue", name)
    answer = sqs.create_queue(QueueName=name, Attributes={"Policy": json.dumps(allow)}, tags=run.tags)
    context.base["tap"] = answer["QueueUrl"]
    context.journal.making("rule", name)
    events.put_rule(Name=name, EventPattern=json.dumps(TAPPED), State="ENABLED", Tags=_tags(context))
    events.put_targets(Rule=name, Targets=[{"Id": "tap", "Arn": arn}])


def cluster_roles() -> list[dict[str, Any]]:
    """Return the ClusterRoles of manifests/cluster-role.yaml."""
    text = (ROOT / "manifests" / "cluster-role.yaml").read_text(encoding="utf-8")
    return [thing for thing in yaml.safe_load_all(text) if thing]


def workload(context: Context, group: str, replicas: int) -> list[dict[str, Any]]:
    """Return a Deployment of pods that run only on the group's nodes, and a budget that allows one eviction at a
    time.
    """
    meta = {"name": group, "namespace": context.run.namespace, "labels": {TAG: group}}
    labels = {"app": group}
    pod = {
        "terminationGracePeriodSeconds": 5,
        "nodeSelector": {TAG: group},
        "tolerations": [{"key": TAG, "operator": "Equal", "value": group, "effect": "NoSchedule"}],
        "containers": [
            {
                "name": "pause",
                "image": PAUSE_IMAGE,
                "resources": {"requests": {"cpu": "50m", "memory": "32Mi"}},
                "securityContext": {"allowPrivilegeEscalation": False},
            }
        ],
    }
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": meta,
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": meta,
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": labels}},
    }
    return [deployment, budget]


def trust_of(service: str) -> str:
    """Return the trust policy of a role that one service may assume."""
    return _trust(service)


def _trust(service: str) -> str:
    statement = {"Effect": "Allow", "Principal": {"Service": service}, "Action": "sts:AssumeRole"}
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


def _tags(context: Context) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in context.run.tags.items()]


def _made(call: Any) -> Any:
    """Make the call and ignore an existing resource: this run has made it before."""
    try:
        return call()
    except ClientError as error:
        if code(error) in {"EntityAlreadyExists", "ResourceInUseException", "LimitExceeded"}:
            return None
        raise
