"""EKS: clusters point at the local cluster, node groups have real groups, access entries are kept."""

import json
import uuid

import pytest

from local.cluster.instances import NODE_LABEL, NODE_TAINT

from .conftest import Group, eventually

ROLE = "arn:aws:iam::000000000000:role/eks"


@pytest.fixture(scope="module")
def eks(aws):
    return aws.client("eks")


@pytest.fixture
def a_cluster(eks):
    def build(name=None, **more):
        name = name or f"c-{uuid.uuid4().hex[:8]}"
        eks.create_cluster(name=name, roleArn=ROLE, resourcesVpcConfig={"subnetIds": []}, **more)
        return name

    return build


def test_a_cluster_has_the_endpoint_that_the_control_api_set_before_or_after(aws, eks, a_cluster):
    known = {"endpoint": "https://127.0.0.1:6443", "certificateAuthorityData": "Q0E="}
    early, late = f"c-{uuid.uuid4().hex[:8]}", a_cluster()
    aws.control("PUT", f"eks/{early}", known)
    a_cluster(early)
    aws.control("PUT", f"eks/{late}", known)
    for name in (early, late):
        cluster = eks.describe_cluster(name=name)["cluster"]
        assert (cluster["endpoint"], cluster["certificateAuthority"]) == (known["endpoint"], {"data": "Q0E="})
        assert cluster["version"] == "1.36"


def test_a_managed_node_group_has_a_group_tagged_as_eks_does_it(eks, a_cluster, asg, ec2):
    cluster = a_cluster()
    vpc = ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.9.0.0/24", AvailabilityZone="us-east-1a")["Subnet"]["SubnetId"]
    eks.create_nodegroup(
        clusterName=cluster,
        nodegroupName="web",
        nodeRole=ROLE,
        subnets=[subnet],
        instanceTypes=["m6i.large", "m5.large"],
        capacityType="SPOT",
        labels={"team": "web"},
        taints=[{"key": "only", "value": "web", "effect": "NO_SCHEDULE"}],
        scalingConfig={"minSize": 0, "maxSize": 3, "desiredSize": 1},
    )
    described = eks.describe_nodegroup(clusterName=cluster, nodegroupName="web")["nodegroup"]
    name = described["resources"]["autoScalingGroups"][0]["name"]
    assert name.startswith("eks-web-")
    group = Group(asg, ec2, name, [subnet])
    instance = group.in_service(1)[0]
    tags = {tag["Key"]: tag["Value"] for tag in group.describe()["Tags"]}
    assert tags["eks:cluster-name"] == cluster
    assert tags["eks:nodegroup-name"] == "web"
    assert tags["k8s.io/cluster-autoscaler/enabled"] == "true"
    assert tags[f"kubernetes.io/cluster/{cluster}"] == "owned"
    assert (tags[f"{NODE_LABEL}team"], tags[f"{NODE_TAINT}only"]) == ("web", "web:NoSchedule")  # for its nodes
    launched = group.instances([instance])[0]
    assert (launched["InstanceType"], launched["InstanceLifecycle"]) == ("m6i.large", "spot")
    assert group.describe()["CapacityRebalance"] is True
    eks.update_nodegroup_config(
        clusterName=cluster, nodegroupName="web", scalingConfig={"minSize": 0, "maxSize": 4, "desiredSize": 2}
    )
    members = group.in_service(2)
    hook = {"LifecycleHookName": "held", "LifecycleTransition": "autoscaling:EC2_INSTANCE_TERMINATING"}
    asg.put_lifecycle_hook(AutoScalingGroupName=name, **hook)
    eks.delete_nodegroup(clusterName=cluster, nodegroupName="web")
    assert asg.describe_auto_scaling_groups(AutoScalingGroupNames=[name])["AutoScalingGroups"] == []
    ending = {one["State"]["Name"] for one in group.instances(members)}
    assert ending <= {"shutting-down", "terminated"}, "EKS ends them whatever holds them"
    templates = ec2.describe_launch_templates()["LaunchTemplates"]
    assert [one for one in templates if one["LaunchTemplateName"].startswith(name)] == []


def test_access_entries_of_the_api_are_kept_and_given(eks, a_cluster, aws):
    cluster, principal = a_cluster(), "arn:aws:iam::000000000000:role/path/act"
    created = eks.create_access_entry(clusterName=cluster, principalArn=principal, kubernetesGroups=["leeward:act"])
    assert created["accessEntry"]["username"] == "arn:aws:sts::000000000000:assumed-role/act/{{SessionName}}"
    assert eks.list_access_entries(clusterName=cluster)["accessEntries"] == [principal]
    described = eks.describe_access_entry(clusterName=cluster, principalArn=principal)["accessEntry"]
    assert described["kubernetesGroups"] == ["leeward:act"]
    given = aws.control("GET", f"access-entries?cluster={cluster}")
    assert [(item["principalArn"], item["kubernetesGroups"]) for item in given] == [(principal, ["leeward:act"])]
    with pytest.raises(eks.exceptions.ResourceInUseException):
        eks.create_access_entry(clusterName=cluster, principalArn=principal)
    eks.delete_access_entry(clusterName=cluster, principalArn=principal)
    with pytest.raises(eks.exceptions.ResourceNotFoundException):
        eks.describe_access_entry(clusterName=cluster, principalArn=principal)
    with pytest.raises(eks.exceptions.ResourceNotFoundException):
        eks.create_access_entry(clusterName="no-such", principalArn=principal)


def test_access_entries_of_cloudformation_land_in_the_same_store(aws, eks, a_cluster):
    cluster, cloudformation = a_cluster(), aws.client("cloudformation")
    template = {
        "Resources": {
            "Role": {
                "Type": "AWS::IAM::Role",
                "Properties": {"RoleName": f"{cluster}-read", "AssumeRolePolicyDocument": {"Statement": []}},
            },
            "Entry": {
                "Type": "AWS::EKS::AccessEntry",
                "Properties": {
                    "ClusterName": cluster,
                    "PrincipalArn": {"Fn::GetAtt": ["Role", "Arn"]},
                    "KubernetesGroups": ["leeward:read"],
                    "Type": "STANDARD",
                },
            },
        },
        "Outputs": {"Arn": {"Value": {"Fn::GetAtt": ["Entry", "AccessEntryArn"]}}},
    }
    cloudformation.create_stack(StackName=cluster, TemplateBody=json.dumps(template))

    def stack():
        found = cloudformation.describe_stacks(StackName=cluster)["Stacks"][0]
        return None if found["StackStatus"].endswith("IN_PROGRESS") else found

    finished = eventually(stack)
    assert finished["StackStatus"] == "CREATE_COMPLETE"
    assert finished["Outputs"][0]["OutputValue"].startswith("arn:aws:eks:us-east-1:")
    principal = f"arn:aws:iam::{aws.account}:role/{cluster}-read"
    assert eks.list_access_entries(clusterName=cluster)["accessEntries"] == [principal]
    cloudformation.delete_stack(StackName=cluster)
    eventually(lambda: not eks.list_access_entries(clusterName=cluster)["accessEntries"])
