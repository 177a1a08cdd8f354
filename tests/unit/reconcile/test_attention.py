"""What needs an operator: drains blocked for long, hooks near their end, pauses that seem forgotten."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from leeward.model.pause import PauseRecord
from leeward.model.termination import Cause, CauseKind
from leeward.policy.document import Heartbeat
from leeward.reconcile import telemetry
from leeward.reconcile.reconciler import reconcile_once
from leeward.reconcile.result import ReconcileResult
from tests.fakes.builders import CLUSTER, GROUP, a_group, a_node, a_pause, a_policy, a_subject, an_instance, policies
from tests.fakes.system import FakeSystem

NODE = "i-0abc"
NAMED = f"{CLUSTER}: node-{NODE} ({NODE}), group {GROUP}"
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


def a_system(policy=None):
    return FakeSystem(
        instances=[an_instance(NODE)],
        groups=[a_group(GROUP, NODE)],
        nodes=[a_node(NODE)],
        written=policies(policy or a_policy()),
    )


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
    assert reconcile_once(terminating(times).ports).blocked_long == found


def test_a_drain_that_nothing_blocks_is_not_named():
    assert reconcile_once(terminating({"draining": 9 * HOUR}, blocked=()).ports).blocked_long == []


@pytest.mark.parametrize(
    ("until", "held", "found"),
    [
        (48 * HOUR, 46 * HOUR, [NAMED]),
        (48 * HOUR, 45 * HOUR, []),
        (HOUR, 0.9 * HOUR, [NAMED]),
        (HOUR, 0.8 * HOUR, []),
    ],
)
def test_hooks_that_are_heartbeaten_for_two_hours_more_or_a_tenth_of_their_time_are_named(until, held, found):
    policy = a_policy()
    policy = replace(policy, interruption=replace(policy.interruption, heartbeat=Heartbeat(until=until)))
    assert reconcile_once(terminating({"held": held}, policy=policy).ports).hooks_ending == found


@pytest.mark.parametrize("over", ["terminated", "answered"])
def test_hooks_that_are_over_are_not_named(over):
    assert reconcile_once(terminating({"held": 47 * HOUR, over: HOUR}).ports).hooks_ending == []


@pytest.mark.parametrize(
    ("ago", "until", "found"), [(3 * DAY, None, 1), (2 * DAY, None, 0), (30 * DAY, timedelta(days=1), 0)]
)
def test_a_pause_without_an_end_is_named_after_three_days(ago, until, found):
    system = a_system()
    now = system.clock.now()
    pause = a_pause(since=now - ago, announced=now, until=until and now + until)
    system.pauses.write(PauseRecord(cluster=CLUSTER).paused(pause))
    known = system.clusters.policies_of[CLUSTER]
    system.clusters.policies_of[CLUSTER] = replace(known, pauses=system.pauses.read(CLUSTER).in_force(now))
    named = reconcile_once(system.ports).pauses_forgotten
    assert len(named) == found
    assert all(one.startswith(f"{CLUSTER}: the cluster is paused since ") for one in named)


def test_each_is_a_log_line_and_a_metric_in_all_and_by_cluster(capsys):
    telemetry.reconciled(ReconcileResult(blocked_long=["blue: n1", "blue: n2", "green: n3"]))
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    warned = [line["message"] for line in lines if line.get("needs") == "DrainsBlockedLong"]
    points = {line.get("cluster", ""): line["DrainsBlockedLong"] for line in lines if "DrainsBlockedLong" in line}
    assert warned == ["blue: n1", "blue: n2", "green: n3"]
    assert points == {"": 3, "blue": 2, "green": 1}
