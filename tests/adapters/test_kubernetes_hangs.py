"""An API server that hangs costs its caller what the budget says, over real sockets with the real client."""

import socket
import time
from contextlib import contextmanager

import pytest

from leeward.adapters.kubernetes.api import ClusterApi
from leeward.adapters.kubernetes.client import ClusterClient, pool
from leeward.adapters.wiring import SystemClock
from leeward.errors import ClusterUnreachableError
from leeward.model.node import Node, Taint
from leeward.time_budget import TimeBudget
from tests.adapters.conftest import OpenKubeConfig
from tests.adapters.hanging_server import HangingServer, after, byte_by_byte, never, writes_hang
from tests.adapters.kubernetes_objects import listed, raw_node
from tests.state_machines.test_walks import a_pod

BUDGET = 0.6
TAINT = Taint(key="leeward.dev/disrupted", effect="NoSchedule")


@pytest.fixture
def api():
    made = []

    def connect(answer, budget=BUDGET):
        server = HangingServer(answer)
        client = ClusterClient("blue", OpenKubeConfig(server.url), SystemClock())
        made.extend((client, server))
        return ClusterApi(client).within(TimeBudget.of(SystemClock(), budget)), server

    yield connect
    for one in made:
        one.close()


@contextmanager
def no_longer_than(seconds):
    began = time.monotonic()
    yield
    assert time.monotonic() - began < seconds


@pytest.mark.parametrize("answer", [never, after(20), byte_by_byte(0.1)], ids=["never", "late", "trickle"])
def test_a_server_that_hangs_costs_no_more_than_the_budget(api, answer):
    kubernetes, _ = api(answer)
    with no_longer_than(2 * BUDGET), pytest.raises(ClusterUnreachableError, match="blue: list nodes"):
        kubernetes.nodes()


def test_a_budget_that_is_spent_fails_the_next_call_at_once(api):
    kubernetes, server = api(never)
    with pytest.raises(ClusterUnreachableError):
        kubernetes.nodes()
    with no_longer_than(0.2), pytest.raises(ClusterUnreachableError, match="no time is left"):
        kubernetes.pods()
    assert len(server.asked) == 1


def test_writes_that_hang_cost_no_more_than_the_budget_where_lists_work(api):
    kubernetes, server = api(writes_hang(listed(raw_node("node-a"))))
    (node,) = kubernetes.nodes()
    with no_longer_than(2 * BUDGET), pytest.raises(ClusterUnreachableError, match="patch nodes"):
        kubernetes.taint(node, TAINT)
    assert server.asked[0].startswith("GET")


def test_an_answer_that_comes_slowly_but_in_time_is_read_to_its_end(api):
    kubernetes, _ = api(byte_by_byte(0.0005, listed(raw_node("node-a"))), budget=30)
    (node,) = kubernetes.nodes()
    assert isinstance(node, Node)


def test_two_views_of_one_client_share_its_connections(api):
    kubernetes, server = api(after(0), budget=30)
    kubernetes.nodes()
    kubernetes.within(TimeBudget.of(SystemClock(), 10)).nodes()
    assert len(server._open) == 1


def test_an_eviction_without_an_answer_names_admission_and_runs_beside_other_calls(api):
    kubernetes, _ = api(writes_hang(listed(raw_node("node-a"))))
    said = r"did not answer within 1 s: an admission webhook on pods/eviction may be slow$"
    with no_longer_than(2 * BUDGET):
        ended = kubernetes.beside(lambda: kubernetes.evict(a_pod()))
        assert [node.name for node in kubernetes.nodes()] == ["node-a"]
        assert not ended(0)
        with pytest.raises(ClusterUnreachableError, match=said):
            ended(2 * BUDGET)


class SlowSocket(socket.socket):
    """A network on which each connection takes a fifth of a second."""

    def connect(self, address):
        time.sleep(0.2)
        super().connect(address)


def test_a_slow_connection_leaves_its_tls_handshake_the_rest_of_the_connect_time_out(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as server:
        host, port = server.getsockname()
        connections = pool(None, connections=1).connection_from_host(host, port)
        monkeypatch.setattr(socket, "socket", SlowSocket)
        connection = connections.ConnectionCls(host, port, timeout=1.0)
        connection.connect()
        left = connection.sock.gettimeout()
        connection.close()
    assert 0 < left <= 0.8
