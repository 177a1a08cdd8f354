"""`leeward zone evacuate|return|status`: what they write, print, ask and refuse."""

import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from leeward.adapters import wiring
from leeward.errors import RecordChangedError
from leeward.model.termination import Cause, CauseKind, Outcome, Status, TerminationRecord
from leeward.ports.kubernetes import Listed
from leeward.reconcile.reconciler import reconcile_once
from tests.cli.snapshots.zones import a_zone_snapshot, a_zone_system
from tests.fakes.builders import CLUSTER, a_subject
from tests.fakes.deployment import FakeDeployment
from tests.unit.reconcile.zones import evacuate, open_again

A = "us-east-1a"
NOW = ("--cluster", CLUSTER, "--now", "2026-03-02T10:05:00Z")
SCHEMAS = Path("docs/schema")


@pytest.fixture
def system(monkeypatch):
    system, deployment = a_zone_system(), FakeDeployment(CLUSTER)
    monkeypatch.setattr(wiring, "command_line_ports", lambda *_, **__: system.ports)
    monkeypatch.setattr(wiring, "command_line_deployment", lambda *_, **__: deployment)
    return system


@pytest.fixture
def zone(leeward, system):
    def run(action, *arguments):
        result = leeward("zone", action, *arguments, *NOW, "-o", "json")
        assert result.code == 0
        jsonschema.validate(result.json, json.loads((SCHEMAS / f"zone-{action}.json").read_text()))
        return result.json

    return run


def kept(system, zone=A):
    return system.catalog.zone_record(CLUSTER).evacuation_of(zone)


def standings(document):
    return {node["node"]: node["standing"] for node in document["nodes"]}


def test_an_evacuation_is_recorded_with_its_caller_and_the_zone_is_closed(zone, system):
    document = zone("evacuate", A, "--why", "packet loss", "--yes")
    assert document["started"]
    assert document["evacuation"] == {
        "by": FakeDeployment(CLUSTER).identity().arn,
        "why": "packet loss",
        "since": "2026-03-02T10:05:00Z",
        "returned": None,
        "groups": [],
    }
    assert system.catalog.zonal_shifts(CLUSTER).zones == {A}


def test_a_dry_run_shows_the_same_plan_and_writes_nothing(zone, system):
    document = zone("evacuate", A, "--dry-run")
    assert (document["started"], document["evacuation"]) == (False, None)
    assert standings(document) == {"n1": "stays", "n2": "leaves", "n3": "waits", "n5": "stays"}
    assert kept(system) is None


def test_a_folder_and_the_cluster_behind_it_give_the_same_plan(zone, leeward, tmp_path):
    offline = leeward("zone", "evacuate", A, "--snapshot", a_zone_snapshot(tmp_path), "-o", "json").json
    assert offline == zone("evacuate", A, "--dry-run")


def test_a_pod_that_cannot_leave_is_named_with_its_volume(zone):
    (node,) = (one for one in zone("evacuate", A, "--dry-run")["nodes"] if one["node"] == "n1")
    assert node["pods"] == [{"pod": "shop/db-0", "volume": "vol-0a1b2c3d", "reason": "its volume is bound to the zone"}]


def test_what_will_happen_is_asked_and_another_answer_than_yes_changes_nothing(leeward, system, answer):
    answer("n\n")
    result = leeward("zone", "evacuate", A, *NOW)
    assert result.code == 1
    assert "web: launch 2 nodes in other zones, then drain and TERMINATE 2 nodes of us-east-1a" in result.err
    assert "n1 stays: pod shop/db-0 cannot leave: its volume is bound to the zone" in result.err
    assert kept(system) is None


def test_where_no_other_zone_would_be_open_nothing_is_written(leeward, system):
    system.shift("us-east-1b")
    result = leeward("zone", "evacuate", A, "--yes", *NOW)
    assert (result.code, kept(system)) == (1, None)
    assert "no other zone of cluster" in result.err


def test_a_second_evacuation_keeps_the_begin_and_widens_the_groups(zone, system):
    zone("evacuate", A, "--group", "web", "--yes")
    before = kept(system)
    zone("evacuate", A, "--group", "batch", "--yes")
    assert kept(system).groups == ("batch", "web")
    zone("evacuate", A, "--yes")
    assert (kept(system).groups, kept(system).since) == ((), before.since)


def test_the_same_evacuation_again_writes_nothing(zone, system):
    zone("evacuate", A, "--yes")
    written = system.catalog.asked["write_zone_record"]
    zone("evacuate", A, "--yes")
    assert system.catalog.asked["write_zone_record"] == written


def test_return_opens_the_zone_and_shows_the_sizes(zone, system):
    zone("evacuate", A, "--yes")
    reconcile_once(system.ports)
    document = zone("return", A)
    sizes = {"minimum": 0, "desired": 4, "maximum": 10}
    assert document["returned"]
    assert {"group": "web", "before": sizes, "now": sizes} in document["groups"]
    assert system.catalog.zonal_shifts(CLUSTER).zones == frozenset()


def test_return_of_a_zone_that_is_open_changes_nothing(zone, system):
    assert zone("return", A) == {"zone": A, "returned": False, "evacuation": None, "groups": []}
    assert system.catalog.asked["write_zone_record"] == 0


def test_a_zone_that_is_evacuated_again_while_it_is_ending_keeps_its_first_sizes(zone, system):
    zone("evacuate", A, "--yes")
    reconcile_once(system.ports)
    zone("return", A)
    sizes = kept(system).sizes
    zone("evacuate", A, "--yes")
    assert (kept(system).closed, kept(system).sizes) == (True, sizes)


def test_a_write_that_others_overtake_is_tried_again_and_given_up_after_some_tries(leeward, system, monkeypatch):
    monkeypatch.setattr(system.catalog, "write_zone_record", lambda record, now: None)
    with pytest.raises(RecordChangedError, match="at each of 5 tries"):
        raise_for(leeward("zone", "evacuate", A, "--yes", *NOW))


def raise_for(result):
    if result.code == 1:
        raise RecordChangedError(result.err)


def opened(system):
    evacuate(system)
    open_again(system)


@pytest.mark.parametrize(
    ("prepare", "state"),
    [
        (lambda system: None, "open"),
        (lambda system: system.shift(A), "shifted"),
        (evacuate, "evacuating"),
        (opened, "returning"),
    ],
)
def test_status_names_the_state_of_each_zone(zone, system, prepare, state):
    prepare(system)
    states = {one["zone"]: one["state"] for one in zone("status")["zones"]}
    assert states == {A: state, "us-east-1b": "open"}


def test_a_zone_of_which_only_nodes_that_cannot_leave_are_left_is_evacuated(zone, system):
    evacuate(system)
    raw = system.kubernetes.raw
    raw[Listed.NODES] = [one for one in raw[Listed.NODES] if one["metadata"]["name"] not in {"n2", "n3"}]
    (first, _) = zone("status")["zones"]
    assert (first["state"], [node["node"] for node in first["nodes"]]) == ("evacuated", ["n1", "n5"])


def test_watch_follows_each_node_until_it_has_left_and_names_those_that_stay(leeward, system, monkeypatch):
    turns = []

    def turn(seconds):
        system.clock.advance(seconds=60)
        turns.append(reconcile_once(system.ports))
        for name, record in system.claims.records.items():
            if record.status is Status.OPEN and record.has(CauseKind.EVACUATION):
                closed = replace(record, status=Status.CLOSED, outcome=Outcome.TERMINATED, pods_evicted=1)
                system.claims.records[name] = closed
                system.kubernetes.by_name.pop(name.removeprefix("i-"), None)

    monkeypatch.setattr(system.clock, "sleep", turn)
    result = leeward("zone", "evacuate", A, "--yes", "--watch", *NOW)
    assert result.code == 1  # two nodes stay
    assert "n2: gone, 1 pod evicted" in result.err
    assert "n3: gone, 1 pod evicted" in result.err
    assert "n1 stays in us-east-1a: pod shop/db-0 cannot leave" in result.err
    assert len(turns) == 2


def test_watch_ends_when_the_zone_is_opened_again_meanwhile(leeward, system, monkeypatch):
    monkeypatch.setattr(system.clock, "sleep", lambda seconds: open_again(system) if kept(system).closed else None)
    result = leeward("zone", "evacuate", A, "--yes", "--watch", *NOW)
    assert result.code == 1
    assert "n2: stays: the zone was opened again" in result.err


def test_watch_does_not_take_the_result_of_an_earlier_evacuation_for_its_own(leeward, system, monkeypatch):
    zone_opened = iter([False, True])
    earlier = TerminationRecord(
        subject=a_subject("i-n2"),
        attempt=1,
        version=1,
        causes=(Cause(id="evacuation#us-east-1a#before#i-n2#0", kind=CauseKind.EVACUATION, at=system.clock.now()),),
        status=Status.CLOSED,
        outcome=Outcome.RETURNED_TO_SERVICE,
    )
    system.claims.records["i-n2"] = earlier
    monkeypatch.setattr(system.clock, "sleep", lambda seconds: open_again(system) if next(zone_opened) else None)
    result = leeward("zone", "evacuate", A, "--yes", "--watch", *NOW)
    assert "n2: waits for a disruption budget, or for the next minute" in result.err


def test_a_zone_without_any_node_or_subnet_left_can_still_be_opened(zone, system):
    gone = "us-east-1z"
    evacuate(system, gone)
    assert zone("return", gone)["returned"]
    assert not kept(system, gone).closed


def test_an_evacuation_after_a_return_does_not_keep_the_reason_of_the_earlier_one(zone, system):
    zone("evacuate", A, "--why", "packet loss", "--yes")
    zone("return", A)
    zone("evacuate", A, "--yes")
    assert kept(system).why == ""


def test_an_evacuated_zone_is_named_by_plan_for_each_node_that_stays(leeward, system):
    evacuate(system)
    nodes = leeward("plan", *NOW, "-o", "json").json["nodes"]
    (reason,) = {verdict["reason"] for node in nodes if node["node"] == "n2" for verdict in node["verdicts"]}
    assert reason == "evacuation of us-east-1a (since 2026-03-02T10:00:00Z)"
