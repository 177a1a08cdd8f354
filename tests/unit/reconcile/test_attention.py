"""Notices for an operator: drains blocked for long, hooks near their end, pauses that seem forgotten."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from leeward.errors import ThrottledError
from leeward.model.blocked import BlockedCause, BlockedLine
from leeward.model.pause import PauseRecord, Pauses
from leeward.model.termination import Cause, CauseKind
from leeward.policy.document import Heartbeat
from leeward.reconcile import telemetry
from leeward.reconcile.reconciler import reconcile_once
from leeward.reconcile.result import AttentionNotice, ReconcileResult
from tests.emitted import series_of, value_of
from tests.fakes.builders import (
    CLUSTER,
    GROUP,
    a_group,
    a_node,
    a_pause,
    a_policy,
    a_subject,
    an_instance,
    our_hook,
    policies,
)
from tests.fakes.system import FakeSystem
from tests.unit.reconcile.test_reconciler import claim

NODE = "i-0abc"
NAMED = f"{CLUSTER}: node-{NODE} ({NODE}), group {GROUP}"
RECONCILE = {"service": "reconcile"}
FOUND = (("blue", "n1"), ("blue", "n2"), ("green", "n3"))
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


def a_system(policy=None):
    return FakeSystem(
        instances=[an_instance(NODE)],
        groups=[a_group(GROUP, NODE)],
        nodes=[a_node(NODE)],
        written=policies(policy or a_policy()),
    )


def named(system, field):
    """Return the notices of a pass, in the words of the log."""
    return reconcile_once(system.ports).to_json()[field]


def terminating(times, *, blocked=("shop/web-1: pdb shop/web",), policy=None):
    """A termination that is open. `times`: name -> how long ago."""
    system = a_system(policy)
    now = system.clock.now()
    system.claims.claim(a_subject(NODE), Cause(id="m1", kind=CauseKind.MANUAL, at=now), now)
    system.executions.open.add(f"{NODE}-1")
    since = {name: now - ago for name, ago in times.items()}
    record = system.claims.records[NODE]
    system.claims.records[NODE] = replace(record, times=since, blocked_by=blocked)
    return system


@pytest.mark.parametrize(
    ("times", "found"),
    [
        ({"draining": HOUR}, [NAMED]),
        ({"draining": HOUR - timedelta(seconds=1)}, []),
        ({"draining": 9 * HOUR, "moved": HOUR / 2}, []),
        ({"draining": 9 * HOUR, "moved": HOUR}, [NAMED]),
        ({"draining": 9 * HOUR, "drained": HOUR}, []),
        ({}, []),
    ],
)
def test_a_drain_in_which_no_pod_has_moved_for_an_hour_is_named(times, found):
    assert named(terminating(times), "blocked_long") == [f"{one} (budget)" for one in found]


def test_a_drain_that_nothing_blocks_is_not_named():
    assert named(terminating({"draining": 9 * HOUR}, blocked=()), "blocked_long") == []


def held(ago, timeout=3600, until=48 * HOUR):
    """A member that our hook holds; its lifecycle action began this long ago."""
    policy = a_policy()
    policy = replace(policy, interruption=replace(policy.interruption, heartbeat=Heartbeat(until=until)))
    system = FakeSystem(
        instances=[an_instance(NODE)],
        groups=[a_group(GROUP, NODE)],
        hooks=[our_hook(heartbeat_timeout=timeout)],
        nodes=[a_node(NODE)],
        written=policies(policy),
    )
    system.groups.begin_terminating(GROUP, NODE)
    claim(system, CauseKind.ASG_TERMINATE)
    system.executions.start(NODE, 1)
    system.clock.advance(seconds=ago.total_seconds())
    return named(system, "hooks_ending")


@pytest.mark.parametrize(
    ("until", "ago", "found"),
    [
        (48 * HOUR, 46 * HOUR, []),
        (48 * HOUR, 46.1 * HOUR, [NAMED]),
        (HOUR, 0.9 * HOUR, []),
        (HOUR, 0.91 * HOUR, [NAMED]),
    ],
)
def test_hooks_that_are_heartbeaten_for_two_hours_more_or_a_tenth_of_their_time_are_named(until, ago, found):
    assert held(ago, until=until) == found


def test_a_hook_ends_after_a_hundred_of_its_time_outs_whatever_the_policy_says():
    """30 s: after fifty minutes, of which the last five are near the end."""
    assert held(timedelta(minutes=44), timeout=30) == []
    assert held(timedelta(minutes=46), timeout=30) == [NAMED]


def test_a_termination_that_no_hook_holds_is_not_near_an_end():
    assert named(terminating({"held": 47 * HOUR}), "hooks_ending") == []


def paused(*, since, until=None, group=""):
    """A pause that began this long ago and ends (or has ended) this long after, or before, now."""
    system = a_system()
    now = system.clock.now()
    pause = a_pause(since=now - since, announced=now, until=until and now - until, group=group)
    system.pauses.write(PauseRecord(cluster=CLUSTER).paused(pause))
    known = system.clusters.policies_of[CLUSTER]
    system.clusters.policies_of[CLUSTER] = replace(known, pauses=Pauses(cluster=CLUSTER, pauses=(pause,)))
    return system


@pytest.mark.parametrize(("since", "until", "found"), [(3 * DAY, None, 1), (2 * DAY, None, 0), (30 * DAY, -DAY, 0)])
def test_a_pause_without_an_end_is_named_after_three_days(since, until, found):
    forgotten = named(paused(since=since, until=until), "pauses_forgotten")
    assert len(forgotten) == found
    assert all(one.startswith(f"{CLUSTER}: the cluster is paused since ") for one in forgotten)


def test_each_is_a_log_line_and_a_metric_in_all_by_cluster_and_by_group(capsys):
    notices = [AttentionNotice(cluster=cluster, group="web", what=what) for cluster, what in FOUND]
    telemetry.reconciled(ReconcileResult(blocked_long=notices))
    out = capsys.readouterr().out
    said = [line["message"] for line in map(json.loads, out.splitlines()) if line.get("needs") == "DrainsBlockedLong"]
    assert said == ["blue: n1", "blue: n2", "green: n3"]
    assert value_of(out, "DrainsBlockedLong", **RECONCILE) == 3
    assert value_of(out, "DrainsBlockedLong", **RECONCILE, cluster="blue") == 2
    assert value_of(out, "DrainsBlockedLong", **RECONCILE, cluster="green", group="web") == 1


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ("shop/web-1: pdb shop/web (allows 0 now, 1 healthy of 1 wanted)", BlockedCause.BUDGET),
        ("shop/web-1: webhook guard.example.com denies it: not now", BlockedCause.WEBHOOK),
        ("shop/web-1: policy keep-web fails: no such field", BlockedCause.ADMISSION_POLICY),
        ("shop/web-1: eviction fails: no answer", BlockedCause.EVICTION_FAILS),
        ("shop/web-1: waits for a second replica of shop/web, until 2026-03-02T10:00:00Z", BlockedCause.SECOND_REPLICA),
        ("shop/web-1: it keeps data in an emptyDir, which would be lost", BlockedCause.DRAIN_POLICY),
        ("volume pv-1 is still attached, until 2026-03-02T10:00:00Z", None),
        ("target group web: i-0abc is draining, until 2026-03-02T10:00:00Z", None),
    ],
)
def test_the_cause_of_a_blocked_drain_is_one_of_a_few(line, cause):
    assert BlockedLine.read(line).cause is cause


def test_a_drain_counts_as_blocked_once_no_pod_has_moved_for_half_a_minute():
    assert named(terminating({"draining": timedelta(seconds=29)}), "blocked") == []
    assert named(terminating({"draining": timedelta(seconds=30)}), "blocked") == [f"{NAMED} (budget)"]


def test_a_node_that_waits_for_its_volumes_or_for_the_next_try_is_not_blocked():
    volume = "volume pv-1 is still attached, until 2026-03-02T10:00:00Z"
    assert named(terminating({"draining": HOUR}, blocked=(volume,)), "blocked") == []
    assert named(terminating({"draining": HOUR, "retry": HOUR / 2}), "blocked") == []


def test_blocked_nodes_are_counted_for_cluster_group_and_each_cause(capsys):
    lines = ("shop/web-1: pdb shop/web", "shop/db-0: webhook guard.example.com denies it: not now")
    telemetry.reconciled(reconcile_once(terminating({"draining": HOUR / 2}, blocked=lines).ports))
    cluster = RECONCILE | {"cluster": CLUSTER}
    causes = [cluster | {"cause": cause} for cause in ("budget", "webhook")]
    found = series_of(capsys.readouterr().out, "NodesBlocked")
    assert found == [RECONCILE, cluster, cluster | {"group": GROUP}, *causes]


def test_a_paused_group_is_counted_by_its_name(capsys):
    system = paused(since=HOUR, group="web-a")
    telemetry.reconciled(reconcile_once(system.ports))
    series = [RECONCILE, RECONCILE | {"cluster": CLUSTER}, RECONCILE | {"cluster": CLUSTER, "group": "web-a"}]
    assert series_of(capsys.readouterr().out, "PausesInForce") == series


def test_a_pause_that_has_ended_is_in_force_no_more():
    assert named(paused(since=2 * HOUR, until=HOUR), "pauses") == []


def test_blocked_drains_are_counted_although_the_nodes_cannot_be_read():
    system = terminating({"draining": HOUR})
    system.kubernetes.fail("nodes", ThrottledError("rate exceeded"))
    assert named(system, "blocked") == [f"{NAMED} (budget)"]
