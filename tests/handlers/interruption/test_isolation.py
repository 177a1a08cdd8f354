"""Trouble of one message, one instance or one cluster delays no other message of the batch."""

import json
import threading
import time
from dataclasses import replace
from datetime import timedelta

import pytest

from leeward.adapters.kubernetes.api import ClusterApi
from leeward.adapters.kubernetes.client import ClusterClient
from leeward.adapters.wiring import SystemClock
from leeward.interruption import batch, lookup
from leeward.interruption.batch import Record, process_batch
from leeward.interruption.decision import RecordOutcome
from leeward.isolation import in_turn
from leeward.policy.document import Rebalance
from tests.adapters.conftest import OpenKubeConfig
from tests.adapters.hanging_server import HangingServer, after, byte_by_byte, never, writes_hang
from tests.adapters.kubernetes_objects import listed, raw_node
from tests.events import event
from tests.fakes.builders import a_group, a_node, a_policy, an_instance, policies
from tests.fakes.clock import START
from tests.fakes.kubernetes import FakeKubernetes
from tests.fakes.system import FakeSystem

FUNCTION_SECONDS = 30  # infra/interruption.py
BLUE, GREEN = "i-0b1e", "i-06ee"
HANGS = 3600.0


def two_clusters():
    """`blue` and `green`, one group and one node each."""
    system = FakeSystem(
        instances=[
            an_instance(BLUE, group="web-a", cluster="blue"),
            an_instance(GREEN, group="web-b", cluster="green"),
        ],
        groups=[a_group("web-a", BLUE, cluster="blue"), a_group("web-b", GREEN, cluster="green")],
        nodes=[a_node(BLUE)],
        written=policies(a_policy()),
    )
    system.clusters.policies_of["green"] = policies(a_policy(), cluster="green")
    system.clusters.apis["green"] = FakeKubernetes([a_node(GREEN)], clock=system.clock)
    return system


def warnings_for(*instances):
    bodies = [event("spot_interruption", detail={"instance-id": one}, id=f"warning-{one}") for one in instances]
    return [record(number, body) for number, body in enumerate(bodies)]


def record(number, body):
    return Record(id=f"m{number}", body=body if isinstance(body, str) else json.dumps(body), received=START)


def claimed_after(system):
    """Instance -> seconds from the start of the batch to its start, filled while the batch runs."""
    at = {}
    start = system.executions.start

    def noted(instance, attempt):
        at[instance] = (system.clock.now() - START).total_seconds()
        return start(instance, attempt)

    system.executions.start = noted
    return at


class TestInVirtualTime:
    def test_api_servers_that_hang_leave_the_function_time_to_claim_the_instances_of_every_cluster(self):
        system = two_clusters()
        for api in system.clusters.apis.values():
            api.seconds_a_call["*"] = HANGS
        at = claimed_after(system)
        process_batch(warnings_for(BLUE, GREEN), system.ports, workers=1, each=in_turn)
        assert at.keys() == {BLUE, GREEN}
        assert max(at.values()) <= 2 * (batch.READ_SECONDS + batch.WRITE_SECONDS)

    def test_writes_that_hang_delay_no_claim(self):
        ids = [f"i-0abc{number:02d}" for number in range(40)]
        system = FakeSystem(
            instances=[an_instance(one, group="web-a") for one in ids],
            groups=[a_group("web-a", *ids)],
            nodes=[a_node(one) for one in ids],
            written=policies(a_policy()),
        )
        system.kubernetes.seconds_a_call |= {"taint": HANGS, "event": HANGS}
        at = claimed_after(system)
        result = process_batch(warnings_for(*ids), system.ports, workers=1, each=in_turn)
        assert set(at) == set(ids)
        assert max(at.values()) == 0
        assert (system.clock.now() - START).total_seconds() <= batch.WRITE_SECONDS
        assert result.failures == ()
        assert any("not tainted yet" in warning for warning in result.results[0].warnings)

    def test_a_cordon_that_cannot_be_written_comes_back_alone(self):
        system = two_clusters()
        cordon = policies(a_policy(rebalance=Rebalance.CORDON))
        system.clusters.policies_of["blue"] = cordon
        system.kubernetes.seconds_a_call["taint"] = HANGS
        rebalance = record(0, event("rebalance_recommendation", detail={"instance-id": BLUE}))
        result = process_batch([rebalance, *warnings_for(GREEN)[:1]], system.ports, workers=1, each=in_turn)
        outcomes = [one.decision.outcome for one in result.results]
        assert outcomes == [RecordOutcome.RETRY, RecordOutcome.DONE]


HANGING = {
    "accepts and never answers": (never, batch.READ_SECONDS),
    "answers after 20 s": (after(20), batch.READ_SECONDS),
    "sends a byte now and then": (byte_by_byte(0.5), batch.READ_SECONDS),
    "lists work, writes hang": (writes_hang(listed(raw_node("node-b", instance=BLUE))), batch.WRITE_SECONDS),
}


class TestSideBySide:
    """With real threads, real sockets and the real client for the cluster that hangs."""

    @pytest.fixture(params=HANGING.values(), ids=HANGING)
    def hanging(self, request):
        answer, seconds = request.param
        server = HangingServer(answer)
        client = ClusterClient("blue", OpenKubeConfig(server.url), SystemClock())
        yield ClusterApi(client), seconds
        client.close()
        server.close()

    def test_an_api_server_that_hangs_delays_no_other_cluster_and_its_own_by_seconds(self, hanging):
        api, seconds = hanging
        system = two_clusters()
        kubernetes = system.clusters.kubernetes

        def of(cluster, *, within=None):
            return api.within(within) if cluster == "blue" else kubernetes(cluster, within=within)

        system.clusters.kubernetes = of
        ports = replace(system.ports, clock=SystemClock())
        began, started, tainted = time.monotonic(), {}, {}
        start, taint = system.executions.start, system.clusters.apis["green"].taint
        system.executions.start = lambda name, n: (started.update({name: time.monotonic() - began}), start(name, n))[1]
        system.clusters.apis["green"].taint = lambda *a, **k: (
            tainted.update({GREEN: time.monotonic() - began}),
            taint(*a, **k),
        )[1]
        result = process_batch(warnings_for(BLUE, GREEN), ports)
        assert started[GREEN] < 1
        assert tainted[GREEN] < 1
        assert started[BLUE] < batch.READ_SECONDS + 1
        assert time.monotonic() - began < seconds + 2
        assert result.failures == ()


class Broken:
    """Raises it in the middle of handling one message, and never for another."""

    ERRORS = (KeyError("x"), TypeError("unhashable"), ValueError("no"), RecursionError("deep"), AttributeError("None"))

    def __init__(self, error, victim):
        self.error, self.victim = error, victim

    def around(self, call, says):
        def broken(*arguments, **named):
            if self.victim in says(*arguments, **named):
                raise self.error
            return call(*arguments, **named)

        return broken


@pytest.mark.parametrize("error", Broken.ERRORS, ids=lambda error: type(error).__name__)
class TestUnexpectedErrors:
    def test_in_the_parser_it_is_that_record_alone_that_comes_back(self, error, monkeypatch):
        broken = Broken(error, BLUE).around(batch.parse, lambda body, **_: body)
        monkeypatch.setattr(batch, "parse", broken)
        assert_only_the_first_comes_back()

    def test_in_the_decision_it_is_that_record_alone_that_comes_back(self, error, monkeypatch):
        broken = Broken(error, BLUE).around(batch.decide, lambda message, *_, **__: message.instances)
        monkeypatch.setattr(batch, "decide", broken)
        assert_only_the_first_comes_back()

    def test_in_an_effect_it_is_that_record_alone_that_comes_back(self, error, monkeypatch):
        system = two_clusters()
        system.claims.claim = Broken(error, BLUE).around(system.claims.claim, lambda subject, *_: subject.instance)
        assert_only_the_first_comes_back(system)

    def test_in_the_policies_of_one_cluster_the_other_clusters_messages_are_handled(self, error, monkeypatch):
        system = two_clusters()
        system.clusters.policies = Broken(error, "blue").around(system.clusters.policies, lambda cluster: cluster)
        assert_only_the_first_comes_back(system)

    def test_in_the_lookup_of_one_cluster_the_other_clusters_messages_are_handled(self, error, monkeypatch):
        look = Broken(error, "blue").around(lookup.look_up_clusters, lambda batch, clusters, *_: clusters)
        monkeypatch.setattr(batch, "look_up_clusters", look)
        assert_only_the_first_comes_back()

    def test_in_a_taint_or_an_event_nothing_comes_back(self, error, monkeypatch):
        system = two_clusters()
        for method in ("taint", "event"):
            system.kubernetes.fail(method, error)
        result = process_batch(warnings_for(BLUE, GREEN), system.ports)
        assert result.failures == ()
        assert set(result.tainted) == {GREEN}


def assert_only_the_first_comes_back(system=None):
    system = system or two_clusters()
    result = process_batch(warnings_for(BLUE, GREEN), system.ports)
    assert result.failures == ("m0",)
    assert "UnexpectedError" in result.results[0].decision.reason
    assert system.claims.read(GREEN) is not None
    assert set(result.tainted) - {BLUE} == {GREEN}


def test_ninety_nine_warnings_are_handled_beside_a_body_that_the_parser_does_not_expect():
    body = json.dumps({"Message": "", "Type": []})
    records = [record(0, body), *(replace(one, id=f"w{n}") for n, one in enumerate(warnings_for(*[BLUE] * 99)))]
    result = process_batch(records, two_clusters().ports)
    outcomes = [one.decision.outcome for one in result.results]
    assert outcomes == [RecordOutcome.MALFORMED, *[RecordOutcome.DONE] * 99]


def test_a_message_about_two_clusters_is_handled_once_in_each():
    system = two_clusters()
    entities = [{"entityValue": BLUE}, {"entityValue": GREEN}]
    body = event("scheduled_change")
    raw = json.loads(body) if isinstance(body, str) else body
    raw["detail"]["affectedEntities"] = entities
    raw["detail"]["startTime"] = (START + timedelta(hours=2)).strftime("%a, %d %b %Y %H:%M:%S GMT")
    system.instances.schedule(BLUE, GREEN)
    result = process_batch([record(0, json.dumps(raw))], system.ports)
    assert result.failures == ()
    assert system.claims.read(BLUE)
    assert system.claims.read(GREEN)


def test_the_claims_of_a_storm_are_side_by_side():
    ids = [f"i-0abc{number:02d}" for number in range(32)]
    system = FakeSystem(
        instances=[an_instance(one, group="web-a") for one in ids],
        groups=[a_group("web-a", *ids)],
        nodes=[a_node(one) for one in ids],
        written=policies(a_policy()),
    )
    together, most, lock = 0, 0, threading.Lock()
    claim = system.claims.claim

    def counted(*arguments):
        nonlocal together, most
        with lock:
            together += 1
            most = max(most, together)
        time.sleep(0.02)
        with lock:
            together -= 1
        return claim(*arguments)

    system.claims.claim = counted
    process_batch(warnings_for(*ids), system.ports)
    assert most > 1
