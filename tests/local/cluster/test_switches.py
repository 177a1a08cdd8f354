"""The emulator's own switches: injected refusals, node conditions, records."""

import pytest

from local.cluster.faults import Faults
from local.cluster.nodes import NodeSpec

NODES = "/api/v1/nodes"


def test_injected_overload_is_plain_text_429_with_retry_after_for_so_many_requests(served):
    fault = {"status": 429, "count": 2, "retryAfter": 3, "path": "/nodes", "verb": "list"}
    assert served.admin.json("POST", "/_local/faults", fault)[0] == 200
    answers = [served.admin.request("GET", NODES) for _ in range(3)]
    assert [answer.status for answer in answers] == [429, 429, 200]
    assert answers[0].headers["retry-after"] == "3"
    assert answers[0].headers["content-type"].startswith("text/plain")
    (listed,) = served.admin.get("/_local/faults")
    assert (listed["hits"], listed["remaining"]) == (2, 0)


def test_injected_errors_are_status_500_and_other_paths_and_verbs_pass(served):
    served.admin.json("POST", "/_local/faults", {"status": 500, "seconds": 60, "path": "/nodes", "verb": "PATCH"})
    status, body = served.admin.json("PATCH", NODES + "/n0", {}, content_type="application/merge-patch+json")
    assert (status, body["reason"]) == (500, "InternalError")
    assert served.admin.request("GET", NODES).status == 200
    served.admin.json("DELETE", "/_local/faults")
    assert served.admin.json("PATCH", NODES + "/n0", {}, content_type="application/merge-patch+json")[0] == 404


def test_a_fault_with_seconds_ends_by_itself():
    now = [0.0]
    faults = Faults(clock=lambda: now[0])
    faults.add(status=500, seconds=5)
    assert faults.take(method="GET", verb="list", path=NODES) is not None
    now[0] = 5.0
    assert faults.take(method="GET", verb="list", path=NODES) is None


@pytest.mark.parametrize("fault", [{"status": 418, "count": 1}, {"status": 500}, {"status": 500, "counts": 1}])
def test_faults_that_make_no_sense_are_400(served, fault):
    assert served.admin.json("POST", "/_local/faults", fault)[0] == 400


def test_a_nodes_ready_condition_can_be_set(served):
    with served.server.lock:
        served.server.model.add_node(NodeSpec(name="n0"))
    assert served.admin.json("PUT", "/_local/nodes/n0/ready", {"status": "Unknown"})[0] == 200
    served.wait(lambda model: len(model.get("nodes", "n0")["spec"].get("taints", [])) == 2)
    assert served.admin.json("PUT", "/_local/nodes/n0/ready", {"status": "Maybe"})[0] == 400
    facts = served.admin.get("/_local/history?kind=node-notready")
    assert [fact["object"] for fact in facts] == ["n0"]
    assert served.admin.json("GET", "/_local/history?kind=nonsense")[0] == 400
