"""Objects reach the local cluster as `kubectl apply` brings them, without a kubectl."""

import pytest

from local.cluster.server import ClusterServer
from local.cluster.settings import ClusterSettings
from local.fleet import budget, deployment
from local.interactive import playground
from local.stack import LocalStack, LocalStackError
from local.workloads import apply_objects, apply_roles, merge, read


@pytest.fixture(scope="module")
def stack(tmp_path_factory):
    directory = tmp_path_factory.mktemp("stack")
    with ClusterServer(settings=ClusterSettings()) as server:
        server.write_files(directory / "cluster")
        yield LocalStack(directory=directory)


def test_applying_twice_is_applying_once(stack):
    for _ in range(2):
        apply_roles(stack)
        apply_objects(stack, read(playground.WORKLOADS))
    roles = stack.kubernetes("GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles")["items"]
    assert {"leeward-read", "leeward-taint", "leeward-act"} <= {role["metadata"]["name"] for role in roles}
    found = stack.kubernetes("GET", "/apis/apps/v1/namespaces/default/deployments")["items"]
    assert {(one["metadata"]["name"], one["spec"]["replicas"]) for one in found} == {
        ("web", 9),
        ("api", 6),
        ("cart", 2),
    }
    agents = stack.kubernetes("GET", "/apis/apps/v1/namespaces/kube-system/daemonsets")["items"]
    assert [one["metadata"]["name"] for one in agents] == ["aws-node"]


def test_a_change_of_one_field_leaves_the_others(stack):
    apply_objects(stack, [deployment("held", 3), budget("held", maxUnavailable=0)])
    merge(stack, "Deployment", "held", {"spec": {"replicas": 2}})
    merge(stack, "PodDisruptionBudget", "held", {"spec": {"maxUnavailable": 1}})
    found = stack.kubernetes("GET", "/apis/apps/v1/namespaces/default/deployments/held")
    assert (found["spec"]["replicas"], found["spec"]["selector"]) == (2, {"matchLabels": {"app": "held"}})
    pdb = stack.kubernetes("GET", "/apis/policy/v1/namespaces/default/poddisruptionbudgets/held")
    assert pdb["spec"]["maxUnavailable"] == 1


def test_a_refusal_is_an_error_with_the_answer(stack):
    with pytest.raises(LocalStackError, match="422"):
        apply_objects(stack, [{**deployment("bad", 1), "spec": {"replicas": -1}}])
