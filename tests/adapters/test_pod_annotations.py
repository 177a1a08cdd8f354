"""Annotations of pods: one PATCH of the status subresource each, in the background, and no failure stops a drain."""

import threading
import time

import pytest

from leeward.adapters.kubernetes.api import ClusterApi
from leeward.model.pod import Pod
from tests.adapters.kubernetes_objects import raw_pod
from tests.adapters.scripted_server import RESET, Reply, ScriptedServer, status

KEY = "leeward.dev/terminates-at"
ENDS = {KEY: "2026-03-02T11:30:00Z"}


def some_pods(count):
    return [Pod.from_json(raw_pod(name=f"web-{n}", uid=f"uid-{n}")) for n in range(count)]


def recording(cluster):
    """The API of the scripted server, and the sentences about what was lost."""
    lost = []
    return ClusterApi(cluster.client, lost.append), lost


def test_each_pod_costs_one_patch_of_its_status_subresource_with_its_uid_as_precondition(connect):
    cluster = connect(Reply(200, raw_pod()))
    api, lost = recording(cluster)
    api.annotate_pods(some_pods(2), ENDS)()
    assert sorted((one.method, one.path) for one in cluster.seen) == [
        ("PATCH", "/api/v1/namespaces/shop/pods/web-0/status"),
        ("PATCH", "/api/v1/namespaces/shop/pods/web-1/status"),
    ]
    assert {one.headers["content-type"] for one in cluster.seen} == {"application/merge-patch+json"}
    bodies = sorted((one.body for one in cluster.seen), key=lambda body: body["metadata"]["uid"])
    assert bodies == [{"metadata": {"uid": f"uid-{n}", "annotations": ENDS}} for n in range(2)]
    assert lost == []


def test_an_annotation_is_removed_by_null(connect):
    cluster = connect(Reply(200, raw_pod()))
    cluster.api.annotate_pods(some_pods(1), {KEY: None})()
    assert cluster.seen[0].body["metadata"]["annotations"] == {KEY: None}


@pytest.mark.parametrize("code", [404, 409, 422])
def test_a_pod_that_is_gone_or_replaced_counts_as_done(connect, code):
    cluster = connect(status(code, "not that pod"))
    api, lost = recording(cluster)
    api.annotate_pods(some_pods(1), ENDS)()
    assert (len(cluster.seen), lost) == (1, [])


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (status(403, "pods is forbidden", reason="Forbidden"), "HTTP 403"),
        (status(500, "etcd is away"), "HTTP 500"),
        (RESET, "shop/pods/web-"),  # whichever of the eight workers failed first
    ],
)
def test_a_failure_is_one_log_line_and_ends_the_call_and_those_of_the_next_half_minute(connect, reply, reason):
    cluster = connect(reply)
    api, lost = recording(cluster)
    api.annotate_pods(some_pods(60), ENDS)()
    assert len(cluster.seen) <= 16, "at most one, or one repeat where the connection broke, for each of eight workers"
    (sentence,) = lost
    assert KEY in sentence
    assert reason in sentence
    sent = len(cluster.seen)
    api.annotate_pods(some_pods(1), ENDS)()
    assert len(cluster.seen) == sent
    cluster.clock.advance(seconds=60)
    api.annotate_pods(some_pods(1), ENDS)()
    assert len(cluster.seen) > sent


def test_the_caller_goes_on_while_the_pods_are_written(connect):
    """An eviction is answered although no annotation is yet."""
    release = threading.Event()

    class Held(ScriptedServer):
        def _answer(self, handler, reply):
            if handler.command == "PATCH":
                release.wait(10)
            super()._answer(handler, reply)

    cluster = connect()
    held = Held(Reply(201))
    try:
        cluster.kube_config.url = held.url
        api, lost = recording(cluster)
        pods = some_pods(3)
        wait = api.annotate_pods(pods, ENDS)
        for pod in pods:
            api.evict(pod)
        assert [one.method for one in held.seen].count("POST") == 3
        release.set()
        wait()
        assert [one.method for one in held.seen].count("PATCH") == 3
        assert lost == []
    finally:
        release.set()
        held.close()


def test_a_server_that_does_not_answer_costs_the_step_two_seconds_whatever_the_pods(connect):
    release = threading.Event()

    class Silent(ScriptedServer):
        def _answer(self, handler, reply):
            release.wait(30)
            super()._answer(handler, reply)

    cluster = connect()
    silent = Silent(Reply(200, raw_pod()))
    try:
        cluster.kube_config.url = silent.url
        api, lost = recording(cluster)
        began = time.monotonic()
        api.annotate_pods(some_pods(50), ENDS)()
        assert 1.5 < time.monotonic() - began < 15, "50 pods by 8 workers, 2 s each, would be 14 s and more"
        assert len(silent.seen) <= 8
        assert len(lost) == 1
    finally:
        release.set()
        silent.close()
