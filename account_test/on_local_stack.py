"""`--local`: the same run against a local stack of its own, as a person would prepare a cluster for it.

Nothing here is used on AWS; the run does not depend on it.
"""

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from local import fleet
from local.accounts import Account, running
from local.stack import LocalStack

ADMINS = "local:admins"
BINDING = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRoleBinding",
    "metadata": {"name": "local-admins"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
    "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": ADMINS}],
}


PACE = {"boot_delay": 0.5, "termination_scale": 0.1, "pod_start": 0.3}
HOME = Account(account="000000000000", region="us-east-1", cluster="demo")
ELSEWHERE = Account(account="222233334444", region="us-east-1", cluster="east")
DEPLOYER = "deployer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """Values that a person would type: cluster, subnets, an image, the endpoint, a key, a secret, another account."""

    stack: LocalStack
    subnets: tuple[str, ...]
    image: str
    security_group: str
    kms_key: str
    secret: str
    member: str = ""

    def options(self) -> dict[str, str]:
        """Return the command's options by name."""
        return {
            "cluster": self.stack.cluster,
            "endpoint_url": self.stack.endpoint,
            "subnets": ",".join(self.subnets),
            "image": self.image,
            "security_groups": self.security_group,
            "kms_key": self.kms_key,
            "webhook_secret": self.secret,
            "member": self.member,
        }


@contextmanager
def prepared(*, member: bool = False) -> Iterator[Prepared]:
    """Give a bootstrapped account with a cluster whose administrator is the caller; the environment points to it.
    `member`: with another account, where a role deploys that the caller may assume.
    """
    before = dict(os.environ)
    with (
        tempfile.TemporaryDirectory(prefix="leeward-account-test-") as directory,
        running(Path(directory), HOME, *([ELSEWHERE] if member else []), **PACE) as accounts,
    ):
        os.environ.update(accounts.hub.environment())
        try:
            yield prepare(accounts.hub, next(iter(accounts.members.values()), None))
        finally:
            os.environ.clear()
            os.environ.update(before)


def prepare(stack: LocalStack, member: LocalStack | None = None) -> Prepared:
    """Bootstrap, build a network, make the caller administrator, and make a key and a secret."""
    stack.bootstrap()
    network = fleet.build_network(stack)
    arn = stack.client("sts").get_caller_identity()["Arn"]
    stack.client("eks").create_access_entry(clusterName=stack.cluster, principalArn=arn, kubernetesGroups=[ADMINS])
    stack.kubernetes("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", BINDING)
    stack.take_over_access_entries()
    stack.control("PUT", "prices", {"on-demand": {"t3.medium": 0.0416, "t3a.medium": 0.0376}})
    ec2 = stack.client("ec2")
    group = ec2.create_security_group(GroupName="functions", Description="functions", VpcId=network.vpc)
    secret = stack.client("secretsmanager").create_secret(Name="webhook", SecretString="local")
    return Prepared(
        stack=stack,
        subnets=network.subnets,
        image=stack.image,
        security_group=group["GroupId"],
        kms_key=stack.client("kms").create_key()["KeyMetadata"]["Arn"],
        secret=secret["ARN"],
        member=_deployer(stack, member) if member else "",
    )


def _deployer(hub: LocalStack, member: LocalStack) -> str:
    """Bootstrap the other account and make a role there that the first one may assume; return ACCOUNT/ROLE."""
    member.bootstrap()
    statement = {
        "Effect": "Allow",
        "Principal": {"AWS": f"arn:aws:iam::{hub.account}:root"},
        "Action": "sts:AssumeRole",
    }
    trust = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    member.client("iam").create_role(RoleName=DEPLOYER, AssumeRolePolicyDocument=trust)
    return f"{member.account}/{DEPLOYER}"
