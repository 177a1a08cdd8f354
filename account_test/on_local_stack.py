"""`--local`: the same run against a local stack of its own, as a person would prepare a cluster for it.

Nothing here is used on AWS; the run does not depend on it.
"""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from local import fleet
from local.stack import LocalStack

ADMINS = "local:admins"
BINDING = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRoleBinding",
    "metadata": {"name": "local-admins"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
    "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": ADMINS}],
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """Values that a person would type: cluster, subnets, an image, the endpoint."""

    stack: LocalStack
    subnets: tuple[str, ...]
    image: str


@contextmanager
def prepared() -> Iterator[Prepared]:
    """Give a bootstrapped account with a cluster whose administrator is the caller; the environment points to it."""
    before = dict(os.environ)
    with (
        tempfile.TemporaryDirectory(prefix="leeward-account-test-") as directory,
        LocalStack(directory=Path(directory), boot_delay=0.5, termination_scale=0.1, pod_start=0.3) as stack,
    ):
        os.environ.update(stack.environment())
        try:
            yield prepare(stack)
        finally:
            os.environ.clear()
            os.environ.update(before)


def prepare(stack: LocalStack) -> Prepared:
    """Bootstrap, build a network, and make the caller administrator."""
    stack.bootstrap()
    network = fleet.build_network(stack)
    arn = stack.client("sts").get_caller_identity()["Arn"]
    stack.client("eks").create_access_entry(clusterName=stack.cluster, principalArn=arn, kubernetesGroups=[ADMINS])
    stack.kubernetes("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", BINDING)
    stack.take_over_access_entries()
    stack.control("PUT", "prices", {"on-demand": {"t3.medium": 0.0416, "t3a.medium": 0.0376}})
    image = stack.client("ec2").describe_images()["Images"][0]["ImageId"]
    return Prepared(stack=stack, subnets=network.subnets, image=image)
