"""One cluster's trouble, one malformed record or one broken node stops nothing else in a reconciliation."""

import threading
import time
from dataclasses import replace
from datetime import timedelta

import pytest

from leeward.adapters.kubernetes.api import ClusterApi
from leeward.adapters.kubernetes.client import ClusterClient
from leeward.adapters.wiring import SystemClock
from leeward.disruption.controller import decide_once
from leeward.errors import ClusterUnreachableError, NewerRecordError
from leeward.model.termination import Cause, CauseKind
from leeward.reconcile import reconciler
from leeward.reconcile.reconciler import reconcile_once
from leeward.sync.controller import sync_once
from tests.adapters.conftest import OpenKubeConfig
from tests.adapters.hanging_server import HangingServer
from tests.fakes.builders import a_group, a_node, a_policy, a_subject, an_instance, our_hook, policies
from tests.fakes.kubernetes import FakeKubernetes
from tests.fakes.system import FakeSystem

BLUE, GREEN = "i-0b1e", "i-06ee"
UNEXPECTED = (KeyError("x"), TypeError("no"), RecursionError("deep"))


@pytest.fixture
def system():
    """`blue` and `green`, each with a group, a hook of ours, a node and an open record that no execution handles."""
    made = FakeSystem(
        instances=[
            an_instance(BLUE, group="web-a", cluster="blue"),
            an_instance(GREEN, group="web-b", cluster="green"),
        ],
        groups=[a_group("web-a", BLUE, cluster="blue"), a_group("web-b", GREEN, cluster="green")],
        hooks=[replace(our_hook(), group="web-a"), replace(our_hook(), group="web-b")],
        nodes=[a_node(BLUE)],
        written=policies(a_policy()),
    )
    made.clusters.policies_of["green"] = policies(a_policy(), cluster="green")
    made.clusters.apis["green"] = FakeKubernetes([a_node(GREEN)], clock=made.clock)
    for name, cluster, group in ((BLUE, "blue", "web-a"), (GREEN, "green", "web-b")):
        subject = replace(a_subject(name, group=group), cluster=cluster)
        at = SystemClock().now() - timedelta(minutes=4)  # half of the hook's time-out has passed
        cause = Cause(id=f"cause-{name}", kind=CauseKind.STATE_CHANGE, at=at, reason="a test")
        made.claims.claim(subject, cause, at)
    return made


@pytest.fixture
def hanging():
    """The API of a cluster that accepts connections and never answers, over a real socket."""
    server = HangingServer()
    client = ClusterClient("blue", OpenKubeConfig(server.url), SystemClock())
    yield ClusterApi(client)
    client.close()
    server.close()


def behind(system, api):
    """`blue` answers as this API does; time is real."""
    kubernetes = system.clusters.kubernetes

    def of(cluster, *, within=None):
        if cluster != "blue":
            return kubernetes(cluster, within=within)
        return api if within is None else api.within(within)

    system.clusters.kubernetes = of
    return replace(system.ports, clock=SystemClock())


def holds(system, *instances):
    """Their groups are ending them, and our hook holds them."""
    for instance in instances:
        system.groups.begin_terminating("web-a" if instance == BLUE else "web-b", instance)


def test_an_api_server_that_hangs_delays_no_execution_and_no_heartbeat_of_any_cluster(system, hanging, monkeypatch):
    monkeypatch.setattr(reconciler, "NODES_SECONDS", 2.0)
    monkeypatch.setattr(reconciler, "KUBERNETES_SECONDS", 2.0)
    holds(system, BLUE, GREEN)
    began, started, beaten = time.monotonic(), {}, {}
    start, heartbeat = system.executions.start, system.groups.heartbeat
    lock = threading.Lock()

    def starting(name, attempt):
        with lock:
            started.setdefault(name, time.monotonic() - began)
        return start(name, attempt)

    def beating(**named):
        with lock:
            beaten.setdefault(named["instance"], time.monotonic() - began)
        return heartbeat(**named)

    system.executions.start, system.groups.heartbeat = starting, beating
    found = reconcile_once(behind(system, hanging))
    assert started.keys() == beaten.keys() == {BLUE, GREEN}
    assert max(*started.values(), *beaten.values()) < 1
    assert time.monotonic() - began < 8
    assert any(error.startswith("blue: ClusterUnreachableError") for error in found.errors)
    assert not any(error.startswith("green") for error in found.errors)


def test_sync_puts_hooks_and_labels_nodes_of_the_other_clusters_while_one_hangs(system, hanging, monkeypatch):
    monkeypatch.setattr("leeward.sync.controller.KUBERNETES_SECONDS", 1.0)
    for group in ("web-a", "web-b"):
        system.groups.delete_hook(group=group, hook=our_hook().name)
    synced = sync_once(behind(system, hanging))
    assert sorted(synced.hooks) == ["web-a", "web-b"]
    assert synced.labelled == [f"node-{GREEN}"]
    assert any(warning.startswith("blue: nodes") for warning in synced.warnings)


def test_the_planner_names_the_cluster_that_hangs_and_reads_the_others(system, hanging, monkeypatch):
    monkeypatch.setattr("leeward.disruption.controller.CLUSTER_SECONDS", 1.0)
    monkeypatch.setattr("leeward.disruption.controller.PAUSES", ())
    began = time.monotonic()
    decided = decide_once(behind(system, hanging))
    assert [error.split(":")[0] for error in decided.errors] == ["blue"]
    assert time.monotonic() - began < 6


def test_one_record_that_only_a_newer_version_can_read_leaves_the_others_reconciled(system):
    """The minute reconciler runs in both versions while the stack is updated."""
    read = system.claims.read

    def alone(name):
        if name == BLUE:
            raise NewerRecordError("'suspended' is not a valid Status")
        return read(name)

    system.claims.read = alone
    system.claims.read_all = lambda names: {name: alone(name) for name in names}
    found = reconcile_once(system.ports)
    assert found.restarted == [GREEN]
    assert any(one.startswith(f"the record of {BLUE}: NewerRecordError") for one in found.errors)


@pytest.mark.parametrize("error", UNEXPECTED, ids=lambda error: type(error).__name__)
class TestUnexpectedErrors:
    def test_of_one_record_leave_the_other_records_their_executions(self, system, error):
        start = system.executions.start

        def broken(name, attempt):
            if name == BLUE:
                raise error
            return start(name, attempt)

        system.executions.start = broken
        found = reconcile_once(system.ports)
        assert found.restarted == [GREEN]
        assert any(f"{BLUE}: UnexpectedError: {type(error).__name__}" in one for one in found.errors)

    def test_of_one_malformed_record_leave_the_others_readable(self, system, error):
        read, read_all = system.claims.read, system.claims.read_all

        def together(names):
            names = list(names)
            if BLUE in names:
                raise error
            return read_all(names)

        def alone(name):
            if name == BLUE:
                raise error
            return read(name)

        system.claims.read_all, system.claims.read = together, alone
        found = reconcile_once(system.ports)
        assert found.restarted == [GREEN]
        assert any(one.startswith(f"the record of {BLUE}") for one in found.errors)

    def test_of_one_cluster_leave_the_others_reconciled_synced_and_planned(self, system, error):
        policies_of = system.clusters.policies

        def broken(cluster):
            if cluster == "blue":
                raise error
            return policies_of(cluster)

        system.clusters.policies = broken
        assert sync_once(system.ports).labelled == [f"node-{GREEN}"]
        assert sorted(reconcile_once(system.ports).restarted) == sorted([BLUE, GREEN])
        assert all(one.startswith("blue") for one in decide_once(system.ports).errors)

    def test_of_one_node_leave_the_other_nodes_labelled(self, system, error):
        api = system.clusters.apis["green"]
        label = api.label

        def broken(node, labels):
            if node.instance_id == "i-0bad":
                raise error
            return label(node, labels)

        api.label = broken
        api.put_node(a_node("i-0bad"))
        system.groups.by_name["web-b"] = a_group("web-b", "i-0bad", GREEN, cluster="green")
        system.instances.put(an_instance("i-0bad", group="web-b", cluster="green"))
        assert f"node-{GREEN}" in sync_once(system.ports).labelled


def test_an_api_server_that_is_away_leaves_executions_and_hooks_to_aws(system):
    system.kubernetes.fail("nodes", ClusterUnreachableError("refused"))
    assert sorted(reconcile_once(system.ports).restarted) == sorted([BLUE, GREEN])
