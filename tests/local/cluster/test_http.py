"""The API over TLS: lists in pages, selectors, tables, watches, compression, Status bodies."""

import gzip
import json
import threading

import pytest
import urllib3

from local.cluster.nodes import NodeSpec
from local.cluster.volumes import gp3_class
from tests.local.cluster.builders import a_budget, a_job, a_pod, a_stateful_set, a_workload

PODS = "/api/v1/namespaces/default/pods"


def test_a_started_server_is_ready_and_only_its_own_authority_vouches_for_it(served):
    assert served.admin.request("GET", "/readyz").data == b"ok"
    with pytest.raises(urllib3.exceptions.SSLError), urllib3.PoolManager(retries=False) as stranger:
        stranger.request("GET", served.server.url + "/readyz")


def test_controllers_act_on_what_comes_in_over_http(served):
    with served.server.lock:
        served.server.model.add_node(NodeSpec(name="n0"))
    status, _ = served.admin.json("POST", "/apis/apps/v1/namespaces/default/deployments", a_workload(replicas=2))
    assert status == 201
    served.wait(lambda model: model.get("deployments", "web")["status"].get("availableReplicas") == 2)
    pods = served.admin.get(PODS + "?fieldSelector=spec.nodeName%3Dn0,status.phase%3DRunning&labelSelector=app%3Dweb")
    assert len(pods["items"]) == 2
    assert "kind" not in pods["items"][0]  # as the real server sends the items of typed lists


def test_lists_come_in_pages_of_one_moment_and_an_old_continue_is_410(served):
    with served.server.lock:
        for index in range(5):
            served.server.model.create("pods", a_pod(f"p{index}"))
    first = served.admin.get(PODS + "?limit=2")
    assert first["metadata"]["remainingItemCount"] == 3
    served.admin.json("DELETE", PODS + "/p4")
    token = first["metadata"]["continue"]
    second = served.admin.get(f"{PODS}?limit=2&continue={token}")
    third = served.admin.get(f"{PODS}?limit=2&continue={second['metadata']['continue']}")
    names = [pod["metadata"]["name"] for page in (first, second, third) for pod in page["items"]]
    assert names == ["p0", "p1", "p2", "p3", "p4"]
    assert "continue" not in third["metadata"]
    assert served.admin.json("POST", "/_local/compact")[0] == 200
    status, body = served.admin.json("GET", f"{PODS}?limit=2&continue={token}")
    assert (status, body["reason"]) == (410, "Expired")


def test_resource_version_zero_ignores_the_limit_as_the_watch_cache_does(served):
    with served.server.lock:
        for index in range(3):
            served.server.model.create("pods", a_pod(f"p{index}"))
    assert len(served.admin.get(PODS + "?limit=1&resourceVersion=0")["items"]) == 3


@pytest.mark.parametrize("query", ["fieldSelector=spec.colour%3Dred", "labelSelector=a%3D%3D%3Db", "limit=many"])
def test_unknown_selectors_are_400(served, query):
    status, body = served.admin.json("GET", f"{PODS}?{query}")
    assert (status, body["kind"], body["reason"]) == (400, "Status", "BadRequest")


def test_large_answers_are_compressed_when_asked_for(served):
    with served.server.lock:
        for index in range(300):
            served.server.model.create("pods", a_pod(f"p{index:03}"))
    answer = served.admin.request("GET", PODS, accept_encoding="gzip")
    assert answer.headers["content-encoding"] == "gzip"
    plain = served.admin.request("GET", PODS)
    assert "content-encoding" not in plain.headers
    assert len(json.loads(plain.data)["items"]) == 300
    assert answer.data == plain.data or gzip.decompress(answer.data) == plain.data


@pytest.mark.parametrize(
    ("path", "obj"),
    [
        ("/apis/apps/v1/namespaces/default/statefulsets", a_stateful_set("thing")),
        ("/apis/batch/v1/namespaces/default/jobs", a_job("thing")),
        ("/api/v1/namespaces/default/persistentvolumeclaims", {"metadata": {"name": "thing"}, "spec": {}}),
        ("/api/v1/persistentvolumes", {"metadata": {"name": "thing"}, "spec": {"capacity": {"storage": "1Gi"}}}),
        ("/apis/storage.k8s.io/v1/storageclasses", {**gp3_class(), "metadata": {"name": "thing"}}),
        (
            "/apis/storage.k8s.io/v1/volumeattachments",
            {"metadata": {"name": "thing"}, "spec": {"nodeName": "n0", "source": {"persistentVolumeName": "v"}}},
        ),
    ],
    ids=lambda value: value.rpartition("/")[2] if isinstance(value, str) else "",
)
def test_what_keeps_state_is_created_read_changed_watched_and_deleted(served, path, obj):
    assert served.admin.json("POST", path, obj)[0] == 201
    assert [item["metadata"]["name"] for item in served.admin.get(path)["items"] if "kind" not in item][-1] == "thing"
    patch = {"metadata": {"labels": {"team": "web"}}}
    status, changed = served.admin.json("PATCH", f"{path}/thing", patch, content_type="application/merge-patch+json")
    assert (status, changed["metadata"]["labels"]) == (200, {"team": "web"})
    group = path.split("/namespaces")[0] if "/namespaces" in path else path.rpartition("/")[0]
    assert path.rpartition("/")[2] in {entry["name"] for entry in served.admin.get(group)["resources"]}
    stream = served.admin.stream(f"{path}?watch=1&labelSelector=team%3Dweb")
    assert json.loads(_lines(stream, 1)[0])["object"]["metadata"]["name"] == "thing"
    stream.close()
    assert served.admin.json("DELETE", f"{path}/thing")[0] == 200
    served.wait(
        lambda model: model.store.find(path.rpartition("/")[2], "thing", changed["metadata"].get("namespace")) is None
    )
    assert served.admin.json("GET", f"{path}/thing")[0] == 404


def test_a_stateful_set_is_scaled_by_its_subresource(served):
    path = "/apis/apps/v1/namespaces/default/statefulsets"
    served.admin.json("POST", path, a_stateful_set("db", replicas=3))
    scale = served.admin.get(f"{path}/db/scale")
    assert (scale["kind"], scale["spec"]["replicas"], scale["status"]["selector"]) == ("Scale", 3, "app=db")
    del scale["metadata"]["resourceVersion"]  # as kubectl scale: whatever a controller has written meanwhile
    status, scale = served.admin.json("PUT", f"{path}/db/scale", {**scale, "spec": {"replicas": 1}})
    assert (status, served.admin.get(f"{path}/db")["spec"]["replicas"]) == (200, 1)


def test_a_missing_path_is_a_status_in_a_served_group_and_plain_text_elsewhere(served):
    status, body = served.admin.json("GET", PODS + "/absent")
    assert (status, body["message"]) == (404, 'pods "absent" not found')
    assert body["details"] == {"name": "absent", "kind": "pods"}
    for path in ("/api/v1/things", "/apis/apps/v9/deployments", "/apis/apps/v9", "/api/v2", f"{PODS}/absent/things"):
        status, body = served.admin.json("GET", path)
        assert (status, body["reason"], body["details"]) == (404, "NotFound", {})
        assert body["message"] == "the server could not find the requested resource"
    for path in ("/apis/nothing/v1/things", "/elsewhere"):
        answer = served.admin.request("GET", path)
        assert (answer.status, answer.data) == (404, b"404 page not found\n")


def test_evictions_over_http_answer_as_the_real_subresource(served):
    with served.server.lock:
        served.server.model.add_node(NodeSpec(name="n0"))
        served.server.model.create("deployments", a_workload(replicas=1))
        served.server.model.create("poddisruptionbudgets", a_budget(maxUnavailable=0))
    served.wait(lambda model: model.get("deployments", "web")["status"].get("availableReplicas"))
    name = served.admin.get(PODS)["items"][0]["metadata"]["name"]
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": "default"}}
    status, body = served.admin.json("POST", f"{PODS}/{name}/eviction", eviction)
    assert (status, body["details"]["causes"][0]["reason"]) == (429, "DisruptionBudget")
    with served.server.lock:
        served.server.model.delete("poddisruptionbudgets", "web")
    status, body = served.admin.json("POST", f"{PODS}/{name}/eviction", eviction)
    assert (status, body["status"]) == (201, "Success")
    served.wait(lambda model: model.store.find("pods", name, "default") is None)
    assert served.admin.json("POST", f"{PODS}/{name}/eviction", eviction)[0] == 404
    kinds = [fact["kind"] for fact in served.admin.get("/_local/history")]
    assert kinds.index("eviction-refused") < kinds.index("eviction-accepted") < kinds.index("pod-deleted")
    assert served.admin.get("/_local/pdb-violations") == []


def test_a_watch_sends_what_is_there_then_what_changes(served):
    stream = served.admin.stream("/api/v1/nodes?watch=True&labelSelector=team%3Dweb")
    with served.server.lock:
        served.server.model.add_node(NodeSpec(name="n0", labels={"team": "web"}))
        served.server.model.add_node(NodeSpec(name="n1"))
        served.server.model.patch("nodes", "n1", {"metadata": {"labels": {"team": "web"}}})
        served.server.model.patch("nodes", "n0", {"metadata": {"labels": {"team": "db"}}})
    events = [json.loads(line) for line in _lines(stream, 3)]
    assert [(e["type"], e["object"]["metadata"]["name"]) for e in events] == [
        ("ADDED", "n0"),
        ("ADDED", "n1"),
        ("DELETED", "n0"),  # it no longer matches the selector
    ]
    stream.close()


def test_a_watch_from_a_version_starts_there_and_from_a_forgotten_one_ends_with_410(served):
    version = served.admin.get("/api/v1/nodes")["metadata"]["resourceVersion"]
    with served.server.lock:
        served.server.model.add_node(NodeSpec(name="n0"))
    stream = served.admin.stream(f"/api/v1/nodes?watch=1&resourceVersion={version}")
    assert json.loads(_lines(stream, 1)[0])["object"]["metadata"]["name"] == "n0"
    stream.close()
    served.admin.json("POST", "/_local/compact")
    stream = served.admin.stream(f"/api/v1/nodes?watch=1&resourceVersion={version}")
    event = json.loads(_lines(stream, 1)[0])
    assert (event["type"], event["object"]["code"]) == ("ERROR", 410)
    stream.close()


def test_a_watch_ends_at_its_time_out_and_when_the_server_stops(served):
    timed = served.admin.stream("/api/v1/nodes?watch=1&timeoutSeconds=0.05&resourceVersion=1500")
    assert timed.read() == b""
    timed.close()
    endless = served.admin.stream("/api/v1/nodes?watch=1")
    stopper = threading.Thread(target=served.server.stop)
    stopper.start()
    endless.read()
    stopper.join(timeout=60)
    assert not stopper.is_alive()
    endless.close()


def test_tables_are_sent_when_asked_for(served):
    with served.server.lock:
        served.server.model.add_node(NodeSpec(name="n0"))
        served.server.model.patch("nodes", "n0", {"spec": {"unschedulable": True}})
    accept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
    _, body = served.admin.json("GET", "/api/v1/nodes", accept=accept)
    assert [column["name"] for column in body["columnDefinitions"]][:5] == ["Name", "Status", "Roles", "Age", "Version"]
    assert body["rows"][0]["cells"][:2] == ["n0", "Ready,SchedulingDisabled"]
    assert body["rows"][0]["object"]["kind"] == "PartialObjectMetadata"


def test_the_eviction_subresource_is_discovered_as_policy_v1(served):
    resources = {entry["name"]: entry for entry in served.admin.get("/api/v1")["resources"]}
    eviction = resources["pods/eviction"]
    assert (eviction["kind"], eviction["group"], eviction["version"]) == ("Eviction", "policy", "v1")
    assert served.admin.get("/apis/apps/v1")["groupVersion"] == "apps/v1"


def _lines(stream: urllib3.BaseHTTPResponse, count: int) -> list[bytes]:
    lines, buffer = [], b""
    for chunk in stream.stream(4096):
        buffer += chunk
        *whole, buffer = buffer.split(b"\n")
        lines += whole
        if len(lines) >= count:
            return lines[:count]
    raise AssertionError(f"the watch ended after {len(lines)} events")
