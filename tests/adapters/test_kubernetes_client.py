"""What the client does when an API server, or the way to it, misbehaves."""

import time
import tracemalloc
from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest

from leeward.adapters.kubernetes.answers import ApiRequest
from leeward.adapters.kubernetes.client import ATTEMPTS, BUDGET, THROTTLES, ClusterClient
from leeward.errors import (
    AccessDeniedError,
    ClusterUnreachableError,
    ObjectGoneError,
    TerminalError,
    ThrottledError,
)
from leeward.ports.kubernetes import Listed
from leeward.time_budget import TimeBudget
from tests.adapters.kubernetes_objects import listed, raw_node, raw_pod
from tests.adapters.scripted_server import GARBAGE, RESET, Reply, status
from tests.fakes.clock import FakeClock

NODE = ApiRequest(verb="get", resource="nodes", path="/api/v1/nodes/node-a")
NODES = ApiRequest(verb="list", resource="nodes", path="/api/v1/nodes")


@pytest.mark.parametrize("fault", [status(500), status(503), RESET, GARBAGE, status(429, "slow down")], ids=str)
def test_a_passing_fault_is_tried_again(connect, fault):
    cluster = connect(fault, fault, Reply(200, raw_node()))
    assert cluster.client.ask(NODE)["metadata"]["name"] == "node-a"
    assert len(cluster.seen) == 3


@pytest.mark.parametrize("fault", [status(500, "etcd is away"), RESET, GARBAGE, Reply(502, b"<html>")], ids=str)
def test_a_lasting_fault_is_an_unreachable_cluster(connect, fault):
    cluster = connect(fault)
    with pytest.raises(ClusterUnreachableError, match="blue: get nodes"):
        cluster.client.ask(NODE)
    assert len(cluster.seen) == ATTEMPTS
    assert sum(cluster.clock.slept) < BUDGET.total_seconds()


def test_a_port_without_a_listener_is_an_unreachable_cluster(connect):
    cluster = connect()
    cluster.server.close()
    with pytest.raises(ClusterUnreachableError):
        cluster.client.ask(NODE)


def test_an_endpoint_that_stopped_answering_is_looked_up_anew(connect):
    cluster = connect(*[RESET] * ATTEMPTS, Reply(200, raw_node()))
    with pytest.raises(ClusterUnreachableError):
        cluster.client.ask(NODE)
    cluster.client.ask(NODE)
    cluster.client.ask(NODE)
    assert cluster.kube_config.lookups == 1


def test_no_try_begins_after_the_budget(connect):
    cluster = connect(lambda _: cluster.clock.advance(seconds=BUDGET.total_seconds()) and status(500))
    with pytest.raises(ClusterUnreachableError):
        cluster.client.ask(NODE)
    assert len(cluster.seen) == 1


def test_throttling_waits_as_long_as_the_server_says(connect):
    cluster = connect(status(429, "busy", **{"Retry-After": "2"}), Reply(200, raw_node()))
    cluster.client.ask(NODE)
    assert cluster.clock.slept == [2]


def busy(seconds):
    """API priority and fairness answers in plain text."""
    return Reply(429, b"Too many requests, please try again later.\n", {"Retry-After": str(seconds)})


def test_a_busy_server_is_given_the_rising_pauses_that_it_asks_for(connect):
    rising = [1, 2, 4, 8, 16, 32]
    cluster = connect(*map(busy, rising), Reply(200, raw_node()))
    cluster.client.ask(NODE)
    assert cluster.clock.slept == rising


@pytest.mark.parametrize(("seconds", "slept"), [(298, [1, 2, 4, 8, 16, 32]), (53, [1, 2, 4, 8]), (10, [1, 2])])
def test_a_pause_takes_no_more_than_a_quarter_of_a_functions_time(connect, seconds, slept):
    """The step of a drain has 53 seconds, and a turn in a storm ten."""
    cluster = connect(*map(busy, [1, 2, 4, 8, 16, 32, 32]))
    with pytest.raises(ThrottledError, match="Too many requests"):
        cluster.client.within(TimeBudget.of(cluster.clock, seconds)).ask(NODE)
    assert cluster.clock.slept == slept


def test_an_eviction_is_not_kept_by_a_busy_server(connect):
    cluster = connect(busy(1))
    assert cluster.client.send(replace(NODE, once=True)).status == 429
    assert cluster.clock.slept == []


def test_a_server_that_asks_for_pauses_for_ever_is_handed_on(connect):
    cluster = connect(busy(1))
    with pytest.raises(ThrottledError):
        cluster.client.ask(NODE)
    assert len(cluster.seen) == ATTEMPTS + THROTTLES


def test_throttling_for_longer_than_a_step_can_wait_is_handed_on(connect):
    cluster = connect(status(429, "busy", **{"Retry-After": "60"}))
    with pytest.raises(ThrottledError, match="busy") as raised:
        cluster.client.ask(NODE)
    assert (raised.value.retry_after, len(cluster.seen), cluster.clock.slept) == (60, 1, [])


def test_a_connection_that_is_refused_names_no_object_of_the_client(connect):
    cluster = connect()
    cluster.server.close()
    with pytest.raises(ClusterUnreachableError, match=r"/nodes/node-a\): no connection to 127\.0\.0\.1: "):
        cluster.client.ask(NODE)


def test_a_refused_token_is_renewed_once(connect):
    cluster = connect(status(401, "Unauthorized"), Reply(200, raw_node()))
    cluster.client.ask(NODE)
    assert [seen.headers["authorization"] for seen in cluster.seen] == ["Bearer token-0", "Bearer token-1"]


def test_a_token_that_expires_between_two_pages_of_a_list_is_renewed(connect):
    first, second = Reply(200, listed(raw_node("a"), more="next")), Reply(200, listed(raw_node("b")))
    cluster = connect(first, status(401, "Unauthorized"), second)
    assert cluster.client.list(NODES, lambda raw: raw["metadata"]["name"]) == ("a", "b")
    assert [seen.query.get("continue") for seen in cluster.seen] == [None, "next", "next"]


def test_a_token_that_expires_before_an_eviction_is_renewed_and_the_eviction_asked_once_more(connect):
    cluster = connect(status(401, "Unauthorized"), status(201, "created"))
    assert cluster.client.send(replace(NODE, once=True)).ok
    assert [seen.headers["authorization"] for seen in cluster.seen] == ["Bearer token-0", "Bearer token-1"]


def test_a_token_that_expires_while_a_fault_passes_is_renewed_after_the_last_try_as_well(connect):
    cluster = connect(*[status(503)] * (ATTEMPTS - 1), status(401, "Unauthorized"), Reply(200, raw_node()))
    assert cluster.client.ask(NODE)["metadata"]["name"] == "node-a"


def test_a_token_refused_twice_is_denied_access(connect):
    cluster = connect(status(401, "Unauthorized"))
    with pytest.raises(AccessDeniedError, match="blue: the token is not accepted"):
        cluster.client.ask(NODE)
    assert (len(cluster.seen), cluster.kube_config.tokens) == (2, 1)


def test_a_missing_permission_names_verb_and_resource(connect):
    cluster = connect(status(403, 'nodes "node-a" is forbidden'))
    with pytest.raises(AccessDeniedError, match="not allowed to get nodes"):
        cluster.client.ask(NODE)
    assert len(cluster.seen) == 1


@pytest.mark.parametrize(("code", "error"), [(404, ObjectGoneError), (422, TerminalError), (301, TerminalError)])
def test_other_answers_are_final(connect, code, error):
    cluster = connect(status(code, "no"))
    with pytest.raises(error, match="no"):
        cluster.client.ask(NODE)
    assert len(cluster.seen) == 1


def test_a_list_asks_for_small_compressed_pages_and_joins_them(connect):
    cluster = connect(
        Reply(200, listed(raw_node("a"), raw_node("b"), more="next&page")), Reply(200, listed(raw_node("c")))
    )
    query = {"fieldSelector": "spec.nodeName=a,metadata.name!=x"}
    request = ApiRequest(verb="list", resource="pods", path="/api/v1/pods", query=query)
    assert cluster.client.list(request, lambda raw: raw["metadata"]["name"]) == ("a", "b", "c")
    first, second = cluster.seen
    assert first.query == {**query, "limit": "500"}
    assert "fieldSelector=spec.nodeName%3Da%2Cmetadata.name%21%3Dx" in first.raw_path
    assert second.query == {**query, "limit": "500", "continue": "next&page"}
    assert first.headers["accept-encoding"] == "gzip"


def test_no_list_names_a_version_because_the_api_server_would_ignore_the_limit(connect):
    """Beside resourceVersion=0 a real server answers everything at once; without it every page is consistent."""
    cluster = connect(Reply(200, listed(more="next")), Reply(200, listed()))
    api = cluster.api
    reads = [api.nodes, api.pods, api.budgets, api.daemon_sets, api.volumes, api.attachments]
    for read in [*reads, *(partial(api.read, what, dict) for what in Listed), lambda: api.pods_on("node-a")]:
        read()
    assert len(cluster.seen) >= len(reads) + len(Listed) + 2
    assert {("resourceVersion" in seen.query, seen.query["limit"]) for seen in cluster.seen} == {(False, "500")}


def test_a_request_asked_once_brings_back_the_first_answer_whatever_it_is(connect):
    cluster = connect(status(500, "no"), Reply(200, raw_node()))
    assert cluster.client.send(replace(NODE, once=True)).status == 500
    assert (len(cluster.seen), cluster.clock.slept) == (1, [])


def test_a_request_asked_once_is_sent_again_where_the_connection_broke(connect):
    cluster = connect(RESET, Reply(200, raw_node()))
    assert cluster.client.send(replace(NODE, once=True)).ok
    assert len(cluster.seen) == 2


def test_a_request_asked_once_that_is_not_answered_in_its_time_is_given_up(connect):
    cluster = connect(lambda _: time.sleep(0.3) or Reply())
    with pytest.raises(ClusterUnreachableError):
        cluster.client.send(replace(NODE, once=True, read_seconds=0.05))
    assert (len(cluster.seen), cluster.kube_config.lookups) == (1, 0)
    cluster.client.send(NODE)
    assert cluster.kube_config.lookups == 0  # a slow webhook says nothing about the endpoint


def test_a_page_from_a_server_whose_cache_is_older_than_the_first_is_waited_for(connect):
    """An API server that was just upgraded does not know the version yet at which the list began."""
    behind = status(504, "Timeout: Too large resource version: 9, current: 7", reason="Timeout", **{"Retry-After": "1"})
    pages = [Reply(200, listed(raw_node("a"), more="next")), behind, behind, Reply(200, listed(raw_node("b")))]
    cluster = connect(*pages)
    assert cluster.client.list(NODES, lambda raw: raw["metadata"]["name"]) == ("a", "b")
    assert [seen.query.get("continue") for seen in cluster.seen] == [None, "next", "next", "next"]
    assert cluster.clock.slept == [1, 1]


def test_an_expired_list_is_begun_again_once_and_counts_nothing_twice(connect):
    page = Reply(200, listed(raw_node("a"), more="old"))
    cluster = connect(page, status(410, "too old"), page, Reply(200, listed(raw_node("b"))))
    assert cluster.client.list(NODES, lambda raw: raw["metadata"]["name"]) == ("a", "b")


def test_a_list_that_expires_twice_is_given_up(connect):
    page, expired = Reply(200, listed(raw_node("a"), more="old")), status(410, "too old")
    cluster = connect(page, expired, page, expired)
    with pytest.raises(ClusterUnreachableError, match="expired twice"):
        cluster.client.list(NODES, lambda raw: raw)


def test_a_fault_in_the_middle_of_a_list_costs_one_page(connect):
    page = Reply(200, listed(raw_node("a"), more="next"))
    cluster = connect(page, RESET, Reply(200, listed(raw_node("b"))))
    assert cluster.client.list(NODES, lambda raw: raw["metadata"]["name"]) == ("a", "b")
    assert [seen.query.get("continue") for seen in cluster.seen] == [None, "next", "next"]


def test_five_thousand_pods_are_cut_down_page_by_page(connect):
    """Ten pages of raw JSON would be some 60 MB of Python objects; what stays is the slim pods and one page."""

    def page(seen):
        start = int(seen.query.get("continue", 0))
        items = [fat_pod(number) for number in range(start, start + 500)]
        return Reply(200, listed(*items, more=str(start + 500) if start < 4500 else None))

    cluster = connect(page)
    tracemalloc.start()
    try:
        pods = cluster.api.pods_on("node-a")
        kept, _ = tracemalloc.get_traced_memory()
        raw_page = raw_size_of_one_page()
    finally:
        tracemalloc.stop()
    assert len(pods) == 5000
    assert len(cluster.seen) == 10
    assert kept < 3 * raw_page


def fat_pod(number):
    pod = raw_pod(f"web-{number}", uid=f"uid-{number}")
    pod["spec"]["containers"] = [
        {"name": f"c{c}", "env": [{"name": f"E{e}", "value": f"{number}-{c}-{e}"} for e in range(10)]} for c in range(2)
    ]
    return pod


def raw_size_of_one_page():
    before, _ = tracemalloc.get_traced_memory()
    page = [fat_pod(number) for number in range(500)]
    after, _ = tracemalloc.get_traced_memory()
    return (after - before) * bool(page)


def test_a_client_connects_to_nothing_before_its_first_request():
    class ClosedDoor:
        def endpoint(self, *, fresh=False):
            raise AssertionError("asked for the endpoint")

        def token(self, *, fresh=False):
            raise AssertionError("asked for a token")

    ClusterClient("blue", ClosedDoor(), FakeClock()).close()
    assert timedelta(seconds=15) > BUDGET
