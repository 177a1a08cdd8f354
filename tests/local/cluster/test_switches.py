"""The emulator's own switches: injected refusals, node conditions, records."""

import time

import pytest
import urllib3

from local.cluster.faults import Asked, Effect, Faults
from local.cluster.nodes import NodeSpec

NODES = "/api/v1/nodes"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


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
    faults.add(Effect(status=500), seconds=5)
    asked = Asked(method="GET", verb="list", resource="nodes", path=NODES)
    assert faults.take(asked) is not None
    now[0] = 5.0
    assert faults.take(asked) is None


def test_an_answer_is_late_by_what_was_asked_for_and_only_for_that_resource():
    faults = Faults(clock=lambda: 0.0)
    faults.add(Effect.of({"latency": [2, 5]}), seconds=60, resource="pods/eviction")
    faults.add(Effect.of({"latency": 0.5}), seconds=60, verb="list")
    evictions = [
        faults.delay(Asked(method="POST", verb="create", resource="pods/eviction", path="")) for _ in range(50)
    ]
    assert 2 <= min(evictions) < 3
    assert 4 < max(evictions) <= 5
    assert faults.delay(Asked(method="GET", verb="list", resource="nodes", path=NODES)) == 0.5
    assert faults.delay(Asked(method="POST", verb="create", resource="pods", path="")) == 0.0


def test_a_late_answer_comes_late_and_right(served):
    served.admin.json("POST", "/_local/faults", {"latency": 0.2, "count": 1, "resource": "nodes"})
    begun = time.monotonic()
    assert served.admin.get(NODES)["items"] == []
    assert time.monotonic() - begun >= 0.2
    assert served.admin.get("/_local/faults")[0]["hits"] == 1


@pytest.mark.parametrize(("when", "there"), [("before", False), ("after", True)])
def test_a_connection_is_closed_without_an_answer_before_or_after_the_effect(served, when, there):
    fault = {"reset": when, "count": 1, "verb": "create", "resource": "configmaps"}
    assert served.admin.json("POST", "/_local/faults", fault)[0] == 200
    with pytest.raises(urllib3.exceptions.ProtocolError):
        served.admin.request("POST", CONFIG_MAPS, {"metadata": {"name": "settings"}})
    assert served.admin.request("GET", CONFIG_MAPS + "/settings").status == (200 if there else 404)


def test_a_delay_and_a_refusal_meet_the_same_request(served):
    served.admin.json("POST", "/_local/faults", {"latency": 0.05, "count": 1, "resource": "nodes"})
    served.admin.json("POST", "/_local/faults", {"status": 429, "count": 1, "resource": "nodes"})
    assert served.admin.request("GET", NODES).status == 429
    assert [fault["hits"] for fault in served.admin.get("/_local/faults")] == [1, 1]


@pytest.mark.parametrize(
    "fault",
    [
        {"status": 418, "count": 1},
        {"status": 500},
        {"status": 500, "counts": 1},
        {"status": 500, "reset": "after", "count": 1},
        {"reset": "sometimes", "count": 1},
        {"latency": [3, 1], "count": 1},
        {"latency": "long", "count": 1},
    ],
)
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
