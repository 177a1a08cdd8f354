"""Whether a surplus may begin to drain its pods: which terminations of its group count before it."""

from dataclasses import replace
from datetime import timedelta

import pytest

from leeward.disruption.command import Command, CommandDecision, MethodName
from leeward.disruption.record import DisruptionRecord
from leeward.errors import ThrottledError
from leeward.model.node import disruption_taint
from leeward.model.termination import Cause, CauseKind, Status
from leeward.policy.document import Budget, DisruptionPolicy, UpdatePolicy
from leeward.termination.capacity_ledger import surplus
from leeward.termination.run import Next, Run
from leeward.termination.situation import survey
from leeward.termination.surplus_turn import before_drain, comes_before
from leeward.upgrade.members import UpgradeTarget
from leeward.upgrade.record import UpgradeRecord
from leeward.upgrade.surge.sizes import Strategy
from tests.fakes.builders import GROUP, a_group, a_node, a_policy, a_subject, an_instance, policies
from tests.fakes.clock import START
from tests.fakes.ledger import a_surge
from tests.fakes.system import FakeSystem
from tests.state_machines.test_walks import a_budget, a_pod

NODES = ("i-1", "i-2", "i-3")


@pytest.fixture
def system():
    return a_system()


def a_system(most=1, share=None, budgets=(), groups=None, pods=NODES):
    """Three nodes with a pod each; their group is one too large for each surplus that is claimed."""
    update = UpdatePolicy(max_unavailable=most, max_unavailable_percentage=share)
    rules = DisruptionPolicy(budgets=tuple(budgets))
    system = FakeSystem(
        instances=[an_instance(name) for name in NODES],
        groups=groups or [a_group(GROUP, *NODES)],
        nodes=[a_node(name) for name in NODES],
        written=policies(replace(a_policy(), update=update, disruption=rules)),
    )
    for name in pods:
        system.kubernetes.put_pod(a_pod(f"web-{name}", node=f"node-{name}"))
    return system


def claimed(system, *names, after=0):
    system.clock.advance(seconds=after)
    now = system.clock.now()
    for name in names:
        system.claims.claim(a_subject(name), surplus(a_surge(f"new-{name}"), now), now)


def other(system, name, kind, **times):
    system.claims.claim(a_subject(name), Cause(id="1", kind=kind, at=START), system.clock.now())
    system.claims.note(name, times=dict.fromkeys(times, START))


def an_upgrade(group, old):
    """An upgrade that has recorded the old node and not requested its termination."""
    given = {"target": UpgradeTarget(), "strategy": Strategy.DEFAULT, "desired": 3, "maximum": 4, "began": START}
    return UpgradeRecord(group=group, cluster="blue", under_way={old: "t.1"}, **given)


def a_run(system, *, stays, **more):
    """A run that has claimed node-i-1, to be terminated or, its command dropped, to stay."""
    command = Command(decision=CommandDecision.DELETE, nodes=("node-i-1",), reason="empty")
    given = {"cluster": "blue", "number": 1, "method": MethodName.EMPTINESS, "began": START, "groups": (GROUP,)}
    given |= {"commands": (command,), "nodes": {"node-i-1": "i-1"}, "members": {"node-i-1": GROUP}}
    return system.disruptions.write(DisruptionRecord(**given, dropped={"0": "why"} if stays else {}, **more))


def step(system, name):
    """The next step in place of the drain, None: it begins."""
    system.clock.advance(seconds=1)
    situation = survey(system.claims.records[name], system.ports)
    run = before_drain(Run(instance=name, attempt=1, version=1, next=Next.DRAIN), situation, system.ports)
    return None if run is None else run.next


def begin(system, name):
    system.claims.note_attempt(name, 1, times={"draining": system.clock.now()})


def test_of_two_that_look_at_once_exactly_one_begins(system):
    claimed(system, "i-2", "i-1")
    assert [step(system, name) for name in ("i-1", "i-2", "i-1")] == [None, Next.WAIT, None]


def test_one_that_has_begun_comes_before_one_that_was_claimed_before(system):
    claimed(system, "i-2")
    claimed(system, "i-1", after=5)
    begin(system, "i-1")
    assert step(system, "i-2") is Next.WAIT
    assert step(system, "i-1") is None  # and is not asked again


def test_the_next_begins_when_the_pods_of_the_one_before_have_left(system):
    claimed(system, "i-1", "i-2", "i-3")
    begin(system, "i-1")
    assert [step(system, name) for name in ("i-2", "i-3")] == [Next.WAIT, Next.WAIT]
    system.claims.note_attempt("i-1", 1, times={"drained": system.clock.now()})
    assert [step(system, name) for name in ("i-2", "i-3")] == [None, Next.WAIT]


def test_as_many_begin_as_max_unavailable_allows():
    system = a_system(most=2)
    claimed(system, *NODES)
    assert [step(system, name) for name in NODES] == [None, None, Next.WAIT]


def test_a_share_is_of_the_size_without_the_surplus():
    system = a_system(most=None, share=67)
    claimed(system, "i-1", "i-2")
    assert [step(system, name) for name in ("i-1", "i-2")] == [None, Next.WAIT]  # 67 % of one node, not of three


def test_a_node_without_pods_that_have_to_leave_waits_for_nothing():
    system = a_system(pods=["i-1"])
    claimed(system, "i-1", "i-2")
    begin(system, "i-1")
    assert step(system, "i-2") is None


def test_an_instance_that_its_group_ends_already_waits_for_nothing(system):
    claimed(system, "i-1", "i-2")
    begin(system, "i-1")
    system.groups.set_lifecycle(GROUP, "i-2", "Terminating:Wait")
    assert step(system, "i-2") is None


def test_one_that_something_else_requests_too_waits_for_nothing(system):
    claimed(system, "i-1", "i-2")
    begin(system, "i-1")
    other(system, "i-2", CauseKind.MANUAL)
    assert step(system, "i-2") is None


@pytest.mark.parametrize(
    ("kind", "times", "waits"),
    [
        (CauseKind.UPGRADE, (), True),
        (CauseKind.UNDERUTILIZED, (), True),
        (CauseKind.UPGRADE, ("drained",), False),
        (CauseKind.SPOT_INTERRUPTION, ("draining",), True),
        (CauseKind.SCHEDULED_CHANGE, (), False),  # weeks ahead
        (CauseKind.SCHEDULED_CHANGE, ("draining", "retry"), False),  # returned to service until its next attempt
    ],
)
def test_terminations_of_other_causes_count_while_their_pods_leave(system, kind, times, waits):
    other(system, "i-1", kind, **dict.fromkeys(times))
    claimed(system, "i-2")
    assert step(system, "i-2") is (Next.WAIT if waits else None)


def test_an_old_node_that_its_upgrade_has_recorded_counts_before_it_is_claimed(system):
    claimed(system, "i-2")
    upgrade = system.upgrades.write(an_upgrade(GROUP, "i-1"))
    assert step(system, "i-2") is Next.WAIT
    system.upgrades.write(replace(upgrade, ended=START))
    assert step(system, "i-2") is None


def test_a_node_of_an_open_run_counts_before_its_termination_is_requested(system):
    claimed(system, "i-2")
    run = a_run(system, stays=False)
    assert step(system, "i-2") is Next.WAIT
    system.disruptions.write(replace(run, ends={"i-1": "gone"}))
    assert step(system, "i-2") is None


def test_a_node_that_stays_counts_until_its_run_has_removed_the_taint(system):
    claimed(system, "i-2")
    a_run(system, stays=True)
    assert step(system, "i-2") is None
    system.kubernetes.taint(system.kubernetes.node("node-i-1"), disruption_taint(system.ports.deployment))
    assert step(system, "i-2") is Next.WAIT
    system.kubernetes.fail("node", ThrottledError("get nodes"))
    assert step(system, "i-2") is Next.WAIT


def test_a_share_leaves_out_surplus_that_was_not_requested_yet():
    group = replace(a_group(GROUP, *NODES), desired=7)
    system = a_system(most=None, share=40, groups=[group])  # of the owner's two nodes one, of five with launches two
    claimed(system, "i-1", "i-2")
    system.upgrades.write(replace(an_upgrade(GROUP, "i-9"), desired=2))
    assert [step(system, name) for name in ("i-1", "i-2")] == [None, Next.WAIT]


def test_a_share_leaves_out_drained_surplus_while_its_group_has_it():
    group = replace(a_group(GROUP, *NODES), desired=5)
    system = a_system(most=None, share=50, groups=[group])  # of two nodes one, of three with the drained one two
    claimed(system, "i-1", "i-2", "i-3")
    system.claims.note("i-1", times={"drained": START})
    begin(system, "i-2")
    assert step(system, "i-3") is Next.WAIT


def test_so_does_an_old_node_of_the_policys_other_group():
    groups = [a_group(GROUP, "i-1", "i-2"), a_group("web-other", "i-3")]
    system = a_system(most=3, budgets=[Budget(nodes=1, percent=False, reasons=("Upgrade",))], groups=groups)
    claimed(system, "i-1")
    assert step(system, "i-1") is None
    system.upgrades.write(an_upgrade("web-other", "i-3"))
    assert step(system, "i-1") is Next.WAIT


@pytest.mark.parametrize(("reasons", "waits"), [(("Upgrade",), True), ((), False)])
def test_a_budget_for_upgrades_counts_the_policys_other_groups(reasons, waits):
    budget = Budget(nodes=1, percent=False, reasons=reasons)
    groups = [a_group(GROUP, "i-1", "i-2"), a_group("web-other", "i-3")]
    system = a_system(most=3, budgets=[budget], groups=groups)
    subject = replace(a_subject("i-3"), group="web-other")
    system.claims.claim(subject, Cause(id="1", kind=CauseKind.UPGRADE, at=START), system.clock.now())
    claimed(system, "i-1")
    assert step(system, "i-1") is (Next.WAIT if waits else None)


def test_a_blocked_one_fails_at_once_and_another_node_offsets_the_launch(system):
    claimed(system, "i-1")
    system.kubernetes.budget_list = [a_budget(0)]
    assert step(system, "i-1") is Next.FAILED


def test_a_neighbour_that_does_not_end_in_the_time_of_a_drain_is_not_waited_for_for_ever(system):
    claimed(system, "i-1", "i-2")
    timeout = a_policy().drain.timeout
    system.clock.advance(seconds=60)
    begin(system, "i-1")
    system.clock.advance(seconds=timeout.total_seconds())
    assert step(system, "i-2") is Next.WAIT
    system.clock.advance(seconds=601)
    assert step(system, "i-2") is Next.FAILED


def test_claims_of_one_moment_are_ordered_by_instance():
    system = a_system()
    claimed(system, "i-1", "i-2")
    first, second = system.claims.records["i-1"], system.claims.records["i-2"]
    assert (comes_before(first, second), comes_before(second, first)) == (True, False)
    later = replace(first, times={"claimed": START + timedelta(seconds=9)})
    assert (comes_before(later, second), comes_before(second, later)) == (False, True)
    assert not comes_before(replace(first, status=Status.CLOSED), second)
